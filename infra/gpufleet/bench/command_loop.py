"""The user's own command as a workload: each matching output line, or each whole run, is one step."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence


class CommandLoop:
    """Runs ``command``; a step is done at each output line that matches ``step_pattern``.

    Without a pattern the command is run again and again and each run is one step. Raises RuntimeError with
    the command's last words when it fails or ends before a step.
    """

    def __init__(self, command: Sequence[str], step_pattern: str | None) -> None:
        self._command = list(command)
        self._pattern = re.compile(step_pattern) if step_pattern else None
        self._process: subprocess.Popen[str] | None = None
        self.calibration: dict[str, float] = {}

    def _start(self) -> subprocess.Popen[str]:
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise RuntimeError(f"{self._command[0]}: {error.strerror}") from None
        return self._process

    def rest(self) -> float:
        return 0.0

    def step(self) -> None:
        process = self._process or self._start()
        assert process.stdout is not None
        last = ""
        for line in process.stdout:
            last = line.strip() or last
            if self._pattern and self._pattern.search(line):
                return
        code = process.wait()
        self._process = None
        if code or self._pattern:
            what = f"exit code {code}" if code else "ended without another step"
            raise RuntimeError(f"{self._command[0]}: {what}; last output: {last[:200]}")

    def drain(self) -> None:
        """A command that prints steps goes on: it is stopped only by ``close``."""

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def memory(self) -> tuple[int, int]:
        return 0, 0

    def describe(self) -> dict[str, object]:
        return {}
