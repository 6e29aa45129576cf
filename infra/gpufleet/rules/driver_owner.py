"""Rules about who installs the driver, and what that owner can do."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import component
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import FleetPool
from gpufleet.places.aks.model import aks_pool
from gpufleet.stackfile.rules import GF110

GF201 = rule(
    "GF201", Severity.ERROR,
    title="There is no driver owner {value} on this kind of cluster.",
    reason="On AKS the driver comes from AKS (`aks`, `managed`) or from the operator; on an existing cluster from "
    "the host or from the operator, with `distribution: aks` from AKS or from the operator. `none` leaves the pool to "
    "somebody else.",
    because="On {kind} the driver comes from one of the allowed owners.",
    remedy="Choose one of them.",
    source="AKS-DOC (use-nvidia-gpu, nvidia-gpu-operator, aks-managed-gpu-nodes); GPUO",
    needs=("value", "owner"),
    wrong="gpufleet:pools: [{name: t4, driver: host}]",
    right="gpufleet:pools: [{name: t4, driver: aks}]",
)

GF202 = rule(
    "GF202", Severity.ERROR,
    title="The pool has no driver.",
    reason="With owner `operator` the node comes without a driver, and the standalone plugin brings none.",
    remedy="Use `stack: {{kind: operator}}`, or another driver owner.",
    source="GPUO; AKS-DOC (use-nvidia-gpu)",
    needs=("value", "owner"),
    wrong="gpufleet:pools: [{name: t4, driver: operator}]",
    right="gpufleet:pools: [{name: t4, driver: aks}]",
)

GF203 = rule(
    "GF203", Severity.ERROR,
    title="Managed GPU pools cannot be asked for with this SDK.",
    reason="The SDK speaks an API version without `gpuProfile.nvidia.managementMode`, the field that asks for them.",
    because="pulumi-azure-native {sdk} speaks an API version without gpuProfile.nvidia.managementMode.",
    remedy="Use `driver: aks`, which installs the driver and leaves plugin and sharing to this stack.",
    source="SDK-AN; AKS-DOC (aks-managed-gpu-nodes)",
    needs=("value", "owner"),
    wrong="gpufleet:pools: [{name: t4, driver: managed}]",
    right="gpufleet:pools: [{name: t4, driver: aks}]",
)

GF204 = rule(
    "GF204", Severity.ERROR,
    title="Sharing cannot work on a pool with driver owner {owner}.",
    reason="None of this stack's GPU software runs on the pool's nodes, so nothing would read the sharing profile.",
    remedy="Remove `sharing`, or choose another driver owner.",
    source="AKS-DOC (aks-managed-gpu-nodes)",
    needs=("value", "owner"),
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools: [{name: t4, sharing: half, driver: none}]
    """,
    fix=("half, driver: none", "half"),
)

GF205 = rule(
    "GF205", Severity.WARNING,
    title="The pool will offer no GPUs.",
    reason="With `driver: none` nobody installs a driver, and the GPU software is kept off the nodes.",
    remedy="Choose a driver owner, or acknowledge this if somebody else looks after the pool.",
    source="AKS-DOC (use-nvidia-gpu)",
    needs=("value", "owner"),
    wrong="gpufleet:pools: [{name: t4, driver: none}]",
    right="gpufleet:pools: [{name: t4, driver: aks}]",
)

GF206 = rule(
    "GF206", Severity.ERROR,
    title="A driver version cannot be chosen with owner {owner}.",
    reason="Whoever installs the driver picks its version; under AKS ownership the node image does, and image "
    "upgrades change it (Azure/AKS#5207).",
    remedy="Remove it, or use `driver: operator` where pinning matters.",
    source="Azure/AKS#5207; NVIDIA/gpu-operator#525",
    needs=("value", "owner"),
    wrong="gpufleet:pools: [{name: t4, driverVersion: 550.90.12}]",
    right="gpufleet:pools: [{name: t4}]",
)

