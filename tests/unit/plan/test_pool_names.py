"""AKS pool names carry a generation: another name exactly where AKS cannot change the pool in place."""

from __future__ import annotations

import re
from typing import Any

import pytest
from gpufleet.places.aks.model import AksPool
from gpufleet.places.aks.plan import agent_pool_name

from tests.unit.config.samples import REMOVE, compile_base, told

PROFILES = {
    "sharing.half": {"strategy": "timeSlicing", "replicas": 2},
    "sharing.third": {"strategy": "timeSlicing", "replicas": 3},
}


def name_of(changes: dict[str, Any], base: str = "aks-plugin") -> str:
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, told(compiled)
    name = compiled.plan.pools[0].resource.name
    assert name is not None
    assert re.fullmatch(r"[a-z][a-z0-9]{0,11}", name)
    return name


#: Field -> (before, after, base, the name changes). Sources: AKS documentation (create-node-pools, spot-node-pool,
#: aks-managed-gpu-nodes, reliability-availability-zones-configure, concepts-storage, use-node-taints, use-labels).
FIELDS: dict[str, list[tuple[dict[str, Any], dict[str, Any], str, bool]]] = {
    "name": [({}, {"pools[0].name": "t5"}, "aks-plugin", True)],
    "vm_size": [({}, {"pools[0].vmSize": "Standard_NC8as_T4_v3"}, "aks-plugin", True)],
    "driver": [
        ({"pools[0].driver": "aks"}, {"pools[0].driver": "operator"}, "aks-operator", True),
        ({"pools[0].driver": "aks"}, {"pools[0].driver": "none"}, "aks-plugin", True),
    ],
    "spot": [({}, {"pools[0].spot": True}, "aks-plugin", True)],
    "spot_max_price": [
        ({"pools[0].spot": True}, {"pools[0].spot": True, "pools[0].spotMaxPrice": 1.5}, "aks-plugin", True),
        ({"pools[0].spot": True}, {"pools[0].spot": True, "pools[0].spotMaxPrice": -1}, "aks-plugin", False),
    ],
    "os_disk_size_gb": [({}, {"pools[0].osDiskSizeGb": 256}, "aks-plugin", True)],
    "os_disk_type": [({}, {"pools[0].osDiskType": "Ephemeral"}, "aks-plugin", True)],
    "max_pods": [({}, {"pools[0].maxPods": 50}, "aks-plugin", True)],
    "zones": [
        ({}, {"pools[0].zones": ["1"]}, "aks-plugin", True),
        ({"pools[0].zones": ["1", "2"]}, {"pools[0].zones": ["2", "1"]}, "aks-plugin", False),
    ],
    "sharing": [
        # Under pods that run, whole GPUs must not turn into shared ones.
        ({}, {**PROFILES, "pools[0].sharing": "half"}, "aks-plugin", True),
        # Another profile or other replicas of one method reach the running pool.
        ({**PROFILES, "pools[0].sharing": "half"}, {**PROFILES, "pools[0].sharing": "third"}, "aks-plugin", False),
        (
            {**PROFILES, "pools[0].sharing": "half"},
            {**PROFILES, "pools[0].sharing": "half", "sharing.half.replicas": 8},
            "aks-plugin",
            False,
        ),
    ],
    "taints": [({}, {"pools[0].taints": ["sku=gpu:NoSchedule"]}, "aks-plugin", False)],
    "labels": [({}, {"pools[0].labels": {"a": "b"}}, "aks-plugin", False)],
    "count": [({}, {"pools[0].count": 2}, "aks-plugin", False)],
    "autoscale": [
        ({}, {"pools[0].count": REMOVE, "pools[0].autoscale": {"min": 1, "max": 2}}, "aks-plugin", False),
    ],
    "scale_down_mode": [
        # A disk that Azure may have made ephemeral cannot be kept.
        ({}, {"pools[0].scaleDownMode": "Deallocate"}, "aks-plugin", True),
        (
            {"pools[0].osDiskType": "Managed"},
            {"pools[0].osDiskType": "Managed", "pools[0].scaleDownMode": "Deallocate"},
            "aks-plugin",
            False,
        ),
    ],
    "version": [
        (
            {"cluster.version": "1.36"},
            {"cluster.version": "1.36", "pools[0].version": "1.35"},
            "aks-plugin",
            False,
        )
    ],
    "max_surge": [({}, {"pools[0].maxSurge": "1"}, "aks-plugin", False)],
    "max_unavailable": [({}, {"pools[0].maxUnavailable": "2"}, "aks-plugin", False)],
    "tags": [({}, {"pools[0].tags": {"a": "b"}}, "aks-plugin", False)],
    "os_sku": [({}, {"pools[0].osSku": "AzureLinux"}, "aks-plugin", False)],
    "driver_branch": [({}, {"pools[0].driverBranch": "580"}, "aks-operator", False)],
    "driver_version": [({}, {"pools[0].driverVersion": "580.173.02"}, "aks-operator", False)],
}


