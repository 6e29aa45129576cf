"""What the provider answers to Diff: which paths changed, which of them replace.

The replace lists are the real provider's (provider/pkg/gen/replacement.go) and are shorter than what the service
refuses to change: that gap is real, and programs have to close it themselves.
"""

from __future__ import annotations

import re
from typing import Any

from .wire import Unknown

REPLACES: dict[str, tuple[str, ...]] = {
    "ResourceGroup": ("location", "resourceGroupName"),
    "VirtualNetwork": ("location", "resourceGroupName", "virtualNetworkName"),
    "Subnet": ("resourceGroupName", "virtualNetworkName", "subnetName"),
    "AgentPool": ("resourceGroupName", "resourceName", "agentPoolName", "gpuInstanceProfile", "vmSize",
                  "nodePublicIPTags"),
    "MaintenanceConfiguration": ("resourceGroupName", "resourceName", "configName"),
    "ManagedCluster": ("resourceGroupName", "resourceName", "location", "diskEncryptionSetID", "dnsPrefix",
                       "fqdnSubdomain", "linuxProfile", "nodeResourceGroup", "windowsProfile",
                       *(f"networkProfile.{key}" for key in (
                           "serviceCidr", "serviceCidrs", "dnsServiceIP", "networkMode", "networkPlugin",
                           "networkPluginMode", "podCidr", "networkDataplane", "networkPolicy", "outboundType"))),
}


def changes(old: Any, new: Any, path: str = "") -> dict[str, str]:
    """Path -> add | delete | update, in the engine's path syntax."""
    if isinstance(old, dict) and isinstance(new, dict):
        out: dict[str, str] = {}
        for key in sorted(set(old) | set(new)):
            where = _join(path, key)
            if key not in old:
                out[where] = "add"
            elif key not in new:
                out[where] = "delete"
            else:
                out |= changes(old[key], new[key], where)
        return out
    if isinstance(old, list) and isinstance(new, list):
        out = {}
        for index in range(max(len(old), len(new))):
            where = f"{path}[{index}]"
            if index >= len(old):
                out[where] = "add"
            elif index >= len(new):
                out[where] = "delete"
            else:
                out |= changes(old[index], new[index], where)
        return out
    same = not isinstance(new, Unknown) and not isinstance(old, Unknown) and old == new
    return {} if same else {path: "update"}


def _join(path: str, key: str) -> str:
    if re.fullmatch(r"[A-Za-z_$][\w$-]*", key):
        return f"{path}.{key}" if path else key
    return f'{path}["{key}"]'


def replaces(kind: str, path: str) -> bool:
    """Whether a change at `path` replaces the resource."""
    flat = re.sub(r"\[\d+\]", "", path)
    return any(flat == key or flat.startswith((key + ".", key + "[")) for key in REPLACES[kind])


def carry_over(inputs: Any, before: Any, after: Any) -> Any:
    """Inputs with what changed between two answers of the service: how a refresh brings drift into the inputs.

    Only what the program states is touched; a value that the service filled in by itself stays out.
    """
    if isinstance(inputs, dict) and isinstance(before, dict) and isinstance(after, dict):
        return {key: carry_over(value, before.get(key), after.get(key)) for key, value in inputs.items()
                if key in after or key not in before}
    return inputs if before == after else after
