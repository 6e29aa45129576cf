"""Scenario files: defaults, extension, and every mistake named in one go."""

from __future__ import annotations

import pytest

from twin.hosts import scenarios
from twin.hosts.errors import TwinError


@pytest.mark.parametrize("name", scenarios.names())
def test_every_shipped_scenario_loads_and_says_what_it_is(name: str) -> None:
    scenario = scenarios.load(name)
    assert scenario.values["description"]
    guest = scenario.guest("gpu01")
    assert len(guest["gpus"]) == sum(entry.get("count", 1) for entry in scenario.values["gpus"])


def test_all_problems_come_together() -> None:
    bad = {"gpu": [], "gpus": [{"model": "T5"}], "runtime": "podman", "nvswitch": "volta", "kernel": {"headers": "old"}}
    with pytest.raises(TwinError) as caught:
        scenarios.load(bad)
    text = str(caught.value)
    for part in ("unknown key 'gpu'", "'T5'", "'podman'", "'volta'", "kernel.headers: 'old'"):
        assert part in text


def test_extends_lays_one_scenario_over_another() -> None:
    scenario = scenarios.load({"extends": "hgx-h100", "failures": {"fabric": "never"}, "fabric": {"settle_seconds": 9}})
    guest = scenario.guest("x")
    assert len(guest["gpus"]) == 8
    assert guest["failures"] == {"fabric": "never"}
    assert guest["fabric"] == {"settle_seconds": 9, "present": True, "subnet_manager": False}


def test_hardware_facts_come_from_the_catalogue() -> None:
    v100 = scenarios.load("v100").guest("x")["gpus"][0]
    assert (v100["architecture"], v100["modules"], v100["newest_branch"], v100["mig"]) == (
        "volta",
        "proprietary",
        580,
        None,
    )
    b200 = scenarios.load("b200").guest("x")
    assert b200["gpus"][0]["modules"] == "open"
    assert b200["nvswitches"] == [] and "SW_MNG" in b200["infiniband"][0]["vpd"]
    a100 = scenarios.load("mig-a100").guest("x")["gpus"][0]
    assert a100["mig"]["profiles"]["1g.10gb"] == 7


def test_identities_differ_between_hosts_and_stay_between_starts() -> None:
    scenario = scenarios.load("hgx-h100")
    first, again, other = (scenario.guest(name) for name in ("gpu01", "gpu01", "gpu02"))
    uuids = [gpu["uuid"] for gpu in first["gpus"]]
    assert uuids == [gpu["uuid"] for gpu in again["gpus"]]
    assert len({*uuids, *(gpu["uuid"] for gpu in other["gpus"])}) == 16


def test_pci_addresses_do_not_clash() -> None:
    for name in scenarios.names():
        guest = scenarios.load(name).guest("x")
        places = [device["pci"] for kind in ("gpus", "nvswitches", "infiniband") for device in guest[kind]]
        assert len(places) == len(set(places)), name


def test_a_debian_is_real_and_the_others_are_only_called_so() -> None:
    suites = {name: scenarios.load({"os": name}).suite for name in scenarios.OS_RELEASE}
    assert suites.pop("debian-13") == "trixie" and set(suites.values()) == {"bookworm"}
    assert {name for name, text in scenarios.OS_RELEASE.items() if text is None} == set(scenarios.SUITES)
    assert scenarios.load("sqv").suite == scenarios.load("debian13").suite == "trixie"
