"""Health, settings, fact file, drift."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gpufleet.hosts import (
    health,
    paths,
    verify,
)
from gpufleet.hosts.work import DriverWork, HealthWork, Problem, Request, Runfile, ToolkitWork, Work

from . import plans
from .converged import V2, VERSION, converged, on, smi
from .hosts import codes, file, gpus, merged, package, unit


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"driver": None, "smi": None, "kernel": {"modules": {}}}, "GF770"),
        ({"driver": None, "smi": None, "kernel": {"module_file": None, "modules": {}}}, "GF780"),
        ({"driver": {"version": "580.95.05", "flavour": "open"}}, "GF770"),
        ({"driver": {"version": VERSION, "flavour": "proprietary"}}, "GF770"),
        ({"library": "580.178.04"}, "GF771"),
        ({"hardware": {"device_files": ["nvidia0"]}}, "GF775"),
        ({"kernel": {"modules": {"nouveau": 1}, "initramfs": {"path": "/boot/x", "mtime": 1.0}}}, "GF781"),
        ({"smi": smi({"ecc_uncorrectable": 2})}, "GF776"),
        ({"smi": smi({"remap_failed": True})}, "GF776"),
        ({"smi": smi({"recovery_action": "Reset"})}, "GF776"),
        ({"kernel": {"log": [{"id": "rm-init", "line": "NVRM: RmInitAdapter failed! (0x62:0xffff:2477)"}]}}, "GF776"),
        ({"smi": {"driver_version": None, "error": 124, "gpus": []}}, "GF786"),
        ({"hardware": {"gpus": gpus("1eb8", 2)}}, "GF787"),
    ],
)
def test_health(changes: dict[str, Any], code: str) -> None:
    assert code in codes(health.health(on(merged(converged(), changes))))


def test_a_warning_of_the_kernel_log_is_no_failure() -> None:
    log = {"log": [{"id": "bar", "line": "BAR 1: can't assign"}]}
    assert health.health(on(converged(kernel=log))) == []


def test_what_a_reboot_mends_does_not_stop_the_run_but_is_drift() -> None:
    reading = merged(converged(), {"driver": None, "smi": None, "kernel": {"modules": {"nouveau": 1}}})
    plan = plans.health(on(reading))
    assert codes(plan["problems"]) == ["GF778"] and plan["healthy"] is False
    assert {"GF770", "GF778", "GF781"} <= set(codes(verify.verify(on(reading))[0]))


def test_settings_that_a_reboot_clears_are_a_unit() -> None:
    wanted = {
        "gpu_health_power_limit_watts": 60,
        "gpu_health_time_slice": "long",
        "gpu_health_lock_clocks": "1200,1410",
    }
    plan = plans.health(on(converged(), **wanted))
    (unit_file,) = plan["files"]
    for part in ("-pl 60", "--set-timeslice=3", "-lgc 1200,1410", "TimeoutStartSec="):
        assert part in unit_file["content"]
    applied = converged(
        files={paths.SETTINGS_UNIT: file(unit_file["content"])},
        time_slice=["long"],
        smi=smi({"power_limit_w": 60.0}),
        units={"gpufleet-gpu-settings.service": unit()},
    )
    assert plans.describe(plans.health(on(applied, **wanted))) == []
    lost = merged(applied, {"smi": smi({"power_limit_w": 70.0})})
    assert plans.health(on(lost, **wanted))["units"] == [
        {"name": "gpufleet-gpu-settings.service", "state": "restarted"}
    ]
    gone = plans.health(on(applied))
    assert gone["absent"] == [paths.SETTINGS_UNIT]


def test_the_fact_file_remembers_the_last_good_driver() -> None:
    good = health.facts(on(converged()), healthy=True)
    assert good["last_good"] == {"version": VERSION, "branch": 580, "flavour": "open"}
    assert good["runtime"] == {"owner": "containerd", "handler": "nvidia", "default": False}
    reading = converged(files={paths.FACTS: file(json.dumps(good))}, driver={"version": "595.91.07", "flavour": "open"})
    bad = health.facts(on(reading, gpu_driver_version="595.91.07"), healthy=False)
    assert bad["last_good"]["version"] == VERSION and bad["driver"]["version"] == "595.91.07"
    assert health.last_good(on(reading)) == good["last_good"]


def test_the_fact_file_is_the_same_for_the_same_state() -> None:
    context = on(converged())
    (first,) = health.facts_file(context, healthy=True, check_mode=False)
    again = on(converged(files={paths.FACTS: file(first.content)}))
    assert health.facts_file(again, healthy=True, check_mode=False) == []
    assert health.facts_file(again, healthy=True, check_mode=True) == []
    changed = on(converged(files={paths.FACTS: file(first.content)}), gpu_driver_version="580.178.04")
    assert health.facts_file(changed, healthy=True, check_mode=True) != []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"packages": {"nvidia-open": package(f"{VERSION}-1")}}, "GF784"),
        ({"units": {"nvidia-persistenced.service": unit("failed", "enabled")}}, "GF774"),
        ({"files": {paths.BLACKLIST: file("")}}, "GF779"),
        ({"runtime": {"containerd_dump": V2}, "files": {paths.CONTAINERD_CONFIG: file(V2)}}, "GF783"),
        ({"runtime": {"cri_runtimes": '{"config": {"containerd": {"runtimes": {"runc": {}}}}}'}}, "GF783"),
        ({"boot_cycles": [{"units": ["a.service", "docker.service"], "lost": "docker.service"}]}, "GF790"),
    ],
)
def test_drift(changes: dict[str, Any], code: str) -> None:
    assert code in codes(verify.verify(on(merged(converged(), changes)))[0])


def test_what_is_no_drift() -> None:
    """Cycles among units of others; the CRI's own words for the runtimes that it knows."""
    changes = {
        "boot_cycles": [{"units": ["a.service", "b.service"], "lost": "a.service"}],
        "runtime": {"cri_runtimes": '{"config": {"containerd": {"runtimes": {"nvidia": {}, "runc": {}}}}}'},
    }
    assert verify.verify(on(merged(converged(), changes)))[0] == []


