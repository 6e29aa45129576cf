"""Who installs the driver: one word per pool, and everything that derives from it (docs/driver-owner.md).

Sources of the rules: AKS documentation (use-nvidia-gpu, nvidia-gpu-operator, aks-managed-gpu-nodes), GPU Operator
26.7 values and documentation, and the public threads that the codes' explanations name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufleet.catalog import component, driver_branch, driver_version, operator_drivers
from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.facts import Facts, pool_facts
from gpufleet.plan.names import DEPLOY_LABEL
from gpufleet.stackfile.model import AksStack, Stack, stack_pools
from gpufleet.stackfile.pools import AksPool, NodePool, Pool
from gpufleet.stackfile.software import OperatorRoute, PluginRoute

#: AKS turned this tag off for new pools on 2025-08-14 (Azure/AKS#4925).
RETIRED_TAG = "skipgpudriverinstall"
AKS_RUNTIME_CLASS = "nvidia-container-runtime"
NVIDIA_RUNTIME_CLASS = "nvidia"
OWNERS_BY_CLUSTER = {"aks": ("aks", "operator", "managed", "none"), "existing": ("host", "operator", "none")}


@dataclass(frozen=True)
class OperatorDriver:
    """The operator's cluster-wide answers to who installs driver and toolkit."""

    driver: bool
    toolkit: bool
    runtime_class: str
    version: str | None = None
    kernel_module_type: str | None = None


def operator_driver(stack: Stack) -> OperatorDriver:
    """Values for the whole release; where owners are mixed, node labels keep the operands apart (`node_labels`)."""
    owners = {pool.driver for pool in stack.pools}
    installs = "operator" in owners
    on_aks = isinstance(stack, AksStack)
    # AKS node images bring the toolkit. With the operator as only owner its own runs from the file source; beside
    # AKS-driver pools it stays off and AKS's runtime class serves both (reference: nvidia.md A5.6).
    toolkit = installs and not (on_aks and "aks" in owners)
    runtime = AKS_RUNTIME_CLASS if on_aks and not toolkit else NVIDIA_RUNTIME_CLASS
    pinned = sorted({v for pool in stack.pools if pool.driver == "operator" and (v := pinned_version(pool))})
    modules = {m.modules for pool in stack.pools if pool.driver == "operator" and (m := pool_facts(pool).model)}
    flavour = {"proprietary": "proprietary", "open": "open"}.get(next(iter(modules)) if len(modules) == 1 else "")
    return OperatorDriver(
        driver=installs,
        toolkit=toolkit,
        runtime_class=runtime,
        version=pinned[0] if pinned else None,
        kernel_module_type=flavour if installs else None,
    )


def pinned_version(pool: Pool) -> str | None:
    """The exact version that a pool asks for; of a branch, the one that the operator's release lists."""
    if pool.driver_version or not pool.driver_branch:
        return pool.driver_version
    listed = [v for v in operator_drivers() if driver_version(v).branch == int(pool.driver_branch)]
    if listed:
        return max(listed, key=driver_version)
    branch = driver_branch(pool.driver_branch)
    return branch.newest_seen if branch else None


def node_labels(stack: Stack) -> dict[str, dict[str, str]]:
    """Per pool, labels that keep the operator's operands off nodes where another owner has done the work."""
    if not isinstance(stack.stack, OperatorRoute):
        return {}
    release = operator_driver(stack)
    labels: dict[str, dict[str, str]] = {}
    for pool in stack_pools(stack):
        own = labels.setdefault(pool.name, {})
        if pool.driver in ("none", "managed"):
            own[DEPLOY_LABEL + "operands"] = "false"
        elif pool.driver != "operator":
            if release.driver:
                own[DEPLOY_LABEL + "driver"] = "false"
            if release.toolkit:
                own[DEPLOY_LABEL + "container-toolkit"] = "false"
    return labels


def plugin_runtime_class(pools: Sequence[Pool]) -> str | None:
    """Runtime class of the standalone plugin's pods: none where nvidia is the default runtime, as on AKS."""
    needs = [p for p in pools if isinstance(p, NodePool) and not p.nvidia_default_runtime]
    return NVIDIA_RUNTIME_CLASS if needs else None


def check_owner(pool: Pool, facts: Facts, stack: Stack, path: str) -> list[Finding]:
    """Everything that the owner of one pool contradicts."""
    where, owner = f"{path}.driver", pool.driver
    allowed = OWNERS_BY_CLUSTER[stack.cluster.kind]
    if owner not in allowed:
        return [finding("GF201", where, value=owner, allowed=allowed, kind=stack.cluster.kind)]
    found: list[Finding] = []
    if owner == "operator" and isinstance(stack.stack, PluginRoute):
        found.append(finding("GF202", where, value=owner))
    if owner == "managed":
        found.append(finding("GF203", where, value=owner, sdk=component("pulumi-azure-native").version))
    if owner in ("none", "managed") and pool.sharing is not None:
        found.append(finding("GF204", f"{path}.sharing", value=pool.sharing, owner=owner))
    if owner == "none":
        found.append(finding("GF205", where, value=owner))
    for key, value in (("driverVersion", pool.driver_version), ("driverBranch", pool.driver_branch)):
        if value is not None and owner not in ("operator", "host"):
            found.append(finding("GF206", f"{path}.{key}", value=value, owner=owner))
    if isinstance(pool, AksPool):
        found += _check_aks(pool, facts, path)
    if owner in ("operator", "host"):
        found += _check_version(pool, facts, path)
    return found


