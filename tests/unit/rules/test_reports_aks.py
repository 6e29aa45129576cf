"""What the plan says of the rows RP-34 to RP-45 of the reports about AKS, and of others of their kinds."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from gpufleet.catalog import aks_versions
from gpufleet.rules import kubernetes

from tests.unit.config.samples import REMOVE, compile_base, told

GROUP = "6d0c1e2f-0a3b-4c5d-8e9f-112233445566"
TEAM = {"name": "vision", "namespace": "vision", "pools": ["t4"], "group": "vision-engineers"}
ON_AKS = {"cluster.distribution": "aks", "pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"agentpool": "t4"}}

#: Row -> (base, changes, what is said).
SAID: list[tuple[str, str, dict[str, Any], list[tuple[str, str]]]] = [
    ("RP-34", "existing-operator", ON_AKS, []),
    ("RP-34", "existing-plugin", ON_AKS, []),
    ("RP-34", "existing-operator", {**ON_AKS, "pools[0].driver": "operator"}, []),
    ("RP-34", "existing-operator", {**ON_AKS, "pools[0].driver": "host"}, [("GF201", "pools[0].driver")]),
    ("RP-34", "existing-operator", {"pools[0].driver": "aks"}, [("GF201", "pools[0].driver")]),
    ("RP-34", "existing-plugin", {"cluster.distribution": "aks"}, [("GF480", "pools[0].hosts")]),
    ("RP-35", "aks-plugin", {"cluster": {"kind": "aks", "existing": {"name": "c", "resourceGroup": "g"}}}, []),
    ("RP-35", "aks-plugin",  # all rules about pools apply
     {"cluster": {"kind": "aks", "existing": {"name": "c", "resourceGroup": "g"}}, "pools[0].zones": ["1", "2", "3"]},
     [("GF410", "pools[0].zones")]),
    ("RP-36", "aks-plugin", {"cluster.version": "1.36", "pools[0].version": "1.37"}, [("GF473", "pools[0].version")]),
    ("RP-36", "aks-plugin", {"cluster.version": "1.37", "pools[0].version": "1.35"}, []),
    ("RP-37", "aks-plugin", {"cluster.version": "1.27"}, [("GF470", "cluster.version")]),
    ("RP-37", "aks-plugin", {"cluster.version": "1.36.2"}, []),
    ("RP-37", "existing-operator", {"cluster.version": "1.30"}, [("GF281", "cluster.version")]),
    ("RP-38", "aks-plugin", {"cluster.upgradeChannel": "none"}, []),
    ("RP-38", "aks-plugin", {"cluster.nodeOsUpgradeChannel": "NodeImage"}, []),
    ("RP-40", "aks-plugin", {"pools[0].tags": {"UseGPUDedicatedVHD": "true"}},
     [("GF209", "pools[0].tags.UseGPUDedicatedVHD")]),
    ("RP-40", "aks-plugin", {"pools[0].tags": {"usegpudedicatedvhd": "true"}},
     [("GF209", "pools[0].tags.usegpudedicatedvhd")]),
    ("RP-40", "aks-plugin", {"cluster.tags": {"skipGPUDriverINSTALL": "true"}},
     [("GF209", "cluster.tags.skipGPUDriverINSTALL")]),
    ("RP-41", "aks-plugin", {"pools[0].osDiskType": "Ephemeral", "pools[0].osDiskSizeGb": 1024},
     [("GF474", "pools[0].osDiskSizeGb")]),
    ("RP-41", "aks-plugin", {"pools[0].osDiskType": "Ephemeral", "pools[0].osDiskSizeGb": 176}, []),
    ("RP-41", "aks-plugin", {"pools[0].osDiskType": "Managed", "pools[0].osDiskSizeGb": 1024}, []),
    ("RP-41", "aks-plugin",  # temporary disk 64 GiB, cache 256 GiB
     {"pools[0].vmSize": "Standard_NC24ads_A100_v4", "pools[0].osDiskType": "Ephemeral"}, []),
    ("RP-41", "aks-plugin",  # the cache is not known
     {"pools[0].vmSize": "Standard_NC48ads_A100_v4", "pools[0].osDiskType": "Ephemeral", "pools[0].osDiskSizeGb": 256},
     [("GF475", "pools[0].osDiskSizeGb")]),
    ("RP-43", "aks-plugin", {"teams": [TEAM]}, [("GF478", "teams[0].group")]),
    ("RP-43", "aks-plugin", {"teams": [TEAM], "cluster.entra": {"adminGroups": [GROUP]}},
     [("GF479", "teams[0].group")]),
    ("RP-43", "aks-plugin",
     {"teams": [{**TEAM, "group": GROUP}], "cluster.entra": {}, "cluster.disableLocalAccounts": True}, []),
    ("RP-43", "aks-plugin", {"cluster.disableLocalAccounts": True}, [("GF110", "cluster")]),
    ("RP-43", "existing-plugin", {"teams": [TEAM]}, []),
    ("surge", "aks-plugin", {"pools[0].maxSurge": "1", "pools[0].maxUnavailable": "1"}, [("GF110", "pools[0]")]),
    ("surge", "aks-plugin", {"pools[0].maxSurge": "0", "pools[0].maxUnavailable": "0%"}, [("GF110", "pools[0]")]),
    ("surge", "aks-plugin", {"pools[0].maxSurge": "1"}, []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "changes", "said"), [pytest.param(*row[1:], id=f"{row[0]}-{i}") for i, row in enumerate(SAID)]
)
def test_said(base: str, changes: dict[str, Any], said: list[tuple[str, str]]) -> None:
    assert told(compile_base(base, changes)) == said


def lines(base: str, changes: dict[str, Any]) -> dict[str, str]:
    plan = compile_base(base, changes).plan
    assert plan is not None
    found: dict[str, str] = {}
    last = ""
    for word, text in plan.cluster.lines():
        last = word or last
        found[last] = f"{found[last]}; {text}" if last in found else text
    return found


def test_rp_34_the_release_is_that_of_aks() -> None:
    """Driver and toolkit come with the node image; without its driver the operator's toolkit reads the file."""
    image = compile_base("existing-operator", ON_AKS).plan
    assert image is not None and image.operator is not None
    values = image.operator.values
    assert values["driver"]["enabled"] is False and values["toolkit"]["enabled"] is False
    assert values["operator"]["runtimeClass"] == "nvidia-container-runtime"
    own = compile_base("existing-operator", {**ON_AKS, "pools[0].driver": "operator"}).plan
    assert own is not None and own.operator is not None
    values = own.operator.values
    assert values["driver"]["enabled"] is True and values["toolkit"]["enabled"] is True
    assert {"name": "RUNTIME_CONFIG_SOURCE", "value": "file"} in values["toolkit"]["env"]