def test_a_removed_driver_package_is_drift() -> None:
    reading = converged()
    del reading["packages"]["nvidia-open"]
    assert "GF779" in codes(verify.verify(on(reading))[0])


def test_mig_drift() -> None:
    reading = converged(
        hardware={"gpus": gpus("20b2", 1)}, units={"nvidia-mig-manager.service": unit(start_limit="infinity")}
    )
    found = codes(verify.verify(on(reading, gpu_mig_layout="all-1g.10gb"))[0])
    assert "GF777" in found and "GF788" in found


@pytest.mark.parametrize("text", ["{x", "[]", "null", '{"last_good": 5}', '{"last_good": {"version": "580"}}'])
def test_a_fact_file_that_is_broken_names_no_driver_and_stops_nobody(text: str) -> None:
    broken = on(converged(files={paths.FACTS: file(text)}))
    assert health.last_good(broken) is None
    assert health.facts(broken, healthy=True)["last_good"]["version"] == VERSION
    assert health.facts_file(broken, healthy=True, check_mode=True) and verify.verify(broken)[0] == []


@pytest.mark.parametrize(
    ("work", "due"),
    [
        (DriverWork(reboot=["x"]), True), (DriverWork(runfile=Runfile(uninstall=True)), True), (DriverWork(), False),
        (HealthWork(waiting=["GPU 0"]), True), (HealthWork(reboot=["x"]), True), (HealthWork(), False),
        (ToolkitWork(hints={"a": 1}), True), (ToolkitWork(owner="docker"), False),
        (Work(problems=[Problem("GF770")]), True), (Work(resolve=Request(())), True), (Work(hold=["a"]), True),
    ],
)  # fmt: skip
def test_what_makes_the_site_run_enter_the_roles(work: Work, due: bool) -> None:
    assert work.due is due
