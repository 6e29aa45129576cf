"""The AKS cluster and its pools, as they are sent."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from gpufleet.catalog import azure_size
from gpufleet.places.aks.network import TAKEN_RANGES
from pulumi._types import input_type_types
from pulumi_azure_native import containerservice as aks

from tests.component.recording import Resource, run
from tests.component.stacks import AKS, TEXTS, plan_of, recorded


def pool(stack: str, name: str) -> dict[str, Any]:
    plan = next(p for p in plan_of(stack).pools if p.name == name)
    return next(r.inputs for r in recorded(stack).of("AgentPool") if r.name == plan.resource.name)


def cluster(stack: str) -> Resource:
    return recorded(stack).one("ManagedCluster")


@pytest.mark.parametrize("name", AKS)
def test_one_system_pool_inline_and_no_gpu_pool(name: str) -> None:
    """GPU pools in the cluster's list would all go into state Scaling with each edit (AZ-10 to AZ-12)."""
    inline = cluster(name).inputs["agentPoolProfiles"]
    assert [p["mode"] for p in inline] == ["System"]
    assert azure_size(inline[0]["vmSize"]) is None, "no GPU size"
    assert inline[0]["count"] >= 1


@pytest.mark.parametrize("name", AKS)
def test_each_gpu_pool_is_a_resource_named_like_in_azure(name: str) -> None:
    """Without an explicit name, a stack's autonaming could propose one that AKS refuses."""
    pools, plans = recorded(name).of("AgentPool"), plan_of(name).pools
    assert {r.name for r in pools} == {p.resource.name for p in plans}
    for resource in pools:
        assert resource.inputs["agentPoolName"] == resource.name
        assert resource.inputs["resourceName"] == cluster(name).name
        assert resource.inputs["mode"] == "User"
        assert resource.inputs["type"] == "VirtualMachineScaleSets"


@pytest.mark.parametrize("name", AKS)
def test_each_gpu_pool_states_who_installs_the_driver(name: str) -> None:
    """Unset means Install: an operator's pool would get two drivers."""
    for plan in plan_of(name).pools:
        assert pool(name, plan.name)["gpuProfile"] == {"driver": plan.resource.driver}
        assert plan.resource.driver == ("Install" if plan.driver_owner == "aks" else "None")


@pytest.mark.parametrize("name", AKS)
def test_taints_and_labels_are_those_of_the_plan(name: str) -> None:
    for plan in plan_of(name).pools:
        sent = pool(name, plan.name)
        assert tuple(sent.get("nodeTaints", ())) == plan.taints
        assert sent["nodeLabels"] == plan.labels
        assert sent["nodeLabels"]["gpufleet.dev/pool"] == plan.name


@pytest.mark.parametrize("name", AKS)
def test_names_and_words_are_those_of_the_sdk(name: str) -> None:
    """The provider drops unknown keys of maps without a word, and checks no enum."""
    known = set(input_type_types(sys.modules[aks.AgentPool.__module__].AgentPoolArgs))
    words = {
        "gpuProfile": {"driver": {e.value for e in aks.GPUDriver}},
        "scaleSetPriority": {e.value for e in aks.ScaleSetPriority},
        "scaleSetEvictionPolicy": {e.value for e in aks.ScaleSetEvictionPolicy},
        "scaleDownMode": {e.value for e in aks.ScaleDownMode},
        "osDiskType": {e.value for e in aks.OSDiskType},
        "mode": {e.value for e in aks.AgentPoolMode},
        "type": {e.value for e in aks.AgentPoolType},
        "osType": {e.value for e in aks.OSType},
    }
    for resource in recorded(name).of("AgentPool"):
        assert set(resource.inputs) <= known
        assert resource.inputs["gpuProfile"]["driver"] in words["gpuProfile"]["driver"]
        for key in set(words) - {"gpuProfile"}:
            assert resource.inputs.get(key, None) in {*words[key], None}
        settings = set(input_type_types(aks.AgentPoolUpgradeSettingsArgs))
        assert set(resource.inputs["upgradeSettings"]) <= settings


