"""Rules of agent pools: what AKS adds, refuses and never changes.

| rule | source |
| --- | --- |
| name `^[a-z][a-z0-9]{0,11}$`, Windows 6 characters | REST specification; AKS docs, create-node-pools |
| count 0..1000 (User), 1..1000 (System) | REST specification, AgentPool.count |
| autoscale: minCount <= count <= maxCount, 0 for User only | kubernetes-sigs/cluster-api-provider-azure#5947 |
| unknown VM size: BadRequest | dotnet/core#8000 (message form) |
| gpuProfile only on GPU sizes; driver Install when unset | REST specification, GPUProfile |
| sizes without an AKS driver only with driver None | AKS docs, use-nvidia-gpu |
| gpuInstanceProfile only on A100, H100, H200 sizes | AKS docs, gpu-multi-instance |
| labels under kubernetes.azure.com and kubernetes.io refused | AKS docs, use-labels; terraform-provider-azurerm#18567 |
| taint effect one of three | Kubernetes API, Taint.effect |
| spot: User mode; appends taint, label; refuses a PUT without | AKS docs, spot-node-pool; pulumi-azure-native#959 |
| spotMaxPrice -1 or above 0 with up to 5 decimals, spot only | AKS docs, spot-node-pool |
| OS disk Ephemeral where cache or temporary disk has the room, else Managed | AKS docs, concepts-storage |
| OS disk size: the temporary disk from 128 GiB on; managed disks by vCPUs | AKS docs, concepts-storage |
| an ephemeral OS disk needs the room | Azure/AKS#2694 |
| scaleDownMode Deallocate needs a managed OS disk | AKS docs, scale-down-mode |
| tags SkipGPUDriverInstall, UseGPUDedicatedVHD refused | Azure/AKS#4925, Azure/AKS#4472 |
| one of maxSurge and maxUnavailable is above 0, not both | REST specification; Azure/AKS#4277 |
| IMMUTABLE below: PropertyChangeNotAllowed | AKS docs named in reference section 2.5 of each row |

The spot label: AKS once accepted a PUT that dropped it and then removed it from the nodes (Azure/AKS#3152).
Here such a PUT is refused like one that drops the taint, so that a program which forgets either fails.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from .errors import ArmError, not_allowed

SPOT_KEY = "kubernetes.azure.com/scalesetpriority"
SPOT_TAINT = f"{SPOT_KEY}=spot:NoSchedule"
POOL_NAME = re.compile(r"^[a-z][a-z0-9]{0,11}$")
TAINT = re.compile(r"^(?P<key>[^=:\s]+)(=(?P<value>[^=:\s]*))?:(?P<effect>[^:\s]+)$")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
IMMUTABLE = ("vmSize", "gpuInstanceProfile", "maxPods", "gpuProfile.driver", "scaleSetPriority", "spotMaxPrice",
             "scaleSetEvictionPolicy", "availabilityZones", "osDiskSizeGB", "osDiskType", "vnetSubnetID", "osType")
DEFAULTS: dict[str, Any] = {
    "count": 1, "enableAutoScaling": False, "enableFIPS": False, "enableNodePublicIP": False, "kubeletDiskType": "OS",
    "maxPods": 110, "mode": "User", "osSKU": "Ubuntu", "osType": "Linux",
    "scaleDownMode": "Delete", "vmSize": "Standard_DS2_v2",
}

DISK_GIB = 128
MANAGED_DISKS = ((64, 1024), (16, 512), (8, 256), (0, 128))  # from this number of vCPUs on: GiB
RETIRED_TAGS = {"skipgpudriverinstall": "use gpuProfile.driver None", "usegpudedicatedvhd": "remove it"}


@cache
def table() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "sizes.yaml").read_text())
    return loaded


def size(name: str) -> dict[str, Any] | None:
    row: dict[str, Any] | None = table()["sizes"].get(name)
    return row


def is_spot(pool: dict[str, Any]) -> bool:
    return pool.get("scaleSetPriority") == "Spot"


def effective(name: str, body: dict[str, Any]) -> dict[str, Any]:
    """The pool as a GET shows it: what was sent, what AKS fills in and what it appends."""
    pool = {**DEFAULTS, **{key: value for key, value in body.items() if value is not None}}
    row = size(pool["vmSize"]) or {}
    if row.get("gpus") and not (pool.get("gpuProfile") or {}).get("driver"):
        pool["gpuProfile"] = {**(pool.get("gpuProfile") or {}), "driver": "Install"}
    pool.setdefault("osDiskType", "Ephemeral" if (pool.get("osDiskSizeGB") or DISK_GIB) <= room(row) else "Managed")
    pool["osDiskSizeGB"] = pool.get("osDiskSizeGB") or _default_disk(row, pool["osDiskType"])
    pool.setdefault("type", "VirtualMachineScaleSets")
    pool["upgradeSettings"] = {"drainTimeoutInMinutes": 30, "maxSurge": "10%", "maxUnavailable": "0",
                               "undrainableNodeBehavior": "Schedule", **(pool.get("upgradeSettings") or {})}
    if is_spot(pool):
        pool.setdefault("scaleSetEvictionPolicy", "Delete")
        pool.setdefault("spotMaxPrice", -1)
        pool["nodeTaints"] = _with(pool.get("nodeTaints"), SPOT_TAINT)
        pool["nodeLabels"] = {**(pool.get("nodeLabels") or {}), SPOT_KEY: "spot"}
    if pool["enableAutoScaling"] and "count" not in body:
        pool["count"] = max(pool.get("minCount") or 0, 0)
    pool["name"] = name
    return pool


def room(row: dict[str, Any]) -> int:
    """GiB that an ephemeral OS disk may have on a size: in its cache, or on its temporary disk."""
    return max(int(row.get("cache_gib", 0)), int(row.get("temp_gib", 0)))


def _default_disk(row: dict[str, Any], kind: str) -> int:
    if kind == "Ephemeral":
        return min(int(row["temp_gib"]), 2048) if row.get("temp_gib", 0) >= DISK_GIB else DISK_GIB
    return next(gib for vcpus, gib in MANAGED_DISKS if row.get("vcpu", 1) >= vcpus)


def _with(taints: list[str] | None, taint: str) -> list[str]:
    return list(taints or []) + ([] if taint in (taints or []) else [taint])


def node_count(pool: dict[str, Any]) -> int:
    """Nodes to make: the lower bound under autoscaling (no load, no scale-up), the count otherwise."""
    return int(pool.get("minCount") or 0) if pool["enableAutoScaling"] else int(pool["count"])


def refuse_bad(name: str, body: dict[str, Any], location: str, before: dict[str, Any] | None) -> None:
    """Raise the ArmError of the first rule that the body breaks; `before` is the pool as it is now, if it is."""
    pool = effective(name, body)
    if not POOL_NAME.match(name):
        raise ArmError("InvalidParameter", f"The agent pool name '{name}' must match {POOL_NAME.pattern}.", "name")
    if pool["osType"] == "Windows" and len(name) > 6:
        raise ArmError("InvalidParameter", f"Windows agent pool name '{name}' has more than 6 characters.", "name")
    if before is not None:
        _refuse_change(before, body, pool)
    if size(pool["vmSize"]) is None:
        raise ArmError("BadRequest", f"The VM size of AgentPoolProfile:{name} is not allowed in your subscription in "
                                     f"location '{location}': {pool['vmSize']}.", "properties.vmSize")
    _refuse_counts(name, pool)
    _refuse_gpu(name, body, pool)
    _refuse_labels_taints(pool)
    _refuse_spot(name, body, pool)
    if pool["scaleDownMode"] == "Deallocate" and pool["osDiskType"] == "Ephemeral":
        raise ArmError("InvalidParameter", "scaleDownMode Deallocate needs managed OS disks.",
                       "properties.scaleDownMode")
    if pool["osDiskType"] == "Ephemeral" and pool["osDiskSizeGB"] > room(size(pool["vmSize"]) or {}):
        raise ArmError("BadRequest", f"The VM size {pool['vmSize']} has no room for an ephemeral OS disk of "
                                     f"{pool['osDiskSizeGB']} GB.", "properties.osDiskType")
    for tag in pool.get("tags") or {}:
        if (instead := RETIRED_TAGS.get(tag.lower())) is not None:
            raise ArmError("BadRequest", f"The tag '{tag}' is no longer supported, {instead}.", "properties.tags")
    upgrade = pool["upgradeSettings"]
    zero = [str(upgrade[key]) in ("0", "0%") for key in ("maxSurge", "maxUnavailable")]
    if all(zero):
        raise ArmError("InvalidParameter", "maxSurge and maxUnavailable cannot both be 0.",
                       "properties.upgradeSettings")
    if not any(zero):
        raise ArmError("InvalidParameter", "maxSurge must be 0 when maxUnavailable is set.",
                       "properties.upgradeSettings")


def _refuse_change(before: dict[str, Any], body: dict[str, Any], pool: dict[str, Any]) -> None:
    for path in IMMUTABLE:
        if _at(before, path) != _at(pool, path):
            raise not_allowed(path)
    if is_spot(before):
        if SPOT_TAINT not in (body.get("nodeTaints") or []):
            raise not_allowed("nodeTaints")
        if (body.get("nodeLabels") or {}).get(SPOT_KEY) != "spot":
            raise not_allowed("nodeLabels")


def _at(value: dict[str, Any], path: str) -> Any:
    current: Any = value
    for part in path.split("."):
        current = current.get(part) if isinstance(current, dict) else None
    return sorted(current) if isinstance(current, list) else current


def _refuse_counts(name: str, pool: dict[str, Any]) -> None:
    low = 1 if pool["mode"] == "System" else 0
    counts = {"count": pool["count"]}
    if pool["enableAutoScaling"]:
        for key in ("minCount", "maxCount"):
            if pool.get(key) is None:
                raise ArmError("InvalidParameter", f"{key} is required when enableAutoScaling is true.",
                               f"properties.{key}")
            counts[key] = pool[key]
    elif pool.get("minCount") is not None or pool.get("maxCount") is not None:
        raise ArmError("InvalidParameter", "minCount and maxCount are allowed with enableAutoScaling only.",
                       "properties.minCount")
    for key, value in counts.items():
        if not (1 if key == "maxCount" else low) <= value <= 1000:
            raise ArmError("InvalidParameter", f"The value of {key} of agent pool '{name}' is {value}, allowed are "
                                               f"{low} to 1000 for mode {pool['mode']}.", f"properties.{key}")
    if pool["enableAutoScaling"] and not pool["minCount"] <= pool["count"] <= pool["maxCount"]:
        raise ArmError("InvalidParameter", f"count {pool['count']} lies outside minCount {pool['minCount']} and "
                                           f"maxCount {pool['maxCount']}.", "properties.count")


def _refuse_gpu(name: str, body: dict[str, Any], pool: dict[str, Any]) -> None:
    row = size(pool["vmSize"]) or {}
    if body.get("gpuProfile") and not row.get("gpus"):
        raise ArmError("InvalidParameter", f"gpuProfile is allowed on GPU sizes only, not on {pool['vmSize']}.",
                       "properties.gpuProfile")
    if row.get("gpus") and row.get("driver", "none") == "none" and pool["gpuProfile"]["driver"] == "Install":
        raise ArmError("BadRequest", f"AKS has no GPU driver for {pool['vmSize']}; set gpuProfile.driver None.",
                       "properties.gpuProfile.driver")
    if pool.get("gpuInstanceProfile") and not row.get("mig"):
        raise ArmError("InvalidParameter", f"gpuInstanceProfile is not supported on {pool['vmSize']} (pool '{name}').",
                       "properties.gpuInstanceProfile")


def _refuse_labels_taints(pool: dict[str, Any]) -> None:
    for key, value in (pool.get("nodeLabels") or {}).items():
        domain = key.split("/")[0] if "/" in key else ""
        if is_spot(pool) and key == SPOT_KEY:
            continue
        if domain == "kubernetes.azure.com" or domain.endswith(".kubernetes.azure.com"):
            raise ArmError("BadRequest", f"Invalid node label key {key}. The 'kubernetes.azure.com' prefix is reserved "
                                         "for system labels.", "properties.nodeLabels")
        if (domain in ("kubernetes.io", "k8s.io") or domain.endswith((".kubernetes.io", ".k8s.io"))) and not (
                domain.endswith(("kubelet.kubernetes.io", "node.kubernetes.io"))):
            raise ArmError("BadRequest", f"Node label key {key} is in a reserved namespace; allowed prefixes are "
                                         "kubelet.kubernetes.io and node.kubernetes.io.", "properties.nodeLabels")
        if len(str(value)) > 63:
            raise ArmError("BadRequest", f"The value of label {key} has more than 63 characters.",
                           "properties.nodeLabels")
    seen: set[tuple[str, str]] = set()
    for taint in pool.get("nodeTaints") or []:
        match = TAINT.match(taint)
        if not match or match["effect"] not in EFFECTS:
            raise ArmError("BadRequest", f"Invalid taint '{taint}': key=value:effect with one of {', '.join(EFFECTS)}.",
                           "properties.nodeTaints")
        if (match["key"], match["effect"]) in seen:
            raise ArmError("BadRequest", f"Taint {match['key']}:{match['effect']} is given twice.",
                           "properties.nodeTaints")
        seen.add((match["key"], match["effect"]))


def _refuse_spot(name: str, body: dict[str, Any], pool: dict[str, Any]) -> None:
    if is_spot(pool):
        if (body.get("nodeLabels") or {}).get(SPOT_KEY, "spot") != "spot":
            raise ArmError("BadRequest", f"Label {SPOT_KEY} must be 'spot' on a spot pool.", "properties.nodeLabels")
        if pool["mode"] == "System":
            raise ArmError("InvalidParameter", f"Spot pool '{name}' cannot have mode System.", "properties.mode")
        price = pool["spotMaxPrice"]
        if price != -1 and (price <= 0 or round(price, 5) != price):
            raise ArmError("InvalidParameter", "spotMaxPrice must be -1 or above 0 with up to 5 decimals.",
                           "properties.spotMaxPrice")
        return
    for key in ("scaleSetEvictionPolicy", "spotMaxPrice"):
        if body.get(key) is not None:
            raise ArmError("InvalidParameter", f"{key} is allowed with scaleSetPriority Spot only.",
                           f"properties.{key}")
    if any(taint.startswith(SPOT_KEY) for taint in pool.get("nodeTaints") or []):
        raise ArmError("BadRequest", f"Taint {SPOT_KEY} is reserved for spot pools.", "properties.nodeTaints")
