"""The Azure stand-in makes nodes with exactly what was sent and what AKS adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.twin_standins.bodies import CLUSTER
from tests.unit.twin_standins.fake_kube import FakeKube
from twin.azure.errors import ArmError
from twin.azure.service import Service, arm_id

Put = Callable[..., dict[str, Any]]


def of_pool(kube: FakeKube, pool: str) -> list[dict[str, Any]]:
    return [node for name, node in sorted(kube.nodes.items()) if name.startswith(f"aks-{pool}-")]


def test_a_gpu_node(put_pool: Put, kube: FakeKube) -> None:
    put_pool(nodeLabels={"team": "x"}, nodeTaints=["sku=gpu:NoSchedule", "drain:NoExecute"])
    [node] = of_pool(kube, "t4")
    assert node["metadata"]["name"].endswith("-vmss000000")
    labels = node["metadata"]["labels"]
    assert labels.pop("kubernetes.io/hostname") == node["metadata"]["name"]
    assert labels == {
        "team": "x", "agentpool": "t4", "kubernetes.azure.com/agentpool": "t4", "accelerator": "nvidia",
        "kubernetes.azure.com/accelerator": "nvidia", "kubernetes.azure.com/cluster": "MC_rg_aks_eastus",
        "kubernetes.azure.com/mode": "user", "kubernetes.azure.com/role": "agent",
        "kubernetes.azure.com/os-sku": "Ubuntu", "kubernetes.azure.com/priority": "regular",
        "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "Standard_NC4as_T4_v3",
        "topology.kubernetes.io/region": "eastus", "topology.kubernetes.io/zone": "0"}
    assert node["spec"]["taints"] == [{"key": "sku", "value": "gpu", "effect": "NoSchedule"},
                                      {"key": "drain", "effect": "NoExecute"}]
    assert node["metadata"]["annotations"] == {
        "kwok.x-k8s.io/node": "fake", "twin.gpufleet.dev/gpus": "1", "twin.gpufleet.dev/gpu-model": "T4",
        "twin.gpufleet.dev/driver": "580.126.09"}
    assert node["status"]["allocatable"] == {"cpu": "4", "memory": "28Gi", "pods": "110", "ephemeral-storage": "176Gi"}


def test_driver_none_leaves_the_node_without_a_driver(put_pool: Put, kube: FakeKube) -> None:
    put_pool(gpuProfile={"driver": "None"})
    assert of_pool(kube, "t4")[0]["metadata"]["annotations"]["twin.gpufleet.dev/driver"] == "none"


@pytest.mark.parametrize(("changes", "count"), [
    ({"count": 3}, 3), ({"count": 0}, 0),
    ({"enableAutoScaling": True, "minCount": 0, "maxCount": 4, "count": None}, 0),
    ({"enableAutoScaling": True, "minCount": 2, "maxCount": 4, "count": 4}, 2)])
def test_how_many_nodes(put_pool: Put, kube: FakeKube, changes: dict[str, Any], count: int) -> None:
    put_pool(**changes)
    assert len(of_pool(kube, "t4")) == count


def test_an_update_keeps_names_and_what_others_wrote(put_pool: Put, kube: FakeKube) -> None:
    put_pool(count=2, nodeLabels={"team": "x", "tier": "1"}, nodeTaints=["sku=gpu:NoSchedule"])
    names = sorted(kube.nodes)
    first = of_pool(kube, "t4")[0]["metadata"]["name"]
    kube.patch(f"/api/v1/nodes/{first}", {"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}, "spec": {
        "taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}, {"key": "other", "effect": "NoSchedule"}]}})
    put_pool(create=False, count=2, nodeLabels={"team": "y"}, nodeTaints=["gpu=yes:NoSchedule"])
    assert sorted(kube.nodes) == names
    node = kube.nodes[first]
    assert node["metadata"]["labels"]["team"] == "y"
    assert "tier" not in node["metadata"]["labels"]
    assert node["metadata"]["labels"]["nvidia.com/gpu.present"] == "true"
    assert node["spec"]["taints"] == [{"key": "other", "effect": "NoSchedule"},
                                      {"key": "gpu", "value": "yes", "effect": "NoSchedule"}]


def test_fewer_nodes_go_from_the_end_with_their_pods(put_pool: Put, kube: FakeKube) -> None:
    put_pool(count=2)
    last = of_pool(kube, "t4")[1]["metadata"]["name"]
    for name, node in (("a", last), ("b", of_pool(kube, "t4")[0]["metadata"]["name"])):
        kube.objects[f"/api/v1/namespaces/n/pods/{name}"] = {
            "metadata": {"name": name, "namespace": "n"}, "spec": {"nodeName": node}}
    put_pool(create=False, count=1)
    assert len(of_pool(kube, "t4")) == 1
    assert last not in kube.nodes
    assert [key for key in kube.objects if "/pods/" in key] == ["/api/v1/namespaces/n/pods/b"]


def test_deleting_the_cluster_takes_pools_and_nodes(azure: Service, put_pool: Put, kube: FakeKube) -> None:
    put_pool()
    azure.delete(arm_id("ManagedCluster", CLUSTER))
    assert not kube.nodes
    assert [record["kind"] for record in azure.store.read()["resources"].values()] == ["ResourceGroup"]
    azure.delete(arm_id("ManagedCluster", CLUSTER))  # gone already


def test_a_pool_whose_nodes_cannot_be_made_leaves_nothing(azure: Service, put_pool: Put, kube: FakeKube) -> None:
    before = azure.store.read()
    kube.broken = True
    with pytest.raises(ArmError, match="nodes could not be made"):
        put_pool()
    assert azure.store.read() == before


def test_the_inline_list_takes_no_new_pool(azure: Service) -> None:
    gpu = {"name": "gpu", "vmSize": "Standard_NC4as_T4_v3"}
    more = {**CLUSTER, "agentPoolProfiles": [*CLUSTER["agentPoolProfiles"], gpu]}
    with pytest.raises(ArmError, match="A new agent pool was introduced"):
        azure.put("ManagedCluster", more, create=False)
    assert azure.put("ManagedCluster", {**CLUSTER, "tags": {"a": "b"}}, create=False)["tags"] == {"a": "b"}


@pytest.mark.parametrize(("changes", "code"), [
    ({"identity": None}, "InvalidParameter"), ({"dnsPrefix": None}, "InvalidParameter"),
    ({"agentPoolProfiles": []}, "InvalidParameter"), ({"kubernetesVersion": "1.29"}, "K8sVersionNotSupported"),
    ({"agentPoolProfiles": [{"name": "a", "mode": "User", "vmSize": "Standard_D4s_v5"}]}, "InvalidParameter"),
    ({"resourceGroupName": "none"}, "ResourceGroupNotFound"), ({"location": None}, "LocationRequired")])
def test_refused_clusters(azure: Service, changes: dict[str, Any], code: str) -> None:
    with pytest.raises(ArmError) as refused:
        azure.put("ManagedCluster", {**CLUSTER, "resourceName": "new", **changes}, create=True)
    assert refused.value.code == code


def test_a_cluster_never_goes_back(azure: Service) -> None:
    azure.put("ManagedCluster", {**CLUSTER, "kubernetesVersion": "1.37"}, create=False)
    with pytest.raises(ArmError, match="Downgrading"):
        azure.put("ManagedCluster", CLUSTER, create=False)


@pytest.mark.parametrize(("changes", "code"), [
    ({"disableLocalAccounts": True}, "BadRequest"),
    ({"autoUpgradeProfile": {"upgradeChannel": "node-image", "nodeOSUpgradeChannel": "None"}}, "InvalidParameter")])
def test_clusters_that_nobody_could_use(azure: Service, changes: dict[str, Any], code: str) -> None:
    with pytest.raises(ArmError) as refused:
        azure.put("ManagedCluster", {**CLUSTER, **changes}, create=False)
    assert refused.value.code == code


def test_rp_38_without_a_channel_nodes_are_reimaged(azure: Service) -> None:
    """The service's own default, whatever the other channel says."""
    shown = azure.put("ManagedCluster", {**CLUSTER, "autoUpgradeProfile": {"upgradeChannel": "none"}}, create=False)
    assert shown["autoUpgradeProfile"] == {"upgradeChannel": "none", "nodeOSUpgradeChannel": "NodeImage"}


