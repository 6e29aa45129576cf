"""The Azure stand-in answers a pool's body like the service does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twin.azure.errors import ArmError, FailedStateError
from twin.azure.service import Service

Put = Callable[..., dict[str, Any]]
SPOT = "kubernetes.azure.com/scalesetpriority"
SPOT_POOL = {"scaleSetPriority": "Spot", "enableAutoScaling": True, "minCount": 1, "maxCount": 3, "count": None}


@pytest.mark.parametrize(("changes", "code", "words"), [
    ({"vmSize": "Standard_NC4as_T4_v4"}, "BadRequest", "not allowed in your subscription"),
    ({"count": 1001}, "InvalidParameter", "0 to 1000"),
    ({"mode": "System", "count": 0}, "InvalidParameter", "1 to 1000"),
    ({"enableAutoScaling": True, "maxCount": 2}, "InvalidParameter", "minCount is required"),
    ({"enableAutoScaling": True, "minCount": 2, "maxCount": 3, "count": 1}, "InvalidParameter", "outside minCount"),
    ({"minCount": 1}, "InvalidParameter", "with enableAutoScaling only"),
    ({"vmSize": "Standard_D4s_v5", "gpuProfile": {"driver": "None"}}, "InvalidParameter", "GPU sizes only"),
    ({"vmSize": "Standard_ND128isr_NDR_GB200_v6"}, "BadRequest", "set gpuProfile.driver None"),
    ({"gpuInstanceProfile": "MIG1g"}, "InvalidParameter", "gpuInstanceProfile is not supported"),
    ({"gpuProfile": {"driver": "install"}}, "InvalidParameter", "allowed are: Install, None"),
    ({"nodeLabels": {"kubernetes.azure.com/mine": "x"}}, "BadRequest", "prefix is reserved"),
    ({"nodeLabels": {"node-role.kubernetes.io/gpu": ""}}, "BadRequest", "reserved namespace"),
    ({"nodeTaints": ["sku=gpu:NO_SCHEDULE"]}, "BadRequest", "Invalid taint"),
    ({"nodeTaints": ["sku=gpu:NoSchedule", "sku=cpu:NoSchedule"]}, "BadRequest", "given twice"),
    ({"nodeTaints": [SPOT + "=spot:NoSchedule"]}, "BadRequest", "reserved for spot pools"),
    ({"nodeLabels": {SPOT: "spot"}}, "BadRequest", "prefix is reserved"),
    ({"spotMaxPrice": -1}, "InvalidParameter", "Spot only"),
    ({**SPOT_POOL, "mode": "System"}, "InvalidParameter", "cannot have mode System"),
    ({**SPOT_POOL, "spotMaxPrice": 0.1234567}, "InvalidParameter", "5 decimals"),
    ({**SPOT_POOL, "nodeLabels": {SPOT: "regular"}}, "BadRequest", "must be 'spot'"),
    ({"tags": {"skipGpuDriverInstall": "true"}}, "BadRequest", "no longer supported"),
    ({"scaleDownMode": "Deallocate", "osDiskType": "Ephemeral"}, "InvalidParameter", "managed OS disks"),
    ({"upgradeSettings": {"maxSurge": "0", "maxUnavailable": "0"}}, "InvalidParameter", "cannot both be 0"),
    ({"upgradeSettings": {"maxSurge": "1", "maxUnavailable": "1"}}, "InvalidParameter", "must be 0 when"),
    ({"tags": {"usegpudedicatedvhd": "true"}}, "BadRequest", "no longer supported"),
    ({"scaleDownMode": "Deallocate"}, "InvalidParameter", "managed OS disks"),  # RP-45: Ephemeral is the default
    ({"osDiskType": "Ephemeral", "osDiskSizeGB": 177}, "BadRequest", "no room"),
    ({"orchestratorVersion": "1.37"}, "NodePoolMcVersionIncompatible", "incompatible"),
    ({"orchestratorVersion": "1.27"}, "K8sVersionNotSupported", "supported: 1.34"),
    ({"osType": "Windows", "agentPoolName": "windows1"}, "InvalidParameter", "more than 6 characters"),
])
def test_refused_bodies(put_pool: Put, azure: Service, kube: Any, changes: dict[str, Any], code: str,
                        words: str) -> None:
    before = azure.store.read()
    with pytest.raises(ArmError) as refused:
        put_pool(**changes)
    assert refused.value.code == code
    assert words in refused.value.message
    assert azure.store.read() == before
    assert not [name for name in kube.nodes if not name.startswith("aks-system-")]


def test_defaults_that_the_service_fills_in(put_pool: Put) -> None:
    pool = put_pool(count=None)
    assert pool["gpuProfile"] == {"driver": "Install"}
    assert (pool["count"], pool["maxPods"], pool["mode"], pool["osSKU"]) == (1, 110, "User", "Ubuntu")
    assert pool["type"] == "Microsoft.ContainerService/managedClusters/agentPools"
    assert pool["typePropertiesType"] == "VirtualMachineScaleSets"


def test_spot_pools_get_taint_and_label_and_keep_them(put_pool: Put) -> None:
    pool = put_pool(**SPOT_POOL, nodeTaints=["sku=gpu:NoSchedule"])
    assert pool["nodeTaints"] == ["sku=gpu:NoSchedule", SPOT + "=spot:NoSchedule"]
    assert pool["nodeLabels"] == {SPOT: "spot"}
    more = {**SPOT_POOL, "maxCount": 6}
    taints, labels = ["sku=gpu:NoSchedule", SPOT + "=spot:NoSchedule"], {SPOT: "spot"}
    with pytest.raises(ArmError, match=r"Changing property 'properties\.nodeTaints' is not allowed"):
        put_pool(create=False, **more, nodeTaints=taints[:1], nodeLabels=labels)
    with pytest.raises(ArmError, match=r"Changing property 'properties\.nodeLabels' is not allowed"):
        put_pool(create=False, **more, nodeTaints=taints)
    assert put_pool(create=False, **more, nodeTaints=taints, nodeLabels=labels)["maxCount"] == 6


@pytest.mark.parametrize(("path", "changes"), [
    ("vmSize", {"vmSize": "Standard_NC8as_T4_v3"}), ("maxPods", {"maxPods": 30}),
    ("gpuProfile.driver", {"gpuProfile": {"driver": "None"}}),
    ("scaleSetPriority", {"scaleSetPriority": "Spot"}), ("availabilityZones", {"availabilityZones": ["1"]}),
    ("osDiskSizeGB", {"osDiskSizeGB": 256}), ("osDiskType", {"osDiskType": "Managed", "osDiskSizeGB": 176}),
    ("vnetSubnetID", {"vnetSubnetID": "/subscriptions/x"}),
])
def test_what_the_service_never_changes(put_pool: Put, path: str, changes: dict[str, Any]) -> None:
    put_pool()
    with pytest.raises(ArmError) as refused:
        put_pool(create=False, **changes)
    assert str(refused.value) == (f'Status=400 Code="PropertyChangeNotAllowed" Message="Changing property '
                                  f"'properties.{path}' is not allowed.\" Target=\"properties.{path}\"")


def test_driver_install_written_out_is_no_change(put_pool: Put) -> None:
    put_pool()
    assert put_pool(create=False, gpuProfile={"driver": "Install"}, tags={"team": "x"})["tags"] == {"team": "x"}


def test_parents_and_namesakes(azure: Service, put_pool: Put) -> None:
    with pytest.raises(ArmError) as refused:
        put_pool(resourceName="other")
    assert refused.value.code == "ParentResourceNotFound"
    put_pool()
    with pytest.raises(ArmError, match="cannot create already existing resource"):
        put_pool()
    with pytest.raises(ArmError, match="cannot create already existing resource"):
        put_pool(agentPoolName="system", mode="System")
    with pytest.raises(ArmError) as missing:
        azure.put("ResourceGroup", {"resourceGroupName": "no", "location": "eastus"}, create=False)
    assert missing.value.code == "ResourceNotFound"


def test_the_last_system_pool_stays(azure: Service, put_pool: Put) -> None:
    cluster = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/" \
              "Microsoft.ContainerService/managedClusters/aks"
    with pytest.raises(ArmError, match="at least one system node pool"):
        azure.delete(f"{cluster}/agentPools/system")
    put_pool(agentPoolName="system2", mode="System", vmSize="Standard_D4s_v5")
    azure.delete(f"{cluster}/agentPools/system")
    shown = azure.get(cluster)
    assert shown and [pool["name"] for pool in shown["agentPoolProfiles"]] == ["system2"]


def test_planned_failures(azure: Service, put_pool: Put, tmp_path: Path, kube: Any) -> None:
    control = tmp_path / "control.json"
    control.write_text(json.dumps({"fail": [
        {"op": "create", "type": "AgentPool", "name": "t4", "code": "AllocationFailed", "times": 1},
        {"op": "create", "type": "AgentPool", "name": "late", "code": "QuotaExceeded", "leaves": "failed"}]}))
    with pytest.raises(ArmError, match="AllocationFailed") as failed:
        put_pool()
    assert not isinstance(failed.value, FailedStateError)
    assert put_pool()["provisioningState"] == "Succeeded"
    with pytest.raises(FailedStateError, match="QuotaExceeded"):
        put_pool(agentPoolName="late")
    assert not [name for name in kube.nodes if name.startswith("aks-late-")]
    assert put_pool(create=False, agentPoolName="late")["provisioningState"] == "Succeeded"
    assert len([name for name in kube.nodes if name.startswith("aks-late-")]) == 1
