"""Cleans up what a lost state file left behind: everything carries the name of the state folder's own bridge."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

from . import cgroup, limits, machine, network, nspawn


def remove(directory: Path) -> bool:
    """End and remove the hosts of a state folder that has no state file; True when there were any.

    Only processes inside the control groups of this folder's bridge, and mounts below the folder, are touched.
    """
    bridge = network.bridge_name(directory)
    if not network.exists(bridge) and not cgroup.all_processes(bridge):
        return False
    deadline = time.monotonic() + 10
    while (left := cgroup.all_processes(bridge)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    for folder in nspawn.PROPAGATE.glob(f"{bridge}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    for point in mounts(directory):
        machine.run(["umount", point])
    for folder in directory.glob("gpu*") if directory.is_dir() else []:
        shutil.rmtree(folder, ignore_errors=True)
    cgroup.remove(bridge)
    network.remove(bridge)
    limits.restore()
    return True


def mounts(directory: Path) -> list[str]:
    """Return the mount points below a folder, deepest first."""
    found = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return sorted((point for point in found if point.startswith(f"{directory}/")), key=len, reverse=True)
