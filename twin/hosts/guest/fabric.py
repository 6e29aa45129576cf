"""State of the NVLink fabric, as each GPU reports it."""

from __future__ import annotations

import time
from typing import Any

from . import base

NONE = ("N/A", "N/A")
WAITING = ("In Progress", "N/A")
DONE = ("Completed", "Success")
NVLSM = "opt/nvidia/nvlsm/sbin/nvlsm"


def seconds() -> float:
    """Return seconds since boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def of_gpu() -> tuple[str, str]:
    """Return state and status: N/A without a fabric, waiting until fabric manager has configured it."""
    settings: dict[str, Any] = base.scenario().get("fabric") or {}
    if not settings.get("present"):
        return NONE
    broken = base.failure("fabric")
    fabric = base.boot_state()["fabric"]
    if "since" not in fabric:
        return WAITING
    if seconds() - fabric["since"] < settings.get("settle_seconds", 1):
        return WAITING
    if settings.get("subnet_manager") and not fabric.get("subnet_manager"):
        return WAITING  # fourth-generation switches stay unconfigured without NVLSM
    if broken == "never":
        return WAITING
    return ("Completed", str(broken)) if broken else DONE


def configured() -> None:
    """Record that fabric manager has begun to configure the fabric."""
    with base.locked():
        state = base.boot_state()
        subnet = (base.ROOT / NVLSM).exists() and "ib_umad" in state["modules"]
        state["fabric"] = {"since": seconds(), "subnet_manager": subnet}
        base.save_boot_state(state)
