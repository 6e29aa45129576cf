"""What the catalogue knows about the hardware of a pool."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.catalog import AzureSize, GpuModel, azure_size, azure_sizes, gpu_model, gpu_models
from gpufleet.findings.finding import Finding, finding
from gpufleet.stackfile.model import AksStack, Stack
from gpufleet.stackfile.pools import AksPool, Pool


@dataclass(frozen=True)
class Facts:
    """Hardware of one node of a pool; None is unknown. Memory in GiB per schedulable device."""

    gpus: int | None
    model: GpuModel | None
    memory_gib: float | None
    size: AzureSize | None = None


def pool_facts(pool: Pool) -> Facts:
    """Looks a pool up; what the catalogue does not know stays None."""
    if isinstance(pool, AksPool):
        size = azure_size(pool.vm_size)
        if size is None:
            return Facts(None, None, None)
        model = gpu_model(size.gpu) if size.gpu else None
        return Facts(size.gpus_schedulable, model, _memory(model, size.memory_gib_per_gpu), size)
    model = gpu_model(pool.gpu)
    return Facts(
        pool.gpus_per_node, model, _memory(model, float(model.memory_gib) if model and model.memory_gib else None)
    )


def _memory(model: GpuModel | None, sold_as: float | None) -> float | None:
    """What the driver shows where it is known: less than what the card is sold as (a T4 of 16 GB shows 15 GiB)."""
    if model is not None and model.memory_mib is not None:
        return model.memory_mib / 1024
    return sold_as


def check_hardware(pool: Pool, path: str) -> list[Finding]:
    """Sizes and models that the product cannot serve, or knows too little about."""
    if isinstance(pool, AksPool):
        return _check_size(pool, path)
    if gpu_model(pool.gpu) is None:
        return [finding("GF231", f"{path}.gpu", value=pool.gpu, allowed=sorted(gpu_models()))]
    return []


def check_system_pool(stack: Stack) -> list[Finding]:
    """GPUs there would belong to no pool of the stack: AKS gives them a driver, and an operator a second one."""
    if not isinstance(stack, AksStack) or azure_size(stack.cluster.system_pool.vm_size) is None:
        return []
    why = "The system pool carries the cluster's own services; GPUs there belong to no pool of this stack."
    return [finding("GF232", "cluster.systemPool.vmSize", value=stack.cluster.system_pool.vm_size, why=why)]


def _check_size(pool: AksPool, path: str) -> list[Finding]:
    where, size = f"{path}.vmSize", azure_size(pool.vm_size)
    usable = [s.size for s in azure_sizes().values() if s.status in ("supported", "unverified")]
    if size is None:
        return [finding("GF230", where, value=pool.vm_size, allowed=usable)]
    found = []
    if size.size != pool.vm_size:
        found.append(finding("GF230", where, value=pool.vm_size, allowed=[size.size]))
    if size.driver_family == "amd":
        found.append(
            finding("GF232", where, value=size.size, why="It carries AMD GPUs; NVIDIA's stack is of no use there.")
        )
    elif size.status == "unsupported":
        found.append(finding("GF232", where, value=size.size, why=size.note or "Azure does not offer it any more."))
    elif size.status == "retiring":
        found.append(finding("GF233", where, value=size.size))
    elif size.status == "unverified":
        unknown = "its number of GPUs" if size.gpus_schedulable is None else "some of its facts"
        found.append(finding("GF234", where, value=size.size, unknown=unknown, source=size.source))
    return found