def _check_aks(pool: AksPool, facts: Facts, path: str) -> list[Finding]:
    found: list[Finding] = []
    for tag in pool.tags:
        if tag.lower() == RETIRED_TAG:
            found.append(finding("GF209", f"{path}.tags.{tag}", value=tag))
    if pool.driver == "operator":
        if facts.size is not None and facts.size.driver_family == "grid":
            found.append(finding("GF207", f"{path}.driver", value=facts.size.size))
        if pool.os_sku.startswith("AzureLinux"):
            found.append(finding("GF208", f"{path}.osSku", value=pool.os_sku))
        if pool.scale_down_mode == "Deallocate":
            found.append(finding("GF210", f"{path}.scaleDownMode", value=pool.scale_down_mode))
    if pool.driver == "aks" and facts.size is not None and facts.size.driver_family == "none":
        found.append(finding("GF213", f"{path}.vmSize", value=facts.size.size))
    if pool.scale_down_mode == "Deallocate" and pool.os_disk_type == "Ephemeral":
        found.append(
            finding(
                "GF110",
                path,
                keys="scaleDownMode, osDiskType",
                why="A deallocated node keeps its disk, and an ephemeral disk cannot be kept.",
                hint="Use osDiskType: Managed, or scaleDownMode: Delete.",
            )
        )
    return found


def _check_version(pool: Pool, facts: Facts, path: str) -> list[Finding]:
    """Whether the driver that will be installed drives the GPU at all."""
    given = pool.driver_version or pool.driver_branch
    key = "driverVersion" if pool.driver_version else "driverBranch"
    where = f"{path}.{key}" if given else f"{path}.driver"
    if pool.driver_branch and driver_branch(pool.driver_branch) is None:
        from gpufleet.catalog import driver_branches

        known = [str(b) for b in driver_branches()]
        return [
            finding(
                "GF109",
                where,
                value=given,
                allowed=known,
                what="driver branch",
                why="The catalogue lists all branches.",
            )
        ]
    if pool.driver == "host" and given is None:
        return []
    version = given or component("operator-driver").version
    found: list[Finding] = []
    if pool.driver == "operator" and given is not None and (pinned := pinned_version(pool)) not in operator_drivers():
        found.append(finding("GF217", where, value=pinned, allowed=operator_drivers()))
    model = facts.model
    if model is None:
        return found
    branch = driver_version(version).branch
    newest = model.newest_driver_branch
    if newest is not None and branch > newest:
        found.append(
            finding("GF211", where, value=version, gpu=model.id, architecture=model.architecture, newest=str(newest))
        )
    oldest = model.min_driver
    if oldest is not None:
        wanted = driver_version(oldest)
        too_old = driver_version(version) < wanted if pool.driver_version or given is None else branch < wanted.branch
        if too_old:
            found.append(finding("GF212", where, value=version, gpu=model.id, oldest=oldest))
    return found


def check_release(stack: Stack) -> list[Finding]:
    """What the pools of one operator release must agree on."""
    if not isinstance(stack.stack, OperatorRoute):
        return []
    found: list[Finding] = []
    wanted: dict[str, int] = {}
    for i, pool in enumerate(stack_pools(stack)):
        if pool.driver == "operator":
            wanted.setdefault(pinned_version(pool) or component("operator-driver").version, i)
    if len(wanted) > 1:
        last = max(wanted.values())
        found.append(finding("GF214", f"pools[{last}].driver", value=" / ".join(sorted(wanted))))
    kinds: dict[str, int] = {}
    for i, pool in enumerate(stack_pools(stack)):
        if pool.driver == "operator" and (model := pool_facts(pool).model) and model.modules != "both":
            kinds.setdefault(model.modules, i)
    if len(kinds) > 1:
        found.append(finding("GF215", f"pools[{max(kinds.values())}].driver", value=" / ".join(sorted(kinds))))
    systems: dict[str, int] = {}
    for i, pool in enumerate(stack_pools(stack)):
        if isinstance(pool, AksPool) and pool.driver != "none":
            systems.setdefault(pool.os_sku, i)
    if len(systems) > 1:
        found.append(finding("GF216", f"pools[{max(systems.values())}].osSku", value=" / ".join(sorted(systems))))
    return found
