"""Where the host twin keeps things: shared, rebuildable parts in the user's cache, running state in the checkout."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
PROJECT = PACKAGE.parents[1]


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


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive file lock at `path` (created when missing) while the block runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
