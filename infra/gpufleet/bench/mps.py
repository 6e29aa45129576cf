"""An MPS control daemon of the bench's own: own pipe and log directories, the bench's own user, no setting changed.

The GPU stays in compute mode DEFAULT. The device plugin sets EXCLUSIVE_PROCESS instead, which keeps processes out
that do not use MPS; it is not needed to measure.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

_PLACES = ("/usr/bin", "/usr/local/nvidia/bin", "/run/nvidia/driver/usr/bin")


class MpsError(RuntimeError):
    """The control daemon cannot be started or does not answer; the text holds its log's last words."""


def find_control() -> str | None:
    """Path of nvidia-cuda-mps-control. ``GPUFLEET_MPS_CONTROL`` names another program."""
    named = os.environ.get("GPUFLEET_MPS_CONTROL")
    path = os.pathsep.join([os.environ.get("PATH", ""), *_PLACES])
    return named or shutil.which("nvidia-cuda-mps-control", path=path)


class Mps:
    """Context manager around one daemon. ``env`` is what client processes need.

    ``thread_percentage`` and ``memory_limit_mib`` become the defaults of every client, as with the device
    plugin's daemon. Raises MpsError.
    """

    def __init__(self, thread_percentage: float | None = None, memory_limit_mib: int | None = None) -> None:
        self._control = find_control()
        self._percentage, self._limit = thread_percentage, memory_limit_mib
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.env: dict[str, str] = {}

    def __enter__(self) -> Mps:
        if self._control is None:
            raise MpsError("nvidia-cuda-mps-control is not installed here")
        # A short path: the pipe directory holds sockets, whose names are limited to about 100 bytes.
        self._directory = tempfile.TemporaryDirectory(prefix="mps-", dir="/tmp")
        pipe, log = Path(self._directory.name, "p"), Path(self._directory.name, "l")
        pipe.mkdir(mode=0o700)
        log.mkdir(mode=0o700)
        self.env = {"CUDA_MPS_PIPE_DIRECTORY": str(pipe), "CUDA_MPS_LOG_DIRECTORY": str(log)}
        try:
            self._process = subprocess.Popen(
                [self._control, "-f"],
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._wait_until_it_answers()
            if self._percentage is not None:
                self.command(f"set_default_active_thread_percentage {self._percentage:g}")
            if self._limit is not None:
                self.command(f"set_default_device_pinned_mem_limit 0 {self._limit}M")
        except (OSError, MpsError) as error:
            reason = f"{error} {self._last_words()}".strip()
            self.stop()
            raise MpsError(reason) from None
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def command(self, text: str) -> str:
        """One command to the daemon; its answer."""
        try:
            done = subprocess.run(
                [self._control or ""],
                input=text + "\n",
                env={**os.environ, **self.env},
                capture_output=True,
                text=True,
                timeout=15,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MpsError(f"no answer to '{text}'") from None
        if done.returncode:
            raise MpsError(f"'{text}': {(done.stdout + done.stderr).strip()[:200]}")
        return done.stdout.strip()

    def servers(self) -> list[int]:
        """Process ids of the servers that the daemon started."""
        return [int(word) for word in self.command("get_server_list").split() if word.isdigit()]

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + 15
        while True:
            assert self._process is not None
            if self._process.poll() is not None:
                raise MpsError(f"the control daemon ended with code {self._process.returncode}.")
            try:
                self.command("get_default_active_thread_percentage")
                return
            except MpsError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _last_words(self) -> str:
        lines: list[str] = []
        for name in ("control.log", "server.log"):
            with contextlib.suppress(OSError):
                text = Path(self.env["CUDA_MPS_LOG_DIRECTORY"], name).read_text(errors="replace")
                lines += text.strip().splitlines()[-3:]
        return " | ".join(lines)[-500:]

    def stop(self) -> None:
        """Ask the daemon to quit; end it and its servers by their process ids if they stay."""
        servers: list[int] = []
        if self._process and self._process.poll() is None:
            with contextlib.suppress(MpsError):
                servers = self.servers()
            with contextlib.suppress(MpsError):
                self.command("quit")
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.terminate()
                self._process.wait(10)
        _end(servers)
        if self._directory:
            self._directory.cleanup()
            self._directory = None


def _end(pids: list[int]) -> None:
    """Wait for processes to be gone; end those that stay."""
    deadline = time.monotonic() + 5
    while pids and time.monotonic() < deadline:
        pids = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        time.sleep(0.05)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