def test_rp_36_the_plan_says_the_order() -> None:
    second = {"pools[1]": {"name": "old", "vmSize": "Standard_NC4as_T4_v3", "count": 1, "version": "1.35"}}
    said = lines("aks-plugin", {"cluster.version": "1.36", **second})
    assert said["upgrades"] == "control plane and pool system first, then t4; old on 1.35 as stated"
    assert "no pool follows" in lines("aks-plugin", {})["upgrades"]


@pytest.mark.parametrize(
    ("day", "version", "code"),
    [
        (date(2026, 12, 3), "1.35", None),
        (date(2026, 12, 31), "1.35", None),
        (date(2027, 1, 1), "1.35", "GF471"),
        (date(2027, 5, 1), "1.35", "GF471"),
        (date(2026, 12, 3), "1.38", "GF472"),
        (date(2026, 12, 3), "1.39", "GF470"),
        (date(2027, 3, 1), "1.39", "GF472"),
        (date(2026, 12, 3), "1.33", "GF470"),
    ],
)
def test_rp_37_by_the_day(monkeypatch: pytest.MonkeyPatch, day: date, version: str, code: str | None) -> None:
    class Day(date):
        @classmethod
        def today(cls) -> Day:
            return cls(day.year, day.month, day.day)

    monkeypatch.setattr(kubernetes, "date", Day)
    assert [c for c, _ in told(compile_base("aks-plugin", {"cluster.version": version}))] == ([code] if code else [])


def test_rp_37_each_row_of_the_table_is_served() -> None:
    for version in aks_versions():
        assert "GF470" not in [c for c, _ in told(compile_base("aks-plugin", {"cluster.version": version}))]


def test_rp_38_the_plan_says_what_moves_nodes() -> None:
    assert lines("aks-plugin", {})["by itself"] == "nothing moves nodes: AKS upgrades nothing by itself"
    window = {"nodes": {"day": "Sunday", "start": "22:00"}}
    said = lines("aks-plugin", {"cluster.upgradeChannel": "patch", "cluster.maintenance": window})["by itself"]
    assert "upgradeChannel patch drains nodes" in said and "at any time" in said
    assert "NodeImage drains nodes for a new node image each week, Sunday 22:00 UTC+00:00, 4 hours" in said
    assert "a new image may bring another driver to t4" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster.environment": "production"}, ("protected", "environment production", "protect: false")),
        ({"cluster.environment": "dev"}, ("not protected", "environment dev", "protect: true")),
        ({}, ("not protected", "no environment", "protect: true")),
        ({"cluster.protect": True}, ("protected", "protect: true")),
    ],
)
def test_rp_39_the_plan_says_it_and_how_to_lift_it(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    said = lines("aks-plugin", changes)["protection"]
    assert said.startswith(words[0]) and all(word in said for word in words)


@pytest.mark.parametrize(
    ("stated", "sent"),
    [
        ({}, ("0", "1")),
        ({"maxSurge": "33%"}, ("33%", "0")),
        ({"maxUnavailable": "2"}, ("0", "2")),
        ({"maxSurge": "0%"}, ("0%", "1")),
        ({"maxSurge": "0", "maxUnavailable": "25%"}, ("0", "25%")),
    ],
)
def test_surge_is_never_beside_unavailable(stated: dict[str, str], sent: tuple[str, str]) -> None:
    plan = compile_base("aks-plugin", {f"pools[0].{k}": v for k, v in stated.items()}).plan
    assert plan is not None
    assert (plan.pools[0].resource.max_surge, plan.pools[0].resource.max_unavailable) == sent  # type: ignore[union-attr]
