"""What AKS and Azure's GPU sizes contradict."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import azure_size, azure_sizes
from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.taints import parse_taint
from gpufleet.methods.mig import Mig
from gpufleet.places.aks.model import AksPool, AksStack
from gpufleet.places.aks.place import SPOT_KEY, SPOT_TAINT
from gpufleet.places.aks.plan import aks_profile

#: AKS turned this tag off for new pools on 2025-08-14 (Azure/AKS#4925).
RETIRED_TAG = "skipgpudriverinstall"


def check_aks_pool(pool: FleetPool, fleet: Fleet) -> Iterator[Finding]:
    """Everything about one pool of AKS."""
    spec = pool.spec
    if not isinstance(spec, AksPool):
        return
    yield from _size(spec, pool.path)
    if spec.driver in fleet.place.owners:
        yield from _owner(pool, spec)
    yield from _spot(pool, spec)
    yield from _capacity(pool, spec)
    if pool.profile is not None:
        if isinstance(pool.method, Mig):
            yield from _cutter(pool, pool.method, spec)
        yield from _autoscaling(pool, spec)


def check_aks_stack(fleet: Fleet) -> Iterator[Finding]:
    """GPUs of the system pool would belong to no pool: AKS gives them a driver, and an operator a second one.

    One operator release serves one operating system.
    """
    stack = fleet.stack
    if not isinstance(stack, AksStack):
        return
    if azure_size(stack.cluster.system_pool.vm_size) is not None:
        why = "The system pool carries the cluster's own services; GPUs there belong to no pool of this stack."
        yield finding("GF232", "cluster.systemPool.vmSize", value=stack.cluster.system_pool.vm_size, why=why)
    if fleet.release is None:
        return
    systems: dict[str, int] = {}
    for i, pool in enumerate(stack.pools):
        if pool.driver != "none":
            systems.setdefault(pool.os_sku, i)
    if len(systems) > 1:
        yield finding("GF216", f"pools[{max(systems.values())}].osSku", value=" / ".join(sorted(systems)))


def _size(pool: AksPool, path: str) -> Iterator[Finding]:
    where, size = f"{path}.vmSize", azure_size(pool.vm_size)
    if size is None:
        usable = [s.size for s in azure_sizes().values() if s.status in ("supported", "unverified")]
        yield finding("GF230", where, value=pool.vm_size, allowed=usable)
        return
    if size.size != pool.vm_size:
        yield finding("GF230", where, value=pool.vm_size, allowed=[size.size])
    if size.driver_family == "amd":
        yield finding("GF232", where, value=size.size, why="It carries AMD GPUs; NVIDIA's stack is of no use there.")
    elif size.status == "unsupported":
        yield finding("GF232", where, value=size.size, why=size.note or "Azure does not offer it any more.")
    elif size.status == "retiring":
        yield finding("GF233", where, value=size.size)
    elif size.status == "unverified":
        unknown = "its number of GPUs" if size.gpus_schedulable is None else "some of its facts"
        yield finding("GF234", where, value=size.size, unknown=unknown, source=size.source)


def _owner(pool: FleetPool, spec: AksPool) -> Iterator[Finding]:
    path, size = pool.path, pool.hardware.size
    for tag in spec.tags:
        if tag.lower() == RETIRED_TAG:
            yield finding("GF209", f"{path}.tags.{tag}", value=tag)
    if spec.driver == "operator":
        if size is not None and size.driver_family == "grid":
            yield finding("GF207", f"{path}.driver", value=size.size)
        if spec.os_sku.startswith("AzureLinux"):
            yield finding("GF208", f"{path}.osSku", value=spec.os_sku)
        if spec.scale_down_mode == "Deallocate":
            yield finding("GF210", f"{path}.scaleDownMode", value=spec.scale_down_mode)
    if spec.driver == "aks" and size is not None and size.driver_family == "none":
        yield finding("GF213", f"{path}.vmSize", value=size.size)
    if spec.scale_down_mode == "Deallocate" and spec.os_disk_type == "Ephemeral":
        yield finding(
            "GF110",
            path,
            keys="scaleDownMode, osDiskType",
            why="A deallocated node keeps its disk, and an ephemeral disk cannot be kept.",
            hint="Use osDiskType: Managed, or scaleDownMode: Delete.",
        )


def _spot(pool: FleetPool, spec: AksPool) -> Iterator[Finding]:
    """The spot taint is AKS's: a pool may restate it, as AKS sets it, and only where it is spot."""
    for i, text in enumerate(spec.taints):
        try:
            taint = parse_taint(text)
        except ValueError:
            continue
        if taint.key == SPOT_KEY and (not spec.spot or taint != SPOT_TAINT):
            yield finding("GF401", f"{pool.path}.taints[{i}]", value=text)


def _capacity(pool: FleetPool, spec: AksPool) -> Iterator[Finding]:
    """GPU sizes are offered in some zones of a region, and surge needs free capacity (Azure/AKS#1444, #4818)."""
    size = pool.hardware.size
    if set(spec.zones) == {"1", "2", "3"}:
        yield finding("GF410", f"{pool.path}.zones", value=list(spec.zones))
    if size is not None and size.scarce and spec.max_surge.rstrip("%").strip("0") != "":
        yield finding("GF411", f"{pool.path}.maxSurge", value=spec.max_surge, size=size.size)


def _cutter(pool: FleetPool, mig: Mig, spec: AksPool) -> Iterator[Finding]:
    """AKS cuts GPUs only as its profiles say, and only where the size is known to support it."""
    model, size = pool.hardware.model, pool.hardware.size
    if model is None or not model.mig_profiles:
        return
    if spec.driver == "aks":
        if size is not None and size.mig is not True:
            state = "not supported" if size.mig is False else "not known to be supported"
            yield finding("GF313", f"{pool.path}.vmSize", value=size.size, state=state)
        elif aks_profile(mig, model) is None:
            asked = ", ".join(mig.kinds)
            yield finding("GF314", f"{pool.path}.sharing", value=asked, allowed=sorted(model.mig_aks.values()))
    if spec.autoscale and spec.autoscale.min == 0 and mig.mig_strategy == "mixed":
        yield finding("GF421", f"{pool.path}.autoscale.min", value=0, resource=", ".join(mig.resources))


def _autoscaling(pool: FleetPool, spec: AksPool) -> Iterator[Finding]:
    """Sharing that the autoscaler cannot see."""
    scale, profile, plan = spec.autoscale, pool.profile, pool.autoscaling
    if scale is None or profile is None:
        return
    where = f"{pool.path}.autoscale"
    if plan is not None and plan.pods_per_node > (pool.hardware.gpus or 0):
        if scale.min > 0:
            yield finding("GF422", where, pods=str(plan.pods_per_node), most=str(plan.pods_at_max))
        elif profile.mig_strategy == "mixed":
            pass  # said where the layout is looked at
        elif profile.resource != "nvidia.com/gpu":
            yield finding("GF421", f"{where}.min", value=0, resource=profile.resource)
        else:
            counts = {"pods": str(plan.pods_per_node), "nodes": str(plan.nodes_started), "max": str(scale.max)}
            yield finding("GF420", f"{where}.min", value=0, **counts)
    if scale.min == 0:
        yield finding("GF423", f"{where}.min", value=0)
