"""Where the host twin keeps things: shared, rebuildable parts in the user's cache, running state in the checkout."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
PROJECT = PACKAGE.parents[1]
KEEP_DAYS = 14


def cache_dir() -> Path:
    """Return the per-user cache folder of the project (`$XDG_CACHE_HOME/gpufleet`, default `~/.cache/gpufleet`)."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "gpufleet"


def roots_dir() -> Path:
    """Return the folder of finished Debian roots and layers, one per name and version."""
    return cache_dir() / "roots"


def default_state_dir() -> Path:
    """Return the state folder of this checkout, `.twin/hosts`."""
    return PROJECT / ".twin" / "hosts"


def used(target: Path) -> Path:
    """Note that a cached tree is in use, and delete its siblings (same name up to the last dash) that nobody wants.

    Unwanted is what was not used for KEEP_DAYS and is no part of a mount.
    """
    os.utime(target)
    stem = target.name.rpartition("-")[0]
    mounts = Path("/proc/mounts").read_text()
    for sibling in target.parent.iterdir():
        old = time.time() - sibling.stat().st_mtime > KEEP_DAYS * 86400
        same = sibling.is_dir() and sibling.name.rpartition("-")[0] == stem
        if sibling != target and same and old and str(sibling) not in mounts:
            shutil.rmtree(sibling, ignore_errors=True)
            for suffix in (".log", ".lock"):
                sibling.with_name(sibling.name + suffix).unlink(missing_ok=True)
    return target


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive file lock at `path` (created when missing) while the block runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