def test_a_spot_pool_with_an_autoscaler() -> None:
    sent = pool("aks-mixed", "a")
    assert {k: sent[k] for k in ("count", "enableAutoScaling", "minCount", "maxCount")} == {
        "count": 0,
        "enableAutoScaling": True,
        "minCount": 0,
        "maxCount": 3,
    }
    assert (sent["scaleSetPriority"], sent["scaleSetEvictionPolicy"], sent["spotMaxPrice"]) == ("Spot", "Delete", 1.5)
    assert sent["nodeTaints"] == ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"]
    assert pool("aks-dev", "t4spot")["spotMaxPrice"] == -1


def test_a_pool_of_fixed_size_with_all_its_settings() -> None:
    sent = pool("aks-mixed", "b")
    expected = {
        "count": 1,
        "vmSize": "Standard_NC24ads_A100_v4",
        "availabilityZones": ["1", "2"],
        "osDiskType": "Ephemeral",
        "osDiskSizeGB": 200,
        "maxPods": 60,
        "tags": {"cost": "research"},
        "osSKU": "Ubuntu",
        "upgradeSettings": {"maxSurge": "0", "maxUnavailable": "1"},
    }
    assert {k: sent[k] for k in expected} == expected
    absent = ("enableAutoScaling", "minCount", "maxCount", "scaleSetPriority", "spotMaxPrice", "nodeTaints")
    assert not set(absent) & set(sent)


def test_an_empty_pool_stays_empty() -> None:
    assert pool("aks-protected", "t4")["count"] == 0


def test_own_network() -> None:
    seen = recorded("aks-prod")
    assert seen.one("VirtualNetwork").inputs["addressSpace"] == {"addressPrefixes": ["10.40.0.0/16"]}
    subnet = seen.one("Subnet")
    assert subnet.inputs["addressPrefix"] == "10.40.0.0/20"
    attached = {cluster("aks-prod").inputs["agentPoolProfiles"][0]["vnetSubnetID"]}
    attached |= {r.inputs["vnetSubnetID"] for r in seen.of("AgentPool")}
    assert attached == {f"/id/{subnet.name}"}
    profile = cluster("aks-prod").inputs["networkProfile"]
    assert (profile["networkPlugin"], profile["networkPluginMode"]) == ("azure", "overlay")
    # The SDK adds these by itself; the stack file's own ranges are checked against them.
    assert (profile["serviceCidr"], profile["podCidr"]) == TAKEN_RANGES


def test_a_subnet_and_a_group_that_exist() -> None:
    seen = recorded("aks-protected")
    assert not seen.of("VirtualNetwork")
    assert not seen.of("ResourceGroup")
    sent = cluster("aks-protected").inputs
    assert sent["resourceGroupName"] == "shared-rg"
    assert sent["agentPoolProfiles"][0]["vnetSubnetID"].endswith("/subnets/n")
    assert pool("aks-protected", "t4")["vnetSubnetID"].endswith("/subnets/n")


def test_no_network_of_its_own() -> None:
    seen = recorded("aks-dev")
    assert not seen.of("VirtualNetwork")
    assert "networkProfile" not in cluster("aks-dev").inputs
    assert "vnetSubnetID" not in pool("aks-dev", "t4")


@pytest.mark.parametrize(("length", "kept"), [(53, 53), (54, 54), (60, 54)])
def test_a_dns_prefix_has_54_characters_at_most(length: int, kept: int) -> None:
    name = "n" * length
    wanted = run(TEXTS["aks-dev"].replace("name: vision-dev", f"name: {name}"))
    sent = wanted.one("ManagedCluster").inputs
    assert sent["resourceName"] == name and sent["dnsPrefix"] == "n" * kept


def test_the_cluster() -> None:
    sent = cluster("aks-prod").inputs
    assert (sent["location"], sent["kubernetesVersion"], sent["sku"]) == (
        "westeurope",
        "1.36",
        {"name": "Base", "tier": "Standard"},
    )
    assert sent["autoUpgradeProfile"] == {"upgradeChannel": "patch", "nodeOSUpgradeChannel": "NodeImage"}
    assert sent["identity"] == {"type": "SystemAssigned"}
    assert sent["tags"] == {"environment": "prod"}
    inline = sent["agentPoolProfiles"][0]
    assert {k: inline[k] for k in ("name", "count", "minCount", "maxCount", "enableAutoScaling")} == {
        "name": "system",
        "count": 2,
        "minCount": 2,
        "maxCount": 4,
        "enableAutoScaling": True,
    }
