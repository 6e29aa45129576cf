"""Processes are known by pid and start time, and end only by that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from twin import processes
from twin.errors import TwinError

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
DEAF = [
    sys.executable,
    "-u",
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); time.sleep(600)",
]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    started = []

    def run(command: list[str], name: str = "sleeper", **how: bool) -> processes.Record:
        record = processes.spawn(name, command, run_dir=tmp_path / "run", log=tmp_path / f"{name}.log", **how)
        started.append(record)
        return record

    yield run
    processes.stop(started, 0.1)


def test_a_started_process_is_recorded_and_stopped_by_its_record(start, tmp_path: Path) -> None:
    record = start(SLEEP)
    assert processes.read(tmp_path / "run") == {"sleeper": record}
    assert processes.start_time(record.pid) == record.started
    assert processes.alive(record)
    assert os.getsid(record.pid) == record.pid != os.getsid(0)  # Ctrl-C in the terminal does not reach it
    processes.stop([record])
    assert not processes.alive(record)
    assert processes.read(tmp_path / "run") == {}


def test_a_process_with_the_same_pid_but_another_start_is_left_alone(start) -> None:
    record = start(SLEEP)
    older = replace(record, started="1")
    assert not processes.alive(older)
    processes.stop([older])
    assert processes.alive(record)


def test_what_ignores_the_polite_signal_is_killed(start, tmp_path: Path) -> None:
    record = start(DEAF)
    processes.until(lambda: "deaf" in (tmp_path / "sleeper.log").read_text(), 20, lambda: "it did not start")
    processes.stop([record], 0.3)
    assert not processes.alive(record)


def test_a_process_that_only_waits_to_be_reaped_is_dead() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, not reaped
    assert processes.start_time(child.pid) is None
    child.wait()


def test_a_command_that_does_not_exist_is_reported_with_its_log(start, tmp_path: Path) -> None:
    record = start([str(tmp_path / "nothing")])  # recorded before it could fail
    with pytest.raises(TwinError, match="No such file or directory"):
        processes.until(
            lambda: False,
            20,
            lambda: processes.tail(tmp_path / "sleeper.log"),
            gone=lambda: not processes.alive(record),
        )


def test_no_process_outlives_a_killed_starter_unrecorded(tmp_path: Path) -> None:
    """A starter that is killed leaves a record of what it started, or nothing running."""
    code = (
        "import sys; from pathlib import Path; from twin import processes as p\n"
        f"p.spawn('sleeper', {SLEEP!r}, run_dir=Path({str(tmp_path)!r}) / 'run', log=Path({str(tmp_path)!r}) / 'log')\n"
        "print('ready', flush=True); import time; time.sleep(600)"
    )
    root = Path(processes.__file__).parent.parent
    starter = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    assert starter.stdout.readline() == "ready\n"
    starter.kill()
    starter.wait()
    record = processes.read(tmp_path / "run")["sleeper"]
    assert processes.alive(record)
    processes.stop([record])
    assert not processes.alive(record)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a process to its parent")
def test_processes_of_tests_end_with_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from twin import processes as p\n"
        f"folder = Path({str(tmp_path)!r})\n"
        f"r = p.spawn('sleeper', {SLEEP!r}, run_dir=folder / 'run', log=folder / 'log', die_with_parent=True)\n"
        "print(r.pid, flush=True); import time; time.sleep(600)"
    )
    root = Path(processes.__file__).parent.parent
    starter = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    starter.stdout.readline()
    record = processes.read(tmp_path / "run")["sleeper"]
    assert processes.alive(record)
    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()
    processes.until(lambda: not processes.alive(record), 20, lambda: "it outlived its parent")


def test_a_foreground_command_gives_its_exit_code_and_leaves_no_record(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit(3)"]
    code = processes.foreground("pulumi", command, run_dir=tmp_path, env=dict(os.environ), cwd=tmp_path)
    assert code == 3
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_record_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "etcd.json").write_text('{"name": "etcd"}')
    with pytest.raises(TwinError, match=r"etcd\.json is not a process record"):
        processes.read(tmp_path)
