"""Rules about tags and disks of AKS nodes, and about what AKS does to them by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpufleet.catalog import aks_retired_tags
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.path import PathParts, join_path
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.places.aks.model import aks_pool, aks_stack
from gpufleet.places.existing.model import existing_stack
from gpufleet.rules.driver_owner import GF209

GF474 = rule(
    "GF474", Severity.ERROR,
    title="{size} has no room for an ephemeral OS disk of {value} GiB.",
    reason="An ephemeral disk lies in the cache or on the temporary disk of the size; AKS refuses a larger one.",
    because="Its cache and its temporary disk have {room} GiB at most; AKS refuses a larger one.",
    remedy="Use a smaller `osDiskSizeGb`, or `osDiskType: Managed`.",
    source="Azure/AKS#2694; VM-DOC; KARP-SKU; azure_sizes",
    needs=("value",),
    wrong="gpufleet:pools: [{name: t4, osDiskType: Ephemeral, osDiskSizeGb: 1024}]",
    fix=("osDiskSizeGb: 1024", "osDiskSizeGb: 128"),
)

GF475 = rule(
    "GF475", Severity.WARNING,
    title="Whether {size} has room for an ephemeral OS disk of {value} GiB is not known here.",
    reason="Its temporary disk is smaller; its cache may be larger, and the size page does not say.",
    because="Its temporary disk has {room} GiB; its cache may have more, and the size page does not say.",
    remedy="Use a smaller `osDiskSizeGb`, or `osDiskType: Managed`, or acknowledge this after `az vm list-skus`.",
    source="VM-DOC; azure_sizes",
    needs=("value",),
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_NV6ads_A10_v5, osDiskType: Ephemeral, osDiskSizeGb: 256}]",
    fix=("osDiskSizeGb: 256", "osDiskSizeGb: 128"),
)

GF476 = rule(
    "GF476", Severity.WARNING,
    title="The channel {value} leaves GPU pools with Azure Linux without updates.",
    reason="AKS does not support this channel for GPU nodes with Azure Linux.",
    remedy="Use `nodeOsUpgradeChannel: NodeImage`, or `osSku: Ubuntu`.",
    source="AKS-DOC (auto-upgrade-node-os-image)",
    wrong="""
        gpufleet:cluster: {nodeOsUpgradeChannel: SecurityPatch}
        gpufleet:pools: [{name: t4, osSku: AzureLinux}]
    """,
    fix=("SecurityPatch", "NodeImage"),
)

GF477 = rule(
    "GF477", Severity.WARNING,
    title="The maintenance window is for nothing.",
    reason="Its channel is switched off, so AKS upgrades nothing in it.",
    because="{channel} is {word}, so AKS upgrades nothing in it.",
    remedy="Set the channel, or remove the window.",
    source="AKS-DOC (planned-maintenance)",
    wrong='gpufleet:cluster: {maintenance: {nodes: {day: Sunday, start: "22:00"}}}',
    right='gpufleet:cluster: {nodeOsUpgradeChannel: NodeImage, maintenance: {nodes: {day: Sunday, start: "22:00"}}}',
)

GF480 = rule(
    "GF480", Severity.ERROR,
    title="Nodes of AKS cannot be listed by name.",
    reason="AKS makes its nodes anew, under other names, when it scales or changes their image; nothing may be "
    "configured on them by Ansible.",
    remedy="Find them by a label that AKS keeps: `nodeSelector: {{agentpool: NAME}}`.",
    source="AKS-DOC (use-labels)",
    wrong="""
        gpufleet:cluster: {kind: existing, distribution: aks}
        gpufleet:pools: [{name: t4, gpu: T4, hosts: {aks-t4-12345678-vmss000000: {}}}]
    """,
    right="""
        gpufleet:cluster: {kind: existing, distribution: aks}
        gpufleet:pools: [{name: t4, gpu: T4, nodeSelector: {agentpool: t4}}]
    """,
)

#: What AKS makes where no size is stated and the temporary disk is smaller (AKS documentation, concepts-storage).
DEFAULT_DISK_GIB = 128


@check("aks pool", GF474, GF475)
def ephemeral_room(pool: FleetPool) -> Iterator[Finding]:
    """An ephemeral OS disk needs room in the cache or on the temporary disk."""
    spec, size = aks_pool(pool), pool.hardware.size
    if spec.os_disk_type != "Ephemeral" or size is None:
        return
    known = [gib for gib in (size.cache_gib, size.temp_gib) if gib is not None]
    asked = spec.os_disk_size_gb or DEFAULT_DISK_GIB
    if not known or asked <= max(known):
        return
    where = f"{pool.path}.osDiskSizeGb" if spec.os_disk_size_gb else f"{pool.path}.osDiskType"
    broken = GF474 if len(known) == 2 else GF475
    yield broken.at(where, value=asked, size=size.size, room=str(max(known)))


@check("aks", GF476, GF477)
def channels(fleet: Fleet) -> Iterator[Finding]:
    """Channels that do nothing for a pool, and windows without a channel."""
    stack = aks_stack(fleet)
    cluster, channel = stack.cluster, stack.cluster.os_channel
    if channel in ("SecurityPatch", "Unmanaged") and any(p.os_sku.startswith("AzureLinux") for p in stack.pools):
        yield GF476.at("cluster.nodeOsUpgradeChannel", value=channel)
    if cluster.maintenance.cluster and cluster.upgrade_channel == "none":
        yield GF477.at("cluster.maintenance.cluster", channel="upgradeChannel", word="none")
    if cluster.maintenance.nodes and channel in ("None", "Unmanaged"):
        yield GF477.at("cluster.maintenance.nodes", channel="nodeOsUpgradeChannel", word=channel)


@check("existing", GF480)
def nodes_of_aks(fleet: Fleet) -> Iterator[Finding]:
    """Pools of a cluster of AKS that is there."""
    stack = existing_stack(fleet)
    if stack.cluster.distribution == "aks":
        for i, pool in enumerate(stack.pools):
            if pool.hosts:
                yield GF480.at(f"pools[{i}].hosts", value=sorted(pool.hosts))


@check("aks", GF209)
def retired_tags(fleet: Fleet) -> Iterator[Finding]:
    """Tags of pools, and of the cluster, which AKS hands on to its nodes."""
    stack = aks_stack(fleet)
    tagged: list[tuple[PathParts, Mapping[str, str]]] = [(("cluster", "tags"), stack.cluster.tags)]
    tagged += [(("pools", i, "tags"), pool.tags) for i, pool in enumerate(stack.pools)]
    for path, tags in tagged:
        for tag in tags:
            if (row := aks_retired_tags().get(tag.lower())) is not None:
                details = {"retired": row.retired, "source": row.source, "instead": row.instead}
                yield GF209.at(join_path((*path, tag)), value=tag, **details)
