"""The fabric's plan and state."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.hosts import (
    fabric,
    paths,
    verify,
)

from . import plans
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
    good = plans.fabric(on(converged(**HGX)))
    assert good["units"] == [{"name": "nvidia-fabricmanager.service", "enabled": True, "state": "started"}]
    near = merged(HGX, {"packages": {"nvidia-fabricmanager": package("580.126.08-1")}})
    bad = plans.fabric(on(converged(**near)))
    assert codes(bad["problems"]) == ["GF772"] and bad["units"] == []
    assert "GF772" in codes(verify.verify(on(converged(**near)))[0])


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


def test_imex_runs_where_its_trays_are_known() -> None:
    tray = converged(system={"architecture": "aarch64"}, hardware={"gpus": gpus("2941", 4)})
    wanted = [w["name"] for w in plans.driver_want(on(tray))]
    assert "nvidia-imex" in wanted and "nvidia-fabricmanager" not in wanted
    alone = on(tray)
    assert plans.describe(plans.fabric(alone)) == []
    domain = on(tray, gpu_fabric_imex_nodes=["10.0.0.1", "10.0.0.2"])
    plan = plans.fabric(domain)
    assert plan["files"][0] == {"path": paths.IMEX_NODES, "content": "10.0.0.1\n10.0.0.2\n", "mode": "0644"}
    assert plan["units"] == [{"name": "nvidia-imex.service", "enabled": True, "state": "started"}]