def test_rp_36_pools_stay_when_the_cluster_moves(azure: Service, put_pool: Any) -> None:
    made = put_pool()
    assert made["currentOrchestratorVersion"] == "1.36.3"
    azure.put("ManagedCluster", {**CLUSTER, "kubernetesVersion": "1.37"}, create=False)
    assert put_pool(create=False)["currentOrchestratorVersion"] == "1.36.3"
    assert put_pool(create=False, orchestratorVersion="1.37")["currentOrchestratorVersion"] == "1.37.3"
    with pytest.raises(ArmError, match="Downgrading pool"):
        put_pool(create=False, orchestratorVersion="1.36")


WEEKLY: dict[str, Any] = {"schedule": {"weekly": {"dayOfWeek": "Sunday", "intervalWeeks": 1}}, "startTime": "22:00"}


@pytest.mark.parametrize(("name", "changes"), [
    ("nightly", {}), ("aksManagedNodeOSUpgradeSchedule", {"schedule": {}}),
    ("aksManagedNodeOSUpgradeSchedule", {"startTime": "24:00"}),
    ("aksManagedNodeOSUpgradeSchedule", {"durationHours": 2})])
def test_windows(azure: Service, name: str, changes: dict[str, Any]) -> None:
    where = {"resourceGroupName": "rg", "resourceName": "aks"}
    good = {**where, "configName": "aksManagedNodeOSUpgradeSchedule", "maintenanceWindow": WEEKLY}
    assert azure.put("MaintenanceConfiguration", good, create=True)["name"] == "aksManagedNodeOSUpgradeSchedule"
    with pytest.raises(ArmError):
        window = {**WEEKLY, **changes}
        azure.put("MaintenanceConfiguration", {**where, "configName": name, "maintenanceWindow": window}, create=True)
