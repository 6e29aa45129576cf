"""Teams: quotas on what their pools really offer, and what their pods need to get there."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.plan.render import memory
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


@pytest.mark.parametrize(
    ("settings", "mib", "gib"),
    [
        ({"splitCount": 4, "memoryPerPodGib": 3.5}, 3584, 3.5),
        ({"splitCount": 4}, 3840, 3.75),  # an equal share of 15360 MiB
        ({"splitCount": 4, "memoryScaling": 2.0}, 7680, 7.5),
    ],
)
def test_hami_tells_the_memory_that_a_pod_asks_for(settings: dict[str, Any], mib: int, gib: float) -> None:
    """Without gpumem a pod takes the whole card (Project-HAMi/HAMi#194)."""
    changes = {"sharing.v": {"strategy": "hami", **settings}, "pools[0].sharing": "v"}
    plan = team(changes=changes, quota={"gpu": 8, "nvidia.com/gpumem": 9000, "nvidia.com/gpucores": 50})
    assert plan.pools[0].asks_beside == {"nvidia.com/gpumem": mib}
    assert plan.pools[0].memory_gib == {"nvidia.com/gpu": gib}
    assert f"ask for nvidia.com/gpu: 1, nvidia.com/gpumem: {mib}, nodeSelector" in plan.lines()[1]
    # Its scheduler counts these under limits. alone.
    assert plan.quota == {
        "limits.nvidia.com/gpucores": "50",
        "limits.nvidia.com/gpumem": "9000",
        "requests.nvidia.com/gpu": "8",
    }


def test_gpumem_is_no_resource_without_hami() -> None:
    spec = {"name": "x", "namespace": "x", "pools": ["t4"], "quota": {"nvidia.com/gpumem": 9000}}
    assert told(compile_base("aks-plugin", {"teams": [spec]})) == [("GF431", 'teams[0].quota["nvidia.com/gpumem"]')]


def test_memory_of_each_kind_of_instance() -> None:
    cut = {"strategy": "mig", "instances": {"1g.10gb": 3, "3g.40gb": 1}, "naming": "mixed"}
    changes = {"sharing.cut": cut, "pools[0].sharing": "cut", "pools[0].vmSize": "Standard_NC24ads_A100_v4"}
    compiled = compile_base("aks-operator", {**changes, "pools[0].driver": "operator"})
    assert compiled.plan is not None, told(compiled)
    node = compiled.plan.pools[0].node
    assert node.memory_gib_by_resource == {"nvidia.com/mig-1g.10gb": 10.0, "nvidia.com/mig-3g.40gb": 40.0}
    assert node.memory_per_pod_gib == 10.0
    assert memory(node.memory_gib_by_resource) == "mig-1g.10gb: 10 GiB, mig-3g.40gb: 40 GiB"