def test_every_field_of_a_pool_is_decided() -> None:
    """A new field needs a row here: can AKS change it in place?"""
    assert set(FIELDS) == set(AksPool.model_fields)


@pytest.mark.parametrize(
    ("before", "after", "base", "changes"),
    [pytest.param(*row, id=f"{field}{i}") for field, rows in FIELDS.items() for i, row in enumerate(rows)],
)
def test_field(before: dict[str, Any], after: dict[str, Any], base: str, changes: bool) -> None:
    assert (name_of(before, base) != name_of(after, base)) is changes


@pytest.mark.parametrize(
    ("network", "changes"),
    [
        ({"vnetCidr": "10.40.0.0/15", "subnetCidr": "10.40.0.0/16"}, True),
        ({"vnetCidr": "10.40.0.0/14", "subnetCidr": "10.41.0.0/16"}, False),
        (
            {"subnetId": "/subscriptions/s/resourceGroups/r/providers/Microsoft.Network/virtualNetworks/v/subnets/s"},
            True,
        ),
    ],
)
def test_the_subnet_cannot_be_changed(network: dict[str, str], changes: bool) -> None:
    before = {"cluster.network": {"vnetCidr": "10.40.0.0/15", "subnetCidr": "10.41.0.0/16"}}
    assert (name_of(before) != name_of({"cluster.network": network})) is changes
    assert name_of({}) != name_of({"cluster.network": network})


def test_another_subnet_that_exists_is_another_pool() -> None:
    ids = [f"/subscriptions/s/resourceGroups/r/providers/Microsoft.Network/virtualNetworks/v/subnets/{n}" for n in "ab"]
    assert len({name_of({"cluster.network": {"subnetId": i}}) for i in ids}) == 2


def test_the_clusters_own_settings_do_not_matter() -> None:
    changes = {
        "cluster.tags": {"a": "b"},
        "cluster.version": "1.36",
        "cluster.tier": "Standard",
        "cluster.systemPool": {"vmSize": "Standard_D8s_v5", "count": 2},
        "cluster.upgradeChannel": "patch",
    }
    assert name_of(changes) == name_of({})


def test_names_are_base_and_generation_and_never_cut() -> None:
    assert re.fullmatch(r"abcdefg8[0-9a-f]{4}", name_of({"pools[0].name": "abcdefg8"}))
    assert name_of({"pools[0].name": "a"})[:1] == "a"
    assert told(compile_base("aks-plugin", {"pools[0].name": "abcdefgh9"})) == [("GF106", "pools[0].name")]


def test_pools_that_differ_in_name_only_share_the_generation() -> None:
    assert name_of({"pools[0].name": "a"})[1:] == name_of({"pools[0].name": "b"})[1:]


def test_the_name_is_stable() -> None:
    """A new release of gpufleet must not replace every GPU pool there is: these names are in users' clusters."""
    assert name_of({}) == "t46d0e"


def test_without_a_method_the_name_is_that_of_whole_gpus() -> None:
    stack = compile_base("aks-plugin").stack
    assert stack is not None
    pool = stack.pools[0]
    assert isinstance(pool, AksPool)
    assert agent_pool_name(pool, stack.cluster) == name_of({})  # type: ignore[arg-type]


def test_pools_of_existing_clusters_have_no_azure_name() -> None:
    plan = compile_base("existing-plugin").plan
    assert plan is not None
    assert [type(p.resource).__name__ for p in plan.pools] == ["NodeMarks"]