GF207 = rule(
    "GF207", Severity.ERROR,
    title="{value} needs a GRID driver, and the operator publishes none.",
    reason="The size carries vGPU devices; the operator's public driver images are for CUDA drivers "
    "(Azure/AKS#4870).",
    remedy="Use `driver: aks`.",
    source="Azure/AKS#4870; AB",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, vmSize: Standard_NV36ads_A10_v5}]
    """,
    fix=("vmSize: Standard_NV36ads_A10_v5", "vmSize: Standard_NV36ads_A10_v5, driver: aks"),
)

GF209 = rule(
    "GF209", Severity.ERROR,
    title="The tag {value} does nothing any more.",
    reason="AKS obeyed some tags once, in any letter case, and has retired them: new pools with them are refused.",
    because="AKS retired it on {retired} ({source}); new pools with it are refused.",
    remedy="Remove the tag.",
    do="Remove the tag; {instead}.",
    source="Azure/AKS#4925; Azure/AKS#4472; aks_retired_tags",
    needs=("value", "owner"),
    wrong='gpufleet:pools: [{name: t4, tags: {skipGPUdriverInstall: "1"}}]',
    right='gpufleet:pools: [{name: t4, tags: {skipGPU: "1"}}]',
)

GF210 = rule(
    "GF210", Severity.ERROR,
    title="A deallocated node comes back with a broken driver.",
    reason="Deallocate keeps the disk, and the operator does not always repair what it finds there "
    "(NVIDIA/gpu-operator#729).",
    remedy="Use `scaleDownMode: Delete`, or `driver: aks`.",
    source="NVIDIA/gpu-operator#729; AKS-DOC (scale-down-mode)",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, scaleDownMode: Deallocate}]
    """,
    fix=("scaleDownMode: Deallocate", "scaleDownMode: Deallocate, driver: aks"),
)

GF213 = rule(
    "GF213", Severity.ERROR,
    title="AKS installs no driver on {value}.",
    reason="AKS skips its driver step on ARM64 sizes.",
    remedy="Use `driver: operator` with the operator route.",
    source="AB",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, vmSize: Standard_ND128isr_NDR_GB200_v6, driver: aks}]
    """,
    fix=("Standard_ND128isr_NDR_GB200_v6, driver: aks", "Standard_ND128isr_NDR_GB200_v6"),
)


def _where(pool: FleetPool) -> str:
    """The cluster in words: `a cluster of kind existing with distribution aks`."""
    aks = pool.place.kind.name != "aks" and "aks" in pool.owners
    return f"a cluster of kind {pool.place.kind.name}" + (" with distribution aks" if aks else "")


@check("pool", GF201, GF202, GF203, GF204, GF205, GF206)
def owner(pool: FleetPool) -> Iterator[Finding]:
    """Everything that the owner of one pool contradicts."""
    spec, owner, path = pool.spec, pool.owner, pool.path
    where, allowed = f"{path}.driver", pool.owners
    if owner not in allowed:
        yield GF201.at(where, value=owner, allowed=allowed, kind=_where(pool))
        return
    if owner == "operator" and pool.release is None:
        yield GF202.at(where, value=owner)
    if owner == "managed":
        yield GF203.at(where, value=owner, sdk=component("pulumi-azure-native").version)
    if owner in ("none", "managed") and spec.sharing is not None:
        yield GF204.at(f"{path}.sharing", value=spec.sharing, owner=owner)
    if owner == "none":
        yield GF205.at(where, value=owner)
    for key, value in (("driverVersion", spec.driver_version), ("driverBranch", spec.driver_branch)):
        if value is not None and owner not in ("operator", "host"):
            yield GF206.at(f"{path}.{key}", value=value, owner=owner)


@check("aks pool", GF110, GF207, GF210, GF213)
def owner_on_aks(pool: FleetPool) -> Iterator[Finding]:
    """What AKS and the size contradict."""
    spec, path, size = aks_pool(pool), pool.path, pool.hardware.size
    if pool.owner not in pool.owners:
        return
    if spec.driver == "operator":
        if size is not None and size.driver_family == "grid":
            yield GF207.at(f"{path}.driver", value=size.size)
        if spec.scale_down_mode == "Deallocate":
            yield GF210.at(f"{path}.scaleDownMode", value=spec.scale_down_mode)
    if spec.driver == "aks" and size is not None and size.driver_family == "none":
        yield GF213.at(f"{path}.vmSize", value=size.size)
    if spec.scale_down_mode == "Deallocate" and spec.os_disk_type == "Ephemeral":
        yield GF110.at(path,
            keys="scaleDownMode, osDiskType",
            because="A deallocated node keeps its disk, and an ephemeral disk cannot be kept.",
            hint="Use osDiskType: Managed, or scaleDownMode: Delete.",
        )
