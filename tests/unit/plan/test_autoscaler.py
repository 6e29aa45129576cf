"""What the cluster autoscaler will do with a shared pool: it knows physical GPUs at zero, replicas with a node up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.config.samples import REMOVE, compile_base, the_one, told


def scaled(low: int, high: int, replicas: int = 1, size: str = "Standard_NC4as_T4_v3") -> dict[str, Any]:
    changes: dict[str, Any] = {
        "pools[0].vmSize": size,
        "pools[0].count": REMOVE,
        "pools[0].autoscale": {"min": low, "max": high},
    }
    if replicas > 1:
        changes |= {"sharing.p": {"strategy": "timeSlicing", "replicas": replicas}, "pools[0].sharing": "p"}
    return changes


FOUR = "Standard_NC64as_T4_v3"


@pytest.mark.parametrize(
    ("low", "high", "replicas", "size", "per_node", "pods", "started"),
    [
        (1, 4, 1, "Standard_NC4as_T4_v3", 1, (1, 4), 1),
        (1, 4, 4, "Standard_NC4as_T4_v3", 4, (4, 16), 1),
        (0, 8, 4, "Standard_NC4as_T4_v3", 4, (0, 32), 4),  # four one-GPU pods start four nodes (Azure/AKS#3427)
        (0, 2, 4, "Standard_NC4as_T4_v3", 4, (0, 8), 2),  # but no more than max
        (0, 8, 4, FOUR, 16, (0, 128), 4),  # 16 pods on templates of four GPUs
        (2, 3, 2, FOUR, 8, (16, 24), 1),
        (0, 8, 1, FOUR, 4, (0, 32), 1),
    ],
)
def test_arithmetic(
    low: int, high: int, replicas: int, size: str, per_node: int, pods: tuple[int, int], started: int
) -> None:
    plan = compile_base("aks-plugin", scaled(low, high, replicas, size)).plan
    assert plan is not None
    scale = plan.pools[0].autoscaling
    assert scale is not None
    assert (scale.min_nodes, scale.max_nodes) == (low, high)
    assert scale.pods_per_node == per_node
    assert (scale.pods_at_min, scale.pods_at_max) == pods
    assert (scale.nodes_started, scale.nodes_needed_for_one_nodeful) == (started, 1)


def test_the_warning_carries_the_numbers() -> None:
    found = the_one(compile_base("aks-plugin", scaled(0, 8, 4, FOUR)), "GF420")
    assert found.message == "From zero, 16 pods may start 4 nodes where one would do."
    assert found.remedy == "Set min to 1, or bound the cost with max (now 8)."


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        (scaled(1, 4), []),
        (scaled(0, 4), ["GF423"]),
        (scaled(1, 4, 2), ["GF422"]),
        (scaled(0, 4, 2), ["GF420", "GF423"]),
        ({**scaled(0, 4, 2), "sharing.p.renameByDefault": True}, ["GF421", "GF423"]),
        ({**scaled(1, 4, 2), "sharing.p.renameByDefault": True}, ["GF422"]),
        ({**scaled(0, 4), "pools[0].driver": "none"}, ["GF205"]),
    ],
)
def test_what_is_said(changes: dict[str, Any], codes: list[str]) -> None:
    assert [code for code, _ in told(compile_base("aks-plugin", changes))] == codes


def test_pools_of_fixed_size_have_no_arithmetic() -> None:
    plan = compile_base("aks-plugin").plan
    assert plan is not None
    assert plan.pools[0].autoscaling is None
