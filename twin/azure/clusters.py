"""Rules of the cluster itself, and of the versions of its pools.

| rule | source |
| --- | --- |
| location, identity, dnsPrefix and a System pool are required | REST specification; AKS docs, use-system-pools |
| versions that are served | AKS docs, supported-kubernetes-versions, 2026-11 |
| no downgrade; a pool is not newer than the cluster, at most two minor versions older | SDK text |
| a pool keeps its version when the cluster is upgraded | hashicorp/terraform-provider-azurerm#5541 |
| nodeOSUpgradeChannel NodeImage when unset, required with upgradeChannel node-image | SDK text; azurerm's page |
| disableLocalAccounts needs managed Entra | azurerm's page of kubernetes_cluster |
| maintenance windows: three names, one schedule each, 4 to 24 hours | SDK text; AKS docs, planned-maintenance |
"""

from __future__ import annotations

import re
from typing import Any

from .errors import ArmError, not_allowed

MINORS = ("1.34", "1.35", "1.36", "1.37")  # AKS docs, supported-kubernetes-versions, 2026-11
SKEW = 2
WINDOWS = ("default", "aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule")
SCHEDULES = ("daily", "weekly", "absoluteMonthly", "relativeMonthly")


def refuse_bad(name: str, body: dict[str, Any], inline: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Raise the ArmError of the first rule that a cluster's body breaks; `inline` are its pools by name."""
    if not body.get("location"):
        raise ArmError("LocationRequired", "The location property is required for this resource.")
    if not body.get("identity") and not body.get("servicePrincipalProfile"):
        raise ArmError("InvalidParameter", "Either identity or servicePrincipalProfile is required.", "identity")
    if not body.get("dnsPrefix") and not body.get("fqdnSubdomain"):
        raise ArmError("InvalidParameter", "Required parameter dnsPrefix is missing (null).", "dnsPrefix")
    if not inline:
        raise ArmError("InvalidParameter", "Required parameter agentPoolProfiles is missing (null).",
                       "agentPoolProfiles")
    if before is None and not any(pool.get("mode") == "System" for pool in inline.values()):
        raise ArmError("InvalidParameter", "Must define at least one system pool.", "agentPoolProfiles")
    _refuse_version(f"Managed cluster {name}", body.get("kubernetesVersion"), "kubernetesVersion")
    version = body.get("kubernetesVersion")
    if before and version and number(version) < number(minor(before["kubernetesVersion"])):
        raise ArmError("OperationNotAllowed", f"Downgrading the cluster from version {before['kubernetesVersion']} to "
                                              f"{version} is not allowed.", status=409)
    if before and before.get("dnsPrefix") != body.get("dnsPrefix", before.get("dnsPrefix")):
        raise not_allowed("dnsPrefix")
    channels = upgrade_profile(body)
    if channels.get("upgradeChannel") == "node-image" and channels["nodeOSUpgradeChannel"] != "NodeImage":
        raise ArmError("InvalidParameter", "nodeOSUpgradeChannel must be NodeImage with upgradeChannel node-image.",
                       "properties.autoUpgradeProfile")
    if body.get("disableLocalAccounts") and not (body.get("aadProfile") or {}).get("managed"):
        raise ArmError("BadRequest", "Disabling local accounts is only allowed with managed Entra integration.",
                       "properties.disableLocalAccounts")


def upgrade_profile(body: dict[str, Any]) -> dict[str, Any]:
    """The channels as the service fills them in."""
    return {"nodeOSUpgradeChannel": "NodeImage", **(body.get("autoUpgradeProfile") or {})}


def pool_version(name: str, asked: str | None, cluster: str, before: dict[str, Any] | None) -> str:
    """The version of a pool: what is asked for, what it has, or what the cluster has when the pool is made."""
    had = before.get("orchestratorVersion") if before else None
    version = asked or had or cluster
    _refuse_version(f"Agent pool {name}", asked, "properties.orchestratorVersion")
    behind = number(minor(cluster))[1] - number(minor(version))[1]
    if asked and (behind < 0 or behind > SKEW):
        message = f"Node pool version {version} and control plane version {cluster} are incompatible."
        raise ArmError("NodePoolMcVersionIncompatible", message, "properties.orchestratorVersion")
    if asked and had and number(minor(asked)) < number(minor(had)):
        raise ArmError("OperationNotAllowed", f"Downgrading pool {name} from {had} to {asked} is not allowed.",
                       status=409)
    return version


def refuse_bad_window(name: str, body: dict[str, Any]) -> None:
    """Raise the ArmError of the first rule that a maintenance configuration breaks."""
    if name not in WINDOWS:
        raise ArmError("InvalidParameter", f"Maintenance configuration '{name}' is none of {', '.join(WINDOWS)}.",
                       "configName")
    window = body.get("maintenanceWindow")
    if name == "default" or not window:
        return
    if len([key for key in SCHEDULES if (window.get("schedule") or {}).get(key)]) != 1:
        raise ArmError("InvalidParameter", "One and only one schedule is required.", "properties.maintenanceWindow")
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", window.get("startTime") or ""):
        raise ArmError("InvalidParameter", "startTime is from 00:00 to 23:59.", "properties.maintenanceWindow")
    if not 4 <= window.get("durationHours", 24) <= 24:
        raise ArmError("InvalidParameter", "durationHours is 4 to 24.", "properties.maintenanceWindow")


def _refuse_version(whose: str, version: str | None, target: str) -> None:
    if version and not re.fullmatch(r"\d+\.\d+(\.\d+)?", version):
        raise ArmError("InvalidParameter", f"Kubernetes version '{version}' is malformed.", target)
    if version and minor(version) not in MINORS:
        raise ArmError("K8sVersionNotSupported", f"{whose} is on version {version}, which is not supported in this "
                                                 f"region; supported: {', '.join(MINORS)}.", target)


def patch_version(version: str) -> str:
    """The exact version that `1.36` stands for."""
    return version if version.count(".") == 2 else f"{version}.3"


def minor(version: str) -> str:
    """`1.36` of `1.36.3`."""
    return ".".join(version.split(".")[:2])


def number(version: str) -> tuple[int, ...]:
    """A version that can be compared."""
    return tuple(int(part) for part in version.split("."))
