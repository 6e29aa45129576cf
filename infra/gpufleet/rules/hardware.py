"""Rules about sizes, GPUs, and the drivers that drive them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpufleet.catalog import (
    AzureSize,
    azure_size,
    azure_sizes,
    component,
    driver_branch,
    driver_branches,
    driver_version,
    gpu_models,
    models_meant,
    operator_drivers,
)
from gpufleet.findings.explain import in_full
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.owner import pinned_version
from gpufleet.places.aks.model import aks_pool, aks_stack
from gpufleet.places.existing.model import node_pool
from gpufleet.rules.operator_driver import GF217
from gpufleet.stackfile.rules import GF109

GF211 = rule(
    "GF211", Severity.ERROR,
    title="Driver {value} does not drive {gpu}.",
    reason="NVIDIA drops old GPU architectures from new driver branches; a newer driver does not see the GPU.",
    because="Branch {newest} is the last for the {architecture} architecture.",
    remedy="Set `driverBranch: \"{newest}\"` on this pool (driver owner operator or host).",
    source="architectures; driver_branches",
    needs=("value", "owner"),
    wrong='gpufleet:pools: [{name: t4, gpu: V100-SXM2-16GB, driverBranch: "590"}]',
    right='gpufleet:pools: [{name: t4, gpu: V100-SXM2-16GB, driverBranch: "580"}]',
)

GF212 = rule(
    "GF212", Severity.ERROR,
    title="Driver {value} is too old for {gpu}.",
    reason="A driver does not know GPUs that came after its branch, nor MIG on them.",
    because="{gpu} needs {oldest} or newer.",
    remedy="Choose a newer driver.",
    source="gpus; mig; MIG-UG; OGKM",
    needs=("value", "owner"),
    wrong="gpufleet:pools: [{name: t4, gpu: H200, driverVersion: 550.54.15}]",
    right="gpufleet:pools: [{name: t4, gpu: H200, driverVersion: 550.90.07}]",
)

GF230 = rule(
    "GF230", Severity.ERROR,
    title="{value} is not in the table of Azure GPU sizes.",
    reason="GPU count, memory and driver family of a size come from the catalogue; without them nothing could be "
    "predicted.",
    remedy="Use a listed size in its exact spelling, or add a row with its source to the catalogue.",
    source="azure_sizes; VM-DOC",
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_NC4as_T4_v4}]",
    right="gpufleet:pools: [{name: t4}]",
)

GF231 = rule(
    "GF231", Severity.ERROR,
    title="{value} is not in the table of GPU models.",
    reason="Memory, architecture and driver range of a model come from the catalogue.",
    remedy="Use a listed model, or add a row with its source to the catalogue.",
    source="gpus",
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, gpu: T5, driver: operator}]
    """,
    fix=("gpu: T5", "gpu: tesla-t4"),
)

GF232 = rule(
    "GF232", Severity.ERROR,
    title="{value} cannot be used.",
    reason="Azure does not offer the size any more, it carries no NVIDIA GPUs, or its GPUs would stay idle in the "
    "system pool.",
    remedy="Choose another size.",
    source="azure_sizes; AKS-DOC (use-nvidia-gpu); AKS-REL",
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_ND96isr_MI300X_v5}]",
    right="gpufleet:pools: [{name: t4}]",
)

GF233 = rule(
    "GF233", Severity.WARNING,
    title="{value} is being retired.",
    reason="Azure takes the series out of service.",
    remedy="Plan the move to another size.",
    source="azure_sizes; AKS-REL",
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_NC6s_v3}]",
    right="gpufleet:pools: [{name: t4}]",
)

GF234 = rule(
    "GF234", Severity.WARNING,
    title="{value} is not verified: Azure's specification pages do not confirm {unknown}.",
    reason="Azure's specification pages do not confirm every figure of this row, so the prediction may be wrong.",
    because="{told}",
    remedy="Check the size before relying on the prediction.",
    source="azure_sizes",
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_NC8ads_A10_v4}]",
    right="gpufleet:pools: [{name: t4, vmSize: Standard_NV6ads_A10_v5}]",
)


