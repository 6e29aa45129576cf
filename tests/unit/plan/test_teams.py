"""Teams: quotas on what their pools really offer, and what their pods need to get there."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.teams.teams import TeamPlan

from tests.unit.config.samples import REMOVE, compile_base, told

RENAMED = {
    "sharing.renamed": {"strategy": "timeSlicing", "replicas": 4, "renameByDefault": True},
    "pools[0].sharing": "renamed",
}
SECOND = {"pools[1]": {"name": "b", "vmSize": "Standard_NC4as_T4_v3", "spot": True, "taints": ["sku=gpu:NoSchedule"]}}


def team(base: str = "aks-plugin", changes: dict[str, Any] | None = None, **more: Any) -> TeamPlan:
    spec = {"name": "vision", "namespace": "vis", "pools": ["t4"], **more}
    compiled = compile_base(base, {**(changes or {}), "teams": [spec]})
    assert compiled.plan is not None, told(compiled)
    return compiled.plan.teams[0]


@pytest.mark.parametrize(
    ("changes", "pools", "quota", "hard"),
    [
        ({}, ["t4"], {"gpu": 8}, {"requests.nvidia.com/gpu": "8"}),
        ({}, ["t4"], {"gpu": 0}, {"requests.nvidia.com/gpu": "0"}),
        ({}, ["t4"], {}, {}),
        # A quota on nvidia.com/gpu would not limit pods that ask for the renamed resource.
        (RENAMED, ["t4"], {"gpu": 8}, {"requests.nvidia.com/gpu.shared": "8"}),
        (
            {**RENAMED, **SECOND},
            ["t4", "b"],
            {"nvidia.com/gpu.shared": 3, "nvidia.com/gpu": 1},
            {"requests.nvidia.com/gpu": "1", "requests.nvidia.com/gpu.shared": "3"},
        ),
        ({**RENAMED, **SECOND}, ["b"], {"gpu": 2}, {"requests.nvidia.com/gpu": "2"}),
    ],
)
def test_quota(changes: dict[str, Any], pools: list[str], quota: dict[str, int], hard: dict[str, str]) -> None:
    assert team(changes=changes, pools=pools, quota=quota).quota == hard


def test_what_pods_need() -> None:
    plan = team(changes={**RENAMED, **SECOND}, pools=["b", "t4"])
    assert [(p.pool, p.resources, p.node_selector) for p in plan.pools] == [
        ("b", ("nvidia.com/gpu",), {"gpufleet.dev/pool": "b"}),
        ("t4", ("nvidia.com/gpu.shared",), {"gpufleet.dev/pool": "t4"}),
    ]
    assert plan.pools[0].tolerations == (
        {"key": "kubernetes.azure.com/scalesetpriority", "operator": "Equal", "effect": "NoSchedule", "value": "spot"},
        {"key": "sku", "operator": "Equal", "effect": "NoSchedule", "value": "gpu"},
    )
    assert plan.pools[1].tolerations == ()


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        ("existing-plugin", {}, "nvidia"),
        ("existing-plugin", {"pools[0].nvidiaDefaultRuntime": True}, None),
        ("existing-operator", {}, None),  # its plugin hands out CDI devices
        ("existing-operator", {"sharing.h": {"strategy": "hami"}, "pools[0].sharing": "h"}, "nvidia"),
        ("aks-plugin", {}, None),  # nvidia is the default runtime of the node image
    ],
)
def test_the_runtime_class_that_pods_have_to_name(base: str, changes: dict[str, Any], expected: str | None) -> None:
    assert [p.runtime_class for p in team(base, changes).pools] == [expected]


def test_pods_find_pools_by_their_selector() -> None:
    changes = {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"b": "2", "a": "1"}}
    assert team("existing-plugin", changes).pools[0].node_selector == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("more", "group", "role"),
    [({}, None, "edit"), ({"group": "g"}, "g", "edit"), ({"group": "g", "role": "admin"}, "g", "admin")],
)
def test_members(more: dict[str, str], group: str | None, role: str) -> None:
    plan = team(**more)
    assert (plan.name, plan.namespace, plan.group, plan.role) == ("vision", "vis", group, role)


def test_a_pool_named_twice_counts_once() -> None:
    assert len(team(pools=["t4", "t4"], quota={"gpu": 1}).pools) == 1


@pytest.mark.parametrize(
    ("namespace", "code"),
    [("default", True), ("kube-system", True), ("kube-anything", True), ("gpu-plugin", True), ("defaults", False)],
)
def test_namespaces_that_belong_to_others(namespace: str, code: bool) -> None:
    compiled = compile_base("aks-plugin", {"teams": [{"name": "x", "namespace": namespace, "pools": ["t4"]}]})
    assert told(compiled) == ([("GF432", "teams[0].namespace")] if code else [])
