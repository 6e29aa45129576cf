"""MIG layouts against what a GPU can hold."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from gpufleet.catalog import gpu_models
from gpufleet.hosts import mig, paths
from gpufleet.hosts.mig_fit import why_not

from . import plans
from .hosts import answer, codes, file, gpus, host, package, probe, unit


def layout(**devices: int) -> dict[str, Any]:
    profiles = {name.replace("_", "."): count for name, count in devices.items()}
    return {"own": [{"devices": "all", "mig-enabled": True, "mig-devices": profiles}]}


A100 = probe(hardware={"gpus": gpus("20b2", 2)})


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        ({"1g.10gb": 7}, ""),
        ({"3g.40gb": 1, "4g.40gb": 1}, ""),
        ({"1g.20gb": 4}, ""),
        ({"7g.80gb": 2}, "7g.80gb fits 1 times, wanted 2"),
        ({"1g.5gb": 7}, "no profile 1g.5gb"),
        ({"4g.40gb": 1, "2g.20gb": 2}, "8 compute slices wanted, the GPU has 7"),
        ({"1g.20gb": 4, "1g.10gb": 1}, "90 GB wanted, the GPU has 80"),
    ],
)
def test_what_fits_on_one_gpu(profiles: dict[str, int], expected: str) -> None:
    assert why_not(gpu_models()["A100-SXM4-80GB"], profiles) == expected


def test_full_layouts_of_every_model_fit() -> None:
    for model in gpu_models().values():
        for profile, count in model.mig_profiles.items():
            assert why_not(model, {profile: count}) == "", (model.id, profile)


def test_a_layout_is_checked_before_it_is_applied() -> None:
    variables = {"gpu_mig_layout": "own", "gpu_mig_layouts": layout(**{"7g.80gb": 2})}
    assert codes(mig.problems_of(host(A100, **variables))) == ["GF753"]
    assert codes(mig.problems_of(host(A100, gpu_mig_layout="all-1g.10gb"))) == []
    assert codes(mig.problems_of(host(A100, gpu_mig_layout="all-1g.5gb"))) == ["GF755"]


def test_models_and_drivers_without_mig() -> None:
    assert codes(mig.problems_of(host(gpu_mig_layout="all-1g.10gb"))) == ["GF754"]
    b200 = probe(hardware={"gpus": gpus("2901", 8)})
    old = host(b200, gpu_mig_layout="all-1g.23gb", gpu_driver_version="570.124.06")
    assert codes(mig.problems_of(old)) == ["GF754"]


def test_a_layout_for_some_gpus() -> None:
    own = {
        "own": [
            {"devices": [0], "mig-enabled": True, "mig-devices": {"7g.80gb": 2}},
            {"devices": [1], "mig-enabled": False},
        ]
    }
    assert codes(mig.problems_of(host(A100, gpu_mig_layout="own", gpu_mig_layouts=own))) == ["GF753"]
    own["own"][0]["devices"] = [5]
    assert codes(mig.problems_of(host(A100, gpu_mig_layout="own", gpu_mig_layouts=own))) == []


def converged(**changes: Any) -> dict[str, Any]:
    text = mig.config_text("all-1g.10gb", mig.layout_of(host(A100, gpu_mig_layout="all-1g.10gb"))[0] or [])
    base: dict[str, Any] = {
        "hardware": {"gpus": gpus("20b2", 2)},
        "packages": {"nvidia-mig-manager": package("0.15.0-1", hold=True)},
        "files": {paths.MIG_LAYOUT: file(text), paths.MIG_OVERRIDE: file(mig.override_text("all-1g.10gb", 480))},
        "units": {mig.UNIT: unit()},
        "mig": {"layout": "all-1g.10gb", "matches": True},
    }
    return probe(**{**base, **changes})


def test_nothing_is_left_to_do_on_a_host_with_its_layout() -> None:
    plan = plans.mig(host(converged(), gpu_mig_layout="all-1g.10gb"))
    assert (plan["files"], plan["units"], plan["apply"], plan["hold"], plan["reload"]) == ([], [], False, [], False)


def test_instances_that_a_reboot_lost_are_applied_again() -> None:
    plan = plans.mig(host(converged(mig={"layout": "all-1g.10gb", "matches": False}), gpu_mig_layout="all-1g.10gb"))
    assert plan["apply"]


def test_the_layout_has_a_file_of_its_own_and_the_unit_a_limit() -> None:
    asked = host(A100, gpu_mig_layout="all-1g.10gb")
    want = plans.mig(asked)["resolve"]["want"]
    plan = plans.mig(host(A100, answer(want), gpu_mig_layout="all-1g.10gb"))
    written = {f["path"]: f["content"] for f in plan["files"]}
    assert set(written) == {"/etc/nvidia-mig-manager/gpufleet.yaml", paths.MIG_OVERRIDE}
    configs = yaml.safe_load(written["/etc/nvidia-mig-manager/gpufleet.yaml"])["mig-configs"]
    assert configs == {"all-1g.10gb": [{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}]}
    assert (
        "TimeoutStartSec=480" in written[paths.MIG_OVERRIDE]
        and plan["apply"]
        and plan["hold"] == ["nvidia-mig-manager"]
    )
    assert "MIG_PARTED_CONFIG_FILE=/etc/nvidia-mig-manager/gpufleet.yaml" in written[paths.MIG_OVERRIDE]


def test_a_pending_mode_is_a_required_reboot() -> None:
    state = {"driver_version": "x", "gpus": [{"mig_current": "Disabled", "mig_pending": "Enabled"}]}
    plan = plans.mig(host(converged(smi=state), gpu_mig_layout="all-1g.10gb"))
    assert plan["reboot"] == ["MIG mode is pending on 1 GPUs"]


def test_drm_is_unloaded_before_the_reset() -> None:
    changes: dict[str, Any] = {
        "mig": {},
        "kernel": {**A100["kernel"], "modules": {"nvidia": 1, "nvidia_modeset": 1, "nvidia_drm": 0}},
    }
    assert plans.mig(host(converged(**changes), gpu_mig_layout="all-1g.10gb"))["unload"] == [
        "nvidia_drm",
        "nvidia_modeset",
    ]


def test_a_running_workload_keeps_the_layout() -> None:
    changes: dict[str, Any] = {"mig": {}, "holders": [{"pid": 7, "name": "python3"}]}
    assert codes(plans.mig(host(converged(**changes), gpu_mig_layout="all-1g.10gb"))["problems"]) == ["GF750"]
    drained = host(converged(**changes), gpu_mig_layout="all-1g.10gb", gpu_node_drained=True)
    assert codes(plans.mig(drained)["problems"]) == []


def test_a_layout_that_leaves_the_plan_takes_the_unit_along() -> None:
    """nvidia-mig-manager without our selection would apply one of its own at the next boot."""
    plan = plans.mig(host(converged()))
    assert set(plan["absent"]) == {paths.MIG_LAYOUT, paths.MIG_OVERRIDE}
    assert plan["units"] == [{"name": mig.UNIT, "enabled": False}]
    theirs = converged()
    for path in (paths.MIG_LAYOUT, paths.MIG_OVERRIDE):
        del theirs["files"][path]
    assert plans.mig(host(theirs))["units"] == []  # a unit that is somebody else's


def test_instances_that_are_gone_are_something_to_do_though_nothing_else_differs() -> None:
    """The site run asks this before it enters the roles."""
    lost = mig.plan_mig(host(converged(mig={"layout": "all-1g.10gb", "matches": False}), gpu_mig_layout="all-1g.10gb"))
    assert lost.due and not mig.plan_mig(host(converged(), gpu_mig_layout="all-1g.10gb")).due
