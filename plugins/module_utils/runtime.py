"""Container runtimes of a host: sockets, units, configuration, versions. Reads only."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Callable, Iterable

SOCKETS = (
    "/run/containerd/containerd.sock",
    "/run/docker.sock",
    "/run/crio/crio.sock",
    "/run/k3s/containerd/containerd.sock",
)
UNIT_PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "UnitFileState",
    "Result",
    "NeedDaemonReload",
    "StateChangeTimestampMonotonic",
    "TimeoutStartUSec",
)


def sockets(exists: Callable[[str], bool]) -> list[str]:
    """Which of the known runtime sockets exist."""
    return [path for path in SOCKETS if exists(path)]


def units(text: str, now_monotonic: float | None = None, now: float | None = None) -> dict[str, Any]:
    """`systemctl show -p ...` of several units -> name -> {"load", "active", "enabled", "result", "reload", "since",
    "start_limit_us"}.

    since is the start time in seconds of the epoch, 0 when the unit is not active. Units that do not exist
    are left out.
    """
    if now_monotonic is None:
        now_monotonic = time.clock_gettime(time.CLOCK_MONOTONIC)
    if now is None:
        now = time.time()
    found = {}
    for block in text.strip().split("\n\n"):
        row = dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
        if not row.get("Id") or row.get("LoadState") == "not-found":
            continue
        started = int(row.get("StateChangeTimestampMonotonic") or 0) / 1e6
        active = row.get("ActiveState", "")
        found[row["Id"]] = {
            "load": row.get("LoadState", ""),
            "active": active,
            "enabled": row.get("UnitFileState", ""),
            "result": row.get("Result", ""),
            "reload": row.get("NeedDaemonReload") == "yes",
            "since": round(now - (now_monotonic - started), 3) if started and active == "active" else 0,
            "start_limit": row.get("TimeoutStartUSec", ""),
        }
    return found


def boot_cycles(text: str | None) -> list[dict[str, Any]]:
    """What `systemd-analyze verify` prints -> [{"units": [...], "lost": "the job that systemd gives up" or None}].

    systemd names the units of a cycle line by line, then the job that it deletes to break it.
    """
    found, units = [], None
    for line in (text or "").splitlines():
        named = re.findall(r"[\w@.\\:-]+\.(?:service|path|socket|target|timer|mount|slice)\b", line)
        if "ordering cycle on" in line:
            units = named[1:] or named
        elif "Found dependency on" in line and units is not None:
            units += [name for name in named[1:] if name not in units]
        elif "deleted to break ordering cycle" in line and units is not None:
            lost = re.search(r"Job (\S+) deleted", line)
            found.append({"units": units, "lost": lost.group(1).partition("/")[0] if lost else None})
            units = None
    return found


def version_of(text: str | None) -> str | None:
    """Version from what a runtime prints for `--version`, such as 2.1.4, or None."""
    match = re.search(r"\bv?(\d+\.\d+\.\d+)", text or "")
    return match.group(1) if match else None


def file_record(path: str, with_text: bool = True, limit: int = 262144) -> dict[str, Any] | None:
    """{"sha256", "mode", "mtime", "text"} of a file, or None when there is none. text is None for binary files."""
    import hashlib

    try:
        info = os.stat(path)
        with open(path, "rb") as handle:
            data = handle.read(limit)
    except OSError:
        return None
    text = None
    if with_text:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = None
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "mode": "%04o" % (info.st_mode & 0o7777),
        "mtime": round(info.st_mtime, 3),
        "text": text,
    }


def os_release(text: str | None) -> dict[str, str]:
    """The fields of an os-release file, lower-case keys."""
    fields = {}
    for line in (text or "").splitlines():
        match = re.match(r"([A-Z_]+)=(.*)$", line.strip())
        if match:
            fields[match.group(1).lower()] = match.group(2).strip().strip("'\"")
    return fields


# The kernel module's first line.
_LOADING = re.compile(r"NVRM: loading NVIDIA UNIX")


def kernel_log_hits(text: str | None, patterns: Iterable[tuple[str, str]], limit: int = 50) -> list[dict[str, Any]]:
    """Lines of a kernel log that match one of the patterns, the newest `limit`, each with its pattern's id.

    What the driver said before it was loaded last is history: the GPUs have been initialised anew since.
    """
    compiled = [(name, re.compile(pattern)) for name, pattern in patterns]
    hits: list[dict[str, Any]] = []
    for line in (text or "").splitlines():
        if _LOADING.search(line):
            hits = [hit for hit in hits if "NVRM:" not in hit["line"]]
        for name, pattern in compiled:
            if pattern.search(line):
                hits.append({"id": name, "line": line.strip()[:300]})
                break
    return hits[-limit:]
