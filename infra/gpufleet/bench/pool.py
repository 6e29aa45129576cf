"""The bench processes: started, spoken to and ended by their process ids."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

_ROOT = str(Path(__file__).resolve().parents[2])  # the folder (or archive) that holds the package gpufleet


class WorkerError(RuntimeError):
    """A bench process failed; the text holds its reason."""


class Worker:
    """One process of ``gpufleet.bench.worker``."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        path = os.pathsep.join(part for part in (_ROOT, os.environ.get("PYTHONPATH", "")) if part)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpufleet.bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": path, **env},
            start_new_session=True,
        )
        assert self._process.stdin and self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout
        self._buffer = b""
        os.set_blocking(self._out.fileno(), False)

    def send(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the answer's reader says why it ended
            self._in.write(json.dumps(message).encode() + b"\n")
            self._in.flush()

    def receive(self, timeout: float) -> dict[str, Any]:
        """The next answer. Raises WorkerError: an error, the process's end, or no answer in ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise WorkerError(f"no answer within {timeout:.0f} s")
                part = os.read(self._out.fileno(), 1 << 20)
                if not part:
                    raise WorkerError(f"the process ended: {self._last_words()}")
                self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(str(answer["error"]))
        return answer

    def _last_words(self) -> str:
        self._process.wait(5)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return " ".join(lines[-2:])[-300:] or f"exit code {self._process.returncode}"

    def close(self, timeout: float = 10) -> None:
        """Let the process leave by itself (it frees its GPU memory), end it when it does not."""
        self.send({"do": "exit"})
        with contextlib.suppress(BrokenPipeError):
            self._in.close()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._out.close()
        self._errors.close()


class Pool:
    """``count`` processes with one workload each, ready to run. Use as a context manager.

    ``others`` is the setup of all processes but the first, where theirs is another.

    The first is set up alone; its calibration, or the one in ``setup``, holds for all, so that every process
    does the same work. ``ready`` tells how many could be set up, ``failure`` why another could not. Raises WorkerError
    when not even the first can.
    """

    def __init__(
        self,
        count: int,
        setup: Mapping[str, Any],
        envs: Sequence[Mapping[str, str]],
        setup_timeout: float = 180,
        others: Mapping[str, Any] | None = None,
    ) -> None:
        self._workers: list[Worker] = []
        self._others = dict(others or setup)
        self.setup, self.envs = dict(setup), list(envs)
        self._count, self._timeout = count, setup_timeout
        self.device: dict[str, Any] = {}
        self.calibration: dict[str, float] = {}
        self.failure: str | None = None

    @property
    def ready(self) -> int:
        return len(self._workers)

    def __enter__(self) -> Pool:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        started = [Worker(self.envs[i % len(self.envs)]) for i in range(self._count)]
        self._workers = list(started)
        for worker in started:
            worker.send({"do": "import", "backend": self.setup["backend"]})
        for worker in started:
            worker.receive(self._timeout)
        started[0].send({**self.setup, "seed": 0})
        first = started[0].receive(self._timeout)
        self.device, self.calibration = first["device"], first["calibration"]
        for i, worker in enumerate(started[1:], 1):
            worker.send({**self._others, "seed": i, "calibration": self.calibration})
        for worker in started[1:]:
            try:
                worker.receive(self._timeout)
            except WorkerError as error:
                self.failure = self.failure or str(error)
                self._workers.remove(worker)
                worker.close()

    def memory(self) -> tuple[int, int]:
        """Free and total bytes of the device, asked of the first process."""
        self._workers[0].send({"do": "memory"})
        free, total = self._workers[0].receive(60)["memory"]
        return free, total

    def run(self, count: int, window: float, warm_up: float) -> list[dict[str, Any]]:
        """Let the first ``count`` processes work at the same time; their answers. Raises WorkerError."""
        return self.run_these(range(count), window, warm_up)

    def run_these(self, which: Sequence[int], window: float, warm_up: float) -> list[dict[str, Any]]:
        """The same for processes by their numbers."""
        start = time.monotonic() + 0.1 + warm_up
        message = {"do": "run", "start": start, "window": window, "warm_up": warm_up}
        for i in which:
            self._workers[i].send(message)
        return [self._workers[i].receive(warm_up + window + 120) for i in which]

    def ask(self, i: int, message: Mapping[str, Any], timeout: float = 120) -> dict[str, Any]:
        """One message to one process; its answer. Raises WorkerError."""
        self._workers[i].send(message)
        return self._workers[i].receive(timeout)

    def close(self) -> None:
        for worker in self._workers:
            worker.send({"do": "exit"})
        for worker in self._workers:
            worker.close()
        self._workers = []
