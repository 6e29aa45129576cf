"""Problems that users of GPU pools on AKS met, as they would write them here: each is refused or warned of.

The threads are public issues; what is prevented by construction and not by a diagnostic (names, labels, tolerations,
one release, explicit providers) has its tests under tests/unit/plan and tests/component.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.config.samples import REMOVE, compile_base, told

_HALF = {"sharing.p": {"strategy": "timeSlicing", "replicas": 4}, "pools[0].sharing": "p"}
_FROM_ZERO = {"pools[0].count": REMOVE, "pools[0].autoscale": {"min": 0, "max": 8}}
_CUT = {"strategy": "mig", "profile": "1g.10gb", "naming": "mixed"}

PROBLEMS: dict[str, tuple[str, dict[str, Any], tuple[str, str]]] = {
    "NVIDIA/gpu-operator#525": (
        "aks-operator",
        {"pools[0].driver": "aks", "pools[0].driverVersion": "580.173.02"},
        ("GF206", "pools[0].driverVersion"),
    ),
    "Azure/AKS#4925": (
        "aks-plugin",
        {"pools[0].tags": {"SkipGPUDriverInstall": "true"}},
        ("GF209", "pools[0].tags.SkipGPUDriverInstall"),
    ),
    "Azure/AKS#4870": (
        "aks-operator",
        {"pools[0].vmSize": "Standard_NV36ads_A10_v5"},
        ("GF207", "pools[0].driver"),
    ),
    "Azure/AKS#5207": ("aks-plugin", {"pools[0].driverBranch": "550"}, ("GF206", "pools[0].driverBranch")),
    "NVIDIA/gpu-operator#729": (
        "aks-operator",
        {"pools[0].scaleDownMode": "Deallocate"},
        ("GF210", "pools[0].scaleDownMode"),
    ),
    "microsoft/azurelinux#8355": ("aks-operator", {"pools[0].osSku": "AzureLinux"}, ("GF208", "pools[0].osSku")),
    "NVIDIA/nvidia-docker#1671": (
        "aks-plugin",
        {"stack.values": {"passDeviceSpecs": False}},
        ("GF101", "stack.values"),
    ),
    "pulumi/pulumi-azure-native#959": (
        "aks-plugin",
        {"pools[0].spot": True, "pools[0].taints": ["kubernetes.azure.com/scalesetpriority=spot:NoExecute"]},
        ("GF401", "pools[0].taints[0]"),
    ),
    "pulumi/pulumi-azure-native#1504": (
        "aks-plugin",
        {"cluster.pools": [{"name": "gpu"}]},
        ("GF101", "cluster.pools"),
    ),
    "pulumi/pulumi-azure-native#2059": (
        "aks-plugin",
        {"cluster.version": "1.36.2", "cluster.upgradeChannel": "patch"},
        ("GF110", "cluster"),
    ),
    "Azure/AKS#4818": (
        "aks-plugin",
        {"pools[0].vmSize": "Standard_ND96isr_H100_v5", "pools[0].maxSurge": "33%"},
        ("GF411", "pools[0].maxSurge"),
    ),
    "Azure/AKS#1444": ("aks-plugin", {"pools[0].zones": ["1", "2", "3"]}, ("GF410", "pools[0].zones")),
    "a name cut to twelve characters": (
        "aks-plugin",
        {"pools[0].name": "training-h100-a"},
        ("GF106", "pools[0].name"),
    ),
    "Azure/AKS#1449": (
        "aks-plugin",
        {**_HALF, "sharing.p.renameByDefault": True, "pools[0].taints": ["nvidia.com/gpu=present:NoSchedule"]},
        ("GF440", "pools[0].taints"),
    ),
    "an effect in another cloud's spelling": (
        "aks-plugin",
        {"pools[0].taints": ["sku=gpu:NO_SCHEDULE"]},
        ("GF107", "pools[0].taints[0]"),
    ),
    "NVIDIA/k8s-device-plugin#990": (
        "aks-operator",
        {"stack.values": {"devicePlugin": {"config": {"default": "any"}}}},
        ("GF220", "stack.values.devicePlugin.config"),
    ),
    "NVIDIA/k8s-device-plugin#1433": (
        "aks-plugin",
        {**_HALF, "sharing.p.flags": {"renameByDefault": True}},
        ("GF101", "sharing.p.flags"),
    ),
    "pulumi/pulumi-kubernetes#1567": (
        "aks-plugin",
        {**_HALF, "sharing.p.configMapName": "gpu-sharing"},
        ("GF101", "sharing.p.configMapName"),
    ),
    "NVIDIA/k8s-device-plugin#461": (
        "aks-plugin",
        {**_HALF, "sharing.p.replicas": 8, "sharing.p.memoryPerPodGib": 8},
        ("GF302", "pools[0].sharing"),
    ),
    "Azure/AKS#3427": ("aks-plugin", {**_HALF, **_FROM_ZERO}, ("GF420", "pools[0].autoscale.min")),
    "Azure/AKS#5161": (
        "aks-plugin",
        {**_FROM_ZERO, "pools[0].vmSize": "Standard_NC24ads_A100_v4", "sharing.p": _CUT, "pools[0].sharing": "p"},
        ("GF421", "pools[0].autoscale.min"),
    ),
    "Azure/AKS#2832": (
        "aks-plugin",
        {"pools[0].labels": {"nvidia.com/gpu.product": "Tesla-T4"}},
        ("GF403", 'pools[0].labels["nvidia.com/gpu.product"]'),
    ),
    "Azure/AKS#5573": ("aks-plugin", _FROM_ZERO, ("GF423", "pools[0].autoscale.min")),
    "pulumi/pulumi-kubernetes#2054": ("aks-operator", {"stack.timeoutSeconds": 60}, ("GF105", "stack.timeoutSeconds")),
}


@pytest.mark.parametrize("thread", PROBLEMS)
def test_problem(thread: str) -> None:
    base, changes, expected = PROBLEMS[thread]
    assert expected in told(compile_base(base, changes))
