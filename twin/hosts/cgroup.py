"""One control group per host, so that the systemd of one host never sees the units of another."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path


def hierarchies(mounts: str | None = None) -> list[Path]:
    """Return the mount points that systemd keeps units in: the unified one and, where present, `name=systemd`."""
    text = Path("/proc/self/mounts").read_text() if mounts is None else mounts
    found = []
    for line in text.splitlines():
        fields = line.split()
        if fields[2] == "cgroup2" or (fields[2] == "cgroup" and "name=systemd" in fields[3].split(",")):
            found.append(Path(fields[1]))
    return found


def create(group: str, host: str) -> list[Path]:
    """Make the host's group in each hierarchy and return the folders."""
    folders = [mount / group / host for mount in hierarchies()]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def processes(group: str, host: str) -> list[int]:
    """Return the ids of all processes of a host."""
    found: set[int] = set()
    for mount in hierarchies():
        for file in (mount / group / host).rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(int(line) for line in file.read_text().split())
    return sorted(found)


def all_processes(group: str) -> list[int]:
    """Return the ids of all processes of all hosts, and of the package server."""
    return processes(group, "")


def memory_kib(group: str, host: str) -> int:
    """Return the memory of a host in KiB: proportional set size over its processes."""
    total = 0
    for pid in processes(group, host):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total


def remove(group: str) -> None:
    """Delete the groups of all hosts; processes that are just ending get a moment."""
    for mount in hierarchies():
        top = mount / group
        deadline = time.monotonic() + 3
        while top.exists():
            folders = [path for path in top.rglob("*") if path.is_dir()]
            for folder in [*sorted(folders, key=lambda path: len(path.parts), reverse=True), top]:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            if time.monotonic() > deadline:
                break
            if top.exists():
                time.sleep(0.05)