@check("aks pool", GF230, GF232, GF233, GF234)
def size(pool: FleetPool) -> Iterator[Finding]:
    """A size that Azure does not have, or that the product cannot serve, or knows too little about."""
    given = aks_pool(pool).vm_size
    where, size = f"{pool.path}.vmSize", azure_size(given)
    if size is None:
        usable = [s.size for s in azure_sizes().values() if s.status in ("supported", "unverified")]
        yield GF230.at(where, value=given, allowed=usable)
        return
    if size.size != given:
        yield GF230.at(where, value=given, allowed=[size.size])
    if size.driver_family == "amd":
        yield GF232.at(where, value=size.size, because="It carries AMD GPUs; NVIDIA's stack is of no use there.")
    elif size.status == "unsupported":
        yield GF232.at(where, value=size.size, because=size.note or "Azure does not offer it any more.")
    elif size.status == "retiring":
        yield GF233.at(where, value=size.size)
    elif size.status == "unverified":
        open_facts = [word for word, fact in _figures(size).items() if fact is None]
        unknown = " and ".join(open_facts) or "all of its figures"
        told = f"The catalogue has the row from: {in_full(size.source)}."
        yield GF234.at(where, value=size.size, unknown=unknown, told=told)


def _figures(size: AzureSize) -> dict[str, object]:
    """What the prediction needs of a size, in words."""
    return {"its number of GPUs": size.gpus_schedulable, "its GPU": size.gpu, "whether it can be cut (MIG)": size.mig}


@check("aks", GF232)
def system_pool(fleet: Fleet) -> Iterator[Finding]:
    """GPUs of the system pool would belong to no pool: AKS gives them a driver, and an operator a second one."""
    size = aks_stack(fleet).cluster.system_pool.vm_size
    if azure_size(size) is not None:
        because = "The system pool carries the cluster's own services; GPUs there belong to no pool of this stack."
        yield GF232.at("cluster.systemPool.vmSize", value=size, because=because)


@check("existing pool", GF231)
def model(pool: FleetPool) -> Iterator[Finding]:
    """A GPU that the catalogue does not know."""
    if pool.hardware.model is not None:
        return
    given = node_pool(pool).gpu
    meant = models_meant(str(given))
    found = GF231.at(f"{pool.path}.gpu", value=given, allowed=meant or sorted(gpu_models()))
    if len(meant) == 1:
        found = replace(found, closest=meant[0])
    elif meant:
        remedy = f"{given} can be any of these models; write the one that `nvidia-smi -L` shows."
        found = replace(found, closest=None, remedy=remedy)
    yield found


@check("pool", GF109, GF211, GF212, GF217)
def version(pool: FleetPool) -> Iterator[Finding]:
    """Whether the driver that will be installed drives the GPU at all."""
    spec, model = pool.spec, pool.hardware.model
    if pool.owner not in pool.owners or pool.owner not in ("operator", "host"):
        return
    given = spec.driver_version or spec.driver_branch
    key = "driverVersion" if spec.driver_version else "driverBranch"
    where = f"{pool.path}.{key}" if given else f"{pool.path}.driver"
    if spec.driver_branch and driver_branch(spec.driver_branch) is None:
        known = [str(branch) for branch in driver_branches()]
        told = {"because": "The catalogue lists all branches.", "hint": "Use one of those allowed."}
        yield GF109.at(where, value=given, allowed=known, what="driver branch", **told)
        return
    if spec.driver == "host" and given is None:
        return
    if spec.driver == "operator" and given is not None and (pinned := pinned_version(spec)) not in operator_drivers():
        yield GF217.at(where, value=pinned, allowed=operator_drivers())
    if model is None:
        return
    version = given or component("operator-driver").version
    branch = driver_version(version).branch
    newest, oldest = model.newest_driver_branch, model.min_driver
    if newest is not None and branch > newest:
        details = {"gpu": model.id, "architecture": model.architecture, "newest": str(newest)}
        yield GF211.at(where, value=version, **details)
    if oldest is not None:
        wanted, exact = driver_version(oldest), bool(spec.driver_version) or given is None
        if driver_version(version) < wanted if exact else branch < wanted.branch:
            yield GF212.at(where, value=version, gpu=model.id, oldest=oldest)
