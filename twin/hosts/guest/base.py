"""What all simulated tools of a host share: paths, scenario, state that a boot clears, state that survives it.

This folder runs on the host itself with nothing but Python's standard library. `TWIN_ROOT` moves every path for tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("TWIN_ROOT", "/"))
TWIN = ROOT / "twin"


def kernel() -> str:
    """Return the running kernel's release."""
    return os.environ.get("TWIN_KERNEL") or os.uname().release


def module_dir() -> Path:
    """Return the module folder of the running kernel."""
    return ROOT / "lib/modules" / kernel()


def scenario() -> dict[str, Any]:
    """Return the host's scenario, with every GPU resolved to its hardware facts. Read it, do not change it."""
    file = TWIN / "scenario.json"
    facts = file.stat()
    return _parsed(str(file), facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=1)
def _parsed(file: str, changed_ns: int, size: int) -> dict[str, Any]:
    """Parse the scenario once per change: a report asks for it many times."""
    found: dict[str, Any] = json.loads(Path(file).read_text())
    return found


def failure(name: str) -> Any:
    """Return the failure that the scenario asks for under this name, or None."""
    return (scenario().get("failures") or {}).get(name)


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Hold the state lock: tools run at the same time, and each reads, changes and writes."""
    with (TWIN / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _load(name: str, empty: dict[str, Any]) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((TWIN / name).read_text())
    except FileNotFoundError:
        return empty
    return found


def _save(name: str, value: dict[str, Any]) -> None:
    temporary = TWIN / f"{name}.new"
    temporary.write_text(json.dumps(value, indent=1))
    temporary.replace(TWIN / name)


def boot_state() -> dict[str, Any]:
    """Return what a reboot clears: loaded modules, per-GPU settings, fabric, GPU instances."""
    return _load("boot.json", {"modules": {}, "gpus": {}, "fabric": {}})


def save_boot_state(value: dict[str, Any]) -> None:
    """Write what a reboot clears."""
    _save("boot.json", value)


def lasting_state() -> dict[str, Any]:
    """Return what survives a reboot: MIG and ECC modes, enrolled and pending machine-owner keys."""
    return _load("lasting.json", {"gpus": {}, "mok": {"enrolled": [], "pending": []}})


def save_lasting_state(value: dict[str, Any]) -> None:
    """Write what survives a reboot."""
    _save("lasting.json", value)


def gpus() -> list[dict[str, Any]]:
    """Return the GPUs that are on the bus now; a GPU that fell off is listed under failures."""
    lost = set(failure("gpu_lost") or [])
    return [gpu for gpu in scenario()["gpus"] if gpu["index"] not in lost]


def version_key(text: str) -> tuple[int, ...]:
    """Return a driver version as numbers, field by field."""
    return tuple(int(part) for part in text.split("."))


def branch(version: str) -> int:
    """Return the branch of a driver version."""
    return int(version.split(".", maxsplit=1)[0])


def kernel_log(message: str, level: int = 3) -> None:
    """Write one line to the host's kernel log, which dmesg and `journalctl -k` print."""
    seconds = time.clock_gettime(time.CLOCK_BOOTTIME)
    with (TWIN / "kmsg").open("a") as handle:
        handle.write(f"<{level}>[{seconds:12.6f}] {message}\n")


def holders() -> list[dict[str, Any]]:
    """Return the processes that hold the GPUs open: daemons of the driver and workloads of the scenario's tests."""
    found = []
    for file in sorted((TWIN / "holders").glob("*")):
        pid = int(file.name)
        if (Path("/proc") / str(pid)).exists():
            found.append({"pid": pid, **json.loads(file.read_text())})
        else:
            file.unlink(missing_ok=True)
    return found


def hold(name: str, kind: str) -> None:
    """Record the calling process as one that holds the GPUs open."""
    folder = TWIN / "holders"
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).write_text(json.dumps({"name": name, "kind": kind}))
