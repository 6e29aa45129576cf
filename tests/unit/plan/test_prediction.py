"""What each node will show: resources, counts, labels."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.fleet.offer import predict_node
from gpufleet.fleet.profile import profile_of
from gpufleet.methods.whole import NoSharing
from gpufleet.parts.hardware import Hardware
from gpufleet.plan.model import Plan, PoolPlan

from tests.unit.config.samples import REMOVE, compile_base, told


def plan_of(base: str, changes: dict[str, Any] | None = None) -> Plan:
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


def pool_of(base: str, changes: dict[str, Any] | None = None) -> PoolPlan:
    return plan_of(base, changes).pools[0]


def sliced(replicas: int, **more: Any) -> dict[str, Any]:
    return {"sharing.p": {"strategy": "timeSlicing", "replicas": replicas, **more}, "pools[0].sharing": "p"}


@pytest.mark.parametrize(
    ("base", "changes", "resources"),
    [
        ("aks-plugin", {}, {"nvidia.com/gpu": 1}),
        ("aks-plugin", {"pools[0].vmSize": "Standard_NC64as_T4_v3"}, {"nvidia.com/gpu": 4}),
        ("aks-plugin", {"pools[0].vmSize": "Standard_ND96isr_H200_v5", **sliced(4)}, {"nvidia.com/gpu": 32}),
        ("aks-plugin", {"pools[0].vmSize": "Standard_NV6ads_A10_v5", **sliced(2)}, {"nvidia.com/gpu": 2}),
        ("aks-plugin", sliced(10, renameByDefault=True), {"nvidia.com/gpu.shared": 10}),
        ("aks-plugin", sliced(100, allowManyReplicas=True), {"nvidia.com/gpu": 100}),
        ("aks-plugin", {"sharing.p": {"strategy": "none"}, "pools[0].sharing": "p"}, {"nvidia.com/gpu": 1}),
        ("aks-plugin", {"pools[0].driver": "none"}, {}),
        ("existing-plugin", {"pools[0].gpusPerNode": 8, **sliced(2)}, {"nvidia.com/gpu": 16}),
        ("existing-operator", {"pools[0].gpusPerNode": 2, **sliced(10, renameByDefault=True)},
         {"nvidia.com/gpu.shared": 20}),
    ],
)  # fmt: skip
def test_resources(base: str, changes: dict[str, Any], resources: dict[str, int]) -> None:
    assert pool_of(base, changes).node.resources == resources


def test_memory_as_sold_where_the_drivers_figure_is_not_known() -> None:
    assert pool_of("existing-plugin", {"pools[0].gpu": "A800-SXM4-40GB", **sliced(4)}).node.memory_per_pod_gib == 10.0
    assert pool_of("existing-plugin", {"pools[0].gpu": "A100-SXM4-40GB", **sliced(4)}).node.memory_per_pod_gib == 10.0
    assert pool_of("existing-plugin", {"pools[0].gpu": "H200", **sliced(4)}).node.memory_per_pod_gib == 35.1


def test_feature_labels_on_the_operator_route() -> None:
    pool = pool_of("existing-operator", {"pools[0].gpu": "H200", "pools[0].gpusPerNode": 2, **sliced(4)})
    assert pool.node.labels == {
        "gpufleet.dev/method": "timeSlicing",
        "gpufleet.dev/pool": "t4",
        "nvidia.com/device-plugin.config": "p",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.memory": "143771",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-H200-SHARED",
        "nvidia.com/gpu.replicas": "4",
        "nvidia.com/gpu.sharing-strategy": "time-slicing",
    }


def test_a_renamed_resource_keeps_the_product() -> None:
    labels = pool_of("existing-operator", {"pools[0].gpu": "H200", **sliced(10, renameByDefault=True)}).node.labels
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H200"
    assert labels["nvidia.com/gpu.replicas"] == "10"


def test_no_feature_labels_on_the_plugin_route() -> None:
    labels = pool_of("existing-plugin", sliced(4)).node.labels
    assert labels == {"gpufleet.dev/method": "timeSlicing", "gpufleet.dev/pool": "t4"}


def test_a_short_name_that_fits_several_models_has_no_product() -> None:
    labels = pool_of("existing-operator", {"pools[0].gpu": "A100-80GB"}).node.labels
    assert "nvidia.com/gpu.product" not in labels
    assert labels["nvidia.com/gpu.count"] == "1"


def test_own_labels_stand_on_the_nodes() -> None:
    pool = pool_of("aks-plugin", {"pools[0].labels": {"team.io/owner": "vision", "a": ""}})
    assert pool.labels == {"a": "", "gpufleet.dev/pool": "t4", "team.io/owner": "vision"}
    assert pool.node.labels == pool.labels


def test_nodes_found_by_a_selector_are_labelled_by_somebody_else() -> None:
    by_selector = {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"b": "1", "a": "2"}}
    pool = pool_of("existing-plugin", by_selector)
    assert pool.labels == {"a": "2", "b": "1"}
    assert (pool.nodes, pool.node_count) == ((), None)


def test_on_the_operator_route_too() -> None:
    by_selector = {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"a": "2"}}
    pool = pool_of("existing-operator", by_selector)
    assert pool.labels == {"a": "2"}
    assert pool.node.labels["nvidia.com/gpu.product"] == "Tesla-T4"


def test_memory_that_is_not_known_is_no_label() -> None:
    labels = pool_of("existing-operator", {"pools[0].gpu": "A800-SXM4-40GB"}).node.labels
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-A800-SXM4-40GB"
    assert "nvidia.com/gpu.memory" not in labels


def test_a_size_whose_gpus_are_not_known() -> None:
    spec = NoSharing(strategy="none")
    node = predict_node(Hardware(None, None, None), spec, profile_of("p", spec), {}, None, False)
    assert (node.known, node.resources, node.memory_per_pod_gib) == (False, {}, None)


def test_the_cluster_of_the_plan() -> None:
    aks = plan_of("aks-plugin", {"cluster.version": "1.36"}).cluster
    assert aks.as_dict() == {
        "kind": "aks",
        "name": "dev",
        "version": "1.36",
        "location": "eastus",
        "resource_group": "rg-dev",
        "resource_group_existing": False,
        "dns_prefix": "dev",
        "tier": "Free",
        "upgrade_channel": "none",
        "node_os_upgrade_channel": "None",
        "maintenance": {},
        "entra": None,
        "disable_local_accounts": False,
        "access": {"credentials": "user", "login": None},
        "system_pool": {
            "name": "system", "vm_size": "Standard_D4s_v5", "count": 1, "min_count": None, "max_count": None
        },
        "network": None,
        "tags": {},
        "protect": False,
        "protection": "not protected (no environment is stated; protect: true protects it)",
        "order": "control plane and pool system first, then t4",
        "image_drivers": ("t4",),
    }  # fmt: skip
    group = plan_of("aks-plugin", {"cluster.resourceGroup": {"name": "g"}}).cluster
    assert (group.resource_group, group.resource_group_existing) == ("g", False)
    shared = plan_of("aks-plugin", {"cluster.resourceGroup": {"name": "g", "existing": True}}).cluster
    assert shared.resource_group_existing is True
    here = plan_of("existing-plugin").cluster
    assert here.as_dict() == {
        "kind": "existing",
        "name": "idc",
        "version": None,
        "identifier": "idc",
        "distribution": "kubeadm",
        "protect": False,
        "kubeconfig": {"path": "idc.conf"},
    }
    assert plan_of("existing-plugin", {"cluster.site": "bj"}).cluster.identifier == "bj"


def test_the_model_of_the_plan() -> None:
    assert [pool_of(b).gpu for b in ("aks-plugin", "existing-plugin")] == ["T4", "T4"]
    assert pool_of("existing-plugin", {"pools[0].gpu": "h100-80gb-hbm3"}).gpu == "H100-SXM5-80GB"


def test_unknown_hardware_is_said_and_not_guessed() -> None:
    compiled = compile_base("aks-plugin", {"pools[0].vmSize": "Standard_ND128isr_GB300_v6", "pools[0].driver": "none"})
    assert compiled.plan is not None
    assert compiled.plan.pools[0].gpus_per_node == 4
    assert compiled.plan.pools[0].node.known


@pytest.mark.parametrize(
    ("base", "changes", "count"),
    [
        ("aks-plugin", {}, (1, 1)),
        ("aks-plugin", {"pools[0].count": REMOVE}, (1, 1)),
        ("aks-plugin", {"pools[0].count": 0}, (0, 0)),
        ("aks-plugin", {"pools[0].count": REMOVE, "pools[0].autoscale": {"min": 0, "max": 4}}, (0, 4)),
        ("existing-plugin", {"pools[0].hosts": {"n2": None, "n1": {}}}, (2, 2)),
    ],
)
def test_how_many_nodes(base: str, changes: dict[str, Any], count: tuple[int, int]) -> None:
    assert pool_of(base, changes).node_count == count


def test_nodes_are_named_in_order() -> None:
    assert pool_of("existing-plugin", {"pools[0].hosts": {"n2": None, "n10": {}, "n1": {}}}).nodes == (
        "n1",
        "n10",
        "n2",
    )
