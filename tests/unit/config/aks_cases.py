"""Cases of rules about AKS: versions, disks, channels, groups."""

from __future__ import annotations

from tests.unit.config.case import Case
from tests.unit.config.parts import TEAM, second
from tests.unit.config.samples import REMOVE

GROUP = "6d0c1e2f-0a3b-4c5d-8e9f-112233445566"
SERVED = ("1.34", "1.35", "1.36", "1.37")
ON_AKS = {"cluster.distribution": "aks", "pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"agentpool": "t4"}}
WINDOW = {"day": "Sunday", "start": "22:00"}


def group(name: str) -> dict[str, object]:
    return {"teams": [{**TEAM, "group": name}]}


AKS = [
    Case("GF470", "cluster.version", value="1.27", allowed=SERVED, says="1.34 to 1.37"),
    Case("GF470", "cluster.version", "aks-plugin", {"cluster.version": "1.73"}, {"cluster.version": "1.37"},
         value="1.73"),
    Case("GF470", "cluster.version", "aks-plugin", {"cluster.version": "1.30", "cluster.tier": "Premium"},
         {"cluster.version": "1.37", "cluster.tier": "Premium"}, value="1.30"),
    Case("GF470", "pools[0].version", "aks-plugin", {"pools[0].version": "1.27.3"}, {"pools[0].version": "1.37.1"},
         value="1.27.3"),
    Case("GF471", "cluster.version", value="1.34", says="2026-11"),
    Case("GF472", "cluster.version", value="1.38"),
    Case("GF472", "cluster.version", "aks-plugin", {"cluster.version": "1.33", "cluster.tier": "Premium"},
         {"cluster.version": "1.37", "cluster.tier": "Premium"}, value="1.33", says="Long-term"),
    Case("GF473", "pools[0].version", value="1.37", says="1.36"),
    Case("GF473", "pools[0].version", "aks-plugin", {"cluster.version": "1.37", "pools[0].version": "1.34"},
         {"cluster.version": "1.37", "pools[0].version": "1.35"}, value="1.34",
         also=(("GF471", "pools[0].version"),)),
    Case("GF473", "pools[0].version", "aks-plugin", {"cluster.version": "1.37.1", "pools[0].version": "1.37.2"},
         {"cluster.version": "1.37", "pools[0].version": "1.37.2"}, value="1.37.2"),
    Case("GF482", "cluster.upgradeChannel", value="rapid", says="1.37"),
    Case("GF482", "cluster.upgradeChannel", "aks-plugin",
         {"cluster.upgradeChannel": "stable", "cluster.version": "1.36"}, {"cluster.upgradeChannel": "stable"},
         value="stable"),
    Case("GF280", "cluster.version", value="1.22", says="1.23"),
    Case("GF280", "cluster.version", "existing-operator", {"cluster.version": "1.15"}, {"cluster.version": "1.33"},
         value="1.15", says="GPU Operator"),
    Case("GF281", "cluster.version", value="1.30", says="1.32"),
    Case("GF474", "pools[0].osDiskSizeGb", value="1024", says="176"),
    Case("GF474", "pools[0].osDiskSizeGb", "aks-plugin",
         {"pools[0].vmSize": "Standard_NC24ads_A100_v4", "pools[0].osDiskType": "Ephemeral",
          "pools[0].osDiskSizeGb": 257},
         {"pools[0].vmSize": "Standard_NC24ads_A100_v4", "pools[0].osDiskType": "Ephemeral",
          "pools[0].osDiskSizeGb": 256}, value="257", says="256"),
    Case("GF475", "pools[0].osDiskSizeGb", value="256", says="180"),
    Case("GF476", "cluster.nodeOsUpgradeChannel", value="SecurityPatch"),
    Case("GF477", "cluster.maintenance.nodes", says="nodeOsUpgradeChannel is None"),
    Case("GF477", "cluster.maintenance.cluster", "aks-plugin", {"cluster.maintenance": {"cluster": WINDOW}},
         {"cluster.maintenance": {"cluster": WINDOW}, "cluster.upgradeChannel": "patch"},
         says="upgradeChannel is none"),
    Case("GF478", "teams[0].group", value="vision-engineers"),
    Case("GF478", "teams[0].group", "aks-plugin", group(GROUP), {**group(GROUP), "cluster.entra": {}}, value=GROUP),
    Case("GF479", "teams[0].group", value="vision-engineers"),
    Case("GF480", "pools[0].hosts", says="agentpool"),
    Case("GF201", "pools[0].driver", "existing-plugin", {**ON_AKS, "pools[0].driver": "host"}, ON_AKS, value="host",
         allowed=("aks", "operator", "none"), says="distribution aks"),
    Case("GF209", "pools[0].tags.UseGPUDedicatedVHD", "aks-plugin", {"pools[0].tags": {"UseGPUDedicatedVHD": "true"}},
         {"pools[0].tags": {"UseGPU": "true"}}, value="UseGPUDedicatedVHD", says="2025-01-10"),
    Case("GF209", "cluster.tags.usegpudedicatedvhd", "aks-plugin", {"cluster.tags": {"usegpudedicatedvhd": "true"}},
         {"cluster.tags": {"a": "b"}}, value="usegpudedicatedvhd", says="Azure/AKS#4472"),
    Case("GF209", "cluster.tags.SKIPGPUDRIVERINSTALL", "aks-plugin", {"cluster.tags": {"SKIPGPUDRIVERINSTALL": "1"}},
         value="SKIPGPUDRIVERINSTALL", says="2025-08-14"),
    Case("GF110", "pools[0]", "aks-plugin", {"pools[0].maxSurge": "1", "pools[0].maxUnavailable": "10%"},
         {"pools[0].maxSurge": "1", "pools[0].maxUnavailable": "0"}, says="not both"),
    Case("GF110", "cluster", "aks-plugin", {"cluster.disableLocalAccounts": True},
         {"cluster.disableLocalAccounts": True, "cluster.entra": {"adminGroups": [GROUP]}}, says="Entra alone"),
    Case("GF110", "cluster", "aks-plugin",
         {"cluster.disableLocalAccounts": True, "cluster.entra": {}, "cluster.credentials": "admin"},
         {"cluster.disableLocalAccounts": True, "cluster.entra": {}}, says="local account"),
    Case("GF110", "cluster", "aks-plugin",
         {"cluster.upgradeChannel": "node-image", "cluster.nodeOsUpgradeChannel": "None"},
         {"cluster.upgradeChannel": "node-image"}, says="NodeImage"),
    Case("GF110", "cluster", "aks-plugin", {"cluster.existing": {"name": "corp", "resourceGroup": "rg"}},
         {"cluster.existing": {"name": "corp", "resourceGroup": "rg"}, "cluster.name": REMOVE,
          "cluster.location": REMOVE}, says="only adds agent pools"),
    Case("GF110", "cluster", "aks-plugin",
         {"cluster": {"kind": "aks", "existing": {"name": "corp", "resourceGroup": "rg"}, "upgradeChannel": "patch"}},
         {"cluster": {"kind": "aks", "existing": {"name": "corp", "resourceGroup": "rg"}}}, says="upgradeChannel"),
    Case("GF104", "cluster", "aks-plugin", {"cluster.location": None}, says="region"),
    Case("GF102", "cluster.existing.resourceGroup", "aks-plugin",
         {"cluster": {"kind": "aks", "existing": {"name": "corp"}}},
         {"cluster": {"kind": "aks", "existing": {"name": "corp", "resourceGroup": "rg"}}}),
    Case("GF106", "cluster.existing.name", "aks-plugin",
         {"cluster": {"kind": "aks", "existing": {"name": "-corp", "resourceGroup": "rg"}}},
         {"cluster": {"kind": "aks", "existing": {"name": "corp", "resourceGroup": "rg"}}}, value="-corp"),
    Case("GF106", "cluster.entra.adminGroups[0]", "aks-plugin", {"cluster.entra": {"adminGroups": ["admins"]}},
         {"cluster.entra": {"adminGroups": [GROUP]}}, value="admins"),
    Case("GF106", "cluster.maintenance.nodes.start", "aks-plugin",
         {"cluster.nodeOsUpgradeChannel": "NodeImage", "cluster.maintenance": {"nodes": {**WINDOW, "start": "24:00"}}},
         {"cluster.nodeOsUpgradeChannel": "NodeImage", "cluster.maintenance": {"nodes": WINDOW}}, value="24:00"),
    Case("GF411", "pools[0].maxSurge", "aks-plugin",
         {"pools[0].vmSize": "Standard_ND96isr_H100_v5", "pools[0].maxSurge": "1"},
         {"pools[0].vmSize": "Standard_ND96isr_H100_v5", "pools[0].maxUnavailable": "2"}, value="1"),
    Case("GF473", "pools[1].version", "aks-plugin", {"cluster.version": "1.36", **second(version="1.37")},
         {"cluster.version": "1.36", **second(version="1.36")}, value="1.37"),
]
