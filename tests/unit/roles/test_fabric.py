"""The fabric's plan and state."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import (
    fabric,
    verify,
)

from .converged import KIT, SET, VERSION, converged, on, smi
from .hosts import codes, gpus, merged, package, packages

HGX: dict[str, Any] = {
    "hardware": {
        "gpus": gpus("2330", 8),
        "nvswitches": [{"slot": "s", "device": "22a3"}],
        "device_files": ["nvidia-uvm"],
    },
    "packages": {**packages(VERSION, *SET, "nvidia-fabricmanager", "libnvidia-nscq"), **packages("1.20.0", *KIT)},
}


def test_fabric_manager_is_enabled_only_at_the_drivers_version() -> None:
    good = fabric.plan_fabric(on(converged(**HGX)), on().target)
    assert good["units"] == [{"name": "nvidia-fabricmanager.service", "enabled": True, "state": "started"}]
    near = merged(HGX, {"packages": {"nvidia-fabricmanager": package("580.126.08-1")}})
    bad = fabric.plan_fabric(on(converged(**near)), on().target)
    assert codes(bad["problems"]) == ["GF772"] and bad["units"] == []
    assert "GF772" in codes(verify.verify(on(converged(**near)))["problems"])


@pytest.mark.parametrize(
    ("state", "status", "waiting", "failed"),
    [
        ("Completed", "Success", 0, 0),
        ("In Progress", None, 8, 0),
        ("Not Started", None, 8, 0),
        ("Completed", "Failure", 0, 8),
        (None, None, 0, 8),
    ],
)
def test_fabric_states(state: str | None, status: str | None, waiting: int, failed: int) -> None:
    report = smi(*[{"fabric_state": state, "fabric_status": status}] * 8)
    found = fabric.fabric_states(on(converged(**HGX, smi=report)))
    assert (len(found[0]), len(found[1])) == (waiting, failed)


def test_ampere_gpus_report_no_fabric_state() -> None:
    a100 = merged(HGX, {"hardware": {"gpus": gpus("20b2", 8), "nvswitches": [{"slot": "s", "device": "1af1"}]}})
    assert fabric.fabric_states(on(converged(**a100, smi=smi(*[{}] * 8)))) == ([], [])
