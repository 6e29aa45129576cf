"""Processes of a twin: started apart from the terminal, recorded by pid and start time, stopped by that record only.

A pid alone may by now belong to somebody else; pid and start time together do not.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from twin.errors import TwinError

LAUNCH = Path(__file__).with_name("launch.py")


@dataclass(frozen=True)
class Record:
    """One started process: ``started`` is its start time as the kernel (or ps) tells it, compared as text."""

    name: str
    pid: int
    started: str
    command: tuple[str, ...]
    path: Path


def start_time(pid: int) -> str | None:
    """Return when the process started (an opaque text), or None when it is gone or only waits to be reaped."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()  # the name before may hold spaces
        return None if fields[0] in "ZX" else fields[19]
    shown = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = shown.stdout.strip().partition(" ")
    return started.strip() if started and not state.startswith("Z") else None


def read(run_dir: Path) -> dict[str, Record]:
    """Return the records under run_dir by name; a file that is not a record is refused with TwinError."""
    found = {}
    for path in sorted(run_dir.glob("*.json")):
        try:
            data = json.loads(path.read_text())
            record = Record(data["name"], int(data["pid"]), str(data["started"]), tuple(data["command"]), path)
        except (ValueError, KeyError, TypeError) as error:
            raise TwinError(f"{path} is not a process record ({error}); remove the file by hand") from error
        found[record.name] = record
    return found


def alive(record: Record) -> bool:
    """Say whether the recorded process, and no other with its pid, runs."""
    _reap(record.pid)
    return start_time(record.pid) == record.started


def _ended(record: Record) -> bool:
    return not alive(record)


def _reap(pid: int) -> None:
    with contextlib.suppress(OSError):  # not a child of ours
        os.waitpid(pid, os.WNOHANG)


def spawn(
    name: str,
    command: Sequence[str | Path],
    *,
    run_dir: Path,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    die_with_parent: bool = False,
) -> Record:
    """Start command in its own session, output to the log file, and return its record (also under run_dir).

    Raises TwinError when it does not get as far as its record within 20 seconds.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    path = run_dir / f"{name}.json"
    path.unlink(missing_ok=True)
    words = [str(word) for word in command]
    launch = [sys.executable, "-S", "-B", str(LAUNCH), str(path), "with-parent" if die_with_parent else "keep", name]
    with log.open("ab") as out:
        process = subprocess.Popen(
            launch + words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=env, cwd=cwd
        )
    until(
        path.exists, 20, lambda: f"{name} could not be started:\n{tail(log)}", gone=lambda: process.poll() is not None
    )
    process.returncode = 0  # from here on the record is the handle: no warning about a child left running
    return read(run_dir)[name]


def foreground(name: str, command: Sequence[str | Path], *, run_dir: Path, env: Mapping[str, str], cwd: Path) -> int:
    """Run a command in the terminal, recorded like the others, and return its exit code.

    It is told to end when this process is killed, so that no half-watched command goes on alone.
    """
    path = run_dir / f"{name}.json"
    launch = [sys.executable, "-S", "-B", str(LAUNCH), str(path), "with-parent", name]
    process = subprocess.Popen(launch + [str(word) for word in command], stdin=subprocess.DEVNULL, env=env, cwd=cwd)
    try:
        return process.wait()
    except KeyboardInterrupt:  # the terminal has told the command too; let it tidy up
        process.wait()
        raise
    finally:
        path.unlink(missing_ok=True)


def stop(records: Iterable[Record], seconds: float = 20.0) -> None:
    """End the recorded processes, in the order given, and remove their records.

    Each gets SIGTERM; what still runs after its share of the time gets SIGKILL. Raises TwinError for one that
    cannot be ended (its record stays).
    """
    stubborn = []
    for record in records:
        for sent in (signal.SIGTERM, signal.SIGKILL):
            if not alive(record):
                break
            try:
                os.kill(record.pid, sent)
            except ProcessLookupError:
                break
            except PermissionError:
                stubborn.append(record)
                break
            _settle(partial(_ended, record), seconds if sent == signal.SIGTERM else 5.0)
        if alive(record):
            stubborn.append(record)
        else:
            record.path.unlink(missing_ok=True)
    if stubborn:
        names = ", ".join(sorted({f"{record.name} (pid {record.pid})" for record in stubborn}))
        raise TwinError(f"these processes could not be ended: {names}")


def _settle(done: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.03)
    return True


def until(
    done: Callable[[], bool], seconds: float, message: Callable[[], str], gone: Callable[[], bool] | None = None
) -> None:
    """Wait until done() is true. Raises TwinError with message() after seconds, or at once when gone() is true."""
    end = time.monotonic() + seconds
    while not done():
        if (gone is not None and gone() and not done()) or time.monotonic() > end:
            raise TwinError(message())
        time.sleep(0.05)


def tail(log: Path, lines: int = 12) -> str:
    """Return the last lines of a log, indented, or a word saying that it is empty."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        text = ""
    last = [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join("    " + line[:400] for line in last) or f"    ({log} is empty)"
