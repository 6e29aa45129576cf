"""The fact of a host, to start from."""

from __future__ import annotations

import copy
from typing import Any

from tests.unit.config.samples import put

#: A host of the base `existing-plugin` after the roles: one T4, driver and toolkit on the host.
FACT: dict[str, Any] = {
    "schema": 1,
    "settings": "0123456789ab",
    "gpus": [{"slot": "0000:17:00.0", "device": "1eb8", "model": "T4"}],
    "driver": {"owner": "host", "version": "580.126.09", "flavour": "open", "library": "580.126.09",
               "wanted": "580.126.09", "method": "cuda_repo"},
    "fabric": {"platform": "none", "version": None, "unit": None, "ready": None},
    "toolkit": {"version": "1.20.0"},
    "runtime": {"owner": "containerd", "handler": "nvidia", "default": False},
    "mig": {"layout": None, "applied": False, "modes": [None], "pending": [None]},
    "reboot_required": [],
    "healthy": True,
    "last_good": {"version": "580.126.09", "branch": 580, "flavour": "open"},
}  # fmt: skip
#: The same host where the operator brings driver and toolkit.
BARE: dict[str, Any] = {
    "driver": {"owner": "other", "version": "595.91.07", "flavour": "open", "library": None},
    "toolkit.version": None,
    "runtime": {"owner": "containerd", "handler": None, "default": False},
}


def fact(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """FACT with changes by path."""
    data = copy.deepcopy(FACT)
    for path, value in (changes or {}).items():
        put(data, path, copy.deepcopy(value))
    return data
