"""Starts and stops the package server of a set of hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import cgroup, machine, nspawn, paths, state
from .errors import TwinError

RULES = "server-rules.json"
FILES = (RULES, "server-port", "requests.log", "server.log")


def start(folder: Path, address: str, bridge: str, directory: Path) -> state.ServerState:
    """Serve `folder` on `address` and return the process with its port. Raises TwinError when it does not come up."""
    for name in FILES:
        (directory / name).unlink(missing_ok=True)
    command = [sys.executable, "-m", "twin.hosts.server", "--root", str(folder), "--address", address, "--state",
               str(directory)]  # fmt: skip
    groups = cgroup.create(bridge, "server")  # so that it is found even when the state file is lost
    command = nspawn.entering(groups, command)
    env = {**os.environ, "PYTHONPATH": str(paths.PROJECT)}
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=paths.PROJECT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    started = machine.start_time(process.pid) or 0
    port = directory / "server-port"
    deadline = time.monotonic() + 20
    while not port.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise TwinError(f"the package server did not start:\n{(directory / 'server.log').read_text()}")
        time.sleep(0.02)
    return state.ServerState(process.pid, started, int(port.read_text()))


def stop(server: state.ServerState, directory: Path) -> None:
    """End the recorded server process, if it still is that process, and remove its files."""
    if machine.is_running(server.pid, server.started):
        os.kill(server.pid, signal.SIGTERM)
        deadline = time.monotonic() + 5
        while machine.is_running(server.pid, server.started) and time.monotonic() < deadline:
            time.sleep(0.02)
        if machine.is_running(server.pid, server.started):
            os.kill(server.pid, signal.SIGKILL)
    for name in FILES:
        (directory / name).unlink(missing_ok=True)
