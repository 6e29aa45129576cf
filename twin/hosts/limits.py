"""A kernel limit that a dozen hosts reach: inotify instances per user, of which each systemd takes about eight."""

from __future__ import annotations

from pathlib import Path

INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
BEFORE = Path("/run/gpufleet-hosts-inotify")  # what the limit was before the first set of hosts on this machine
PER_HOST = 16
SPARE = 512  # for everything else of this user, other sets of hosts included


def raise_for(count: int) -> None:
    """Raise the limit for `count` more hosts where it is too low, and remember what it was."""
    present = int(INSTANCES.read_text())
    wanted = PER_HOST * count + SPARE
    if present < wanted:
        if not BEFORE.exists():
            BEFORE.write_text(str(present))
        INSTANCES.write_text(str(wanted))


def restore() -> None:
    """Set the limit back once no set of hosts is left on this machine (they are known by their bridges)."""
    if BEFORE.exists() and not list(Path("/sys/class/net").glob("gfh*")):
        INSTANCES.write_text(BEFORE.read_text())
        BEFORE.unlink()
