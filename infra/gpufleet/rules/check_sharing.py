"""Sharing: memory that is promised, turns whose length nobody sets, and methods that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.names import UNSHARED
from gpufleet.methods.mps import Mps, most_clients
from gpufleet.methods.time_slicing import TimeSlicing
from gpufleet.stackfile.model import Stack


def check_sharing(fleet: Fleet) -> Iterator[Finding]:
    """Names that are taken, and methods that exclude each other in one cluster."""
    yield from _names(fleet.stack)
    own = [pool for pool in fleet.served if pool.method.own_plugin]
    if own and len(own) < len(fleet.served):
        other = next(pool for pool in fleet.served if not pool.method.own_plugin)
        names = ", ".join(pool.name for pool in own)
        yield finding("GF340", f"{other.path}.sharing", value=fleet.served[0].spec.sharing, pools=names)
    if len({pool.method.for_the_release for pool in own}) > 1:
        yield finding("GF341", f"{own[-1].path}.sharing", value=own[-1].spec.sharing)
    if fleet.release is not None and fleet.release.mig_strategy == "mixed":
        for pool in fleet.served:
            if pool.method.control_daemon:
                yield finding("GF321", f"{pool.path}.sharing", value=pool.spec.sharing)


def _names(stack: Stack) -> Iterator[Finding]:
    named = stack.sharing.get(UNSHARED)
    if named is not None and getattr(named, "strategy", "none") != "none":
        yield finding("GF304", f"sharing.{UNSHARED}", value=UNSHARED)


def check_pool_sharing(pool: FleetPool, fleet: Fleet) -> Iterator[Finding]:
    """What one pool's hardware and owner say about its profile."""
    if pool.profile is None:
        return
    method, where = pool.method, f"{pool.path}.sharing"
    yield from _memory(pool, where)
    if isinstance(method, TimeSlicing) and method.time_slice and not fleet.place.sets_time_slice(pool.spec):
        yield finding("GF330", where, value=method.time_slice)
    model = pool.hardware.model
    if isinstance(method, Mps) and model is not None and model.compute_capability is not None:
        most = most_clients(model.compute_capability)
        if method.replicas > most:
            yield finding("GF320", where, value=method.replicas, gpu=model.id, most=str(most))


def _memory(pool: FleetPool, where: str) -> Iterator[Finding]:
    """Memory that pods were promised and that the device does not have."""
    method, promised = pool.method, pool.method.promised_gib
    have = method.device_memory_gib(pool.hardware)
    if promised is None or have is None:
        return
    scaled = have * method.memory_scale
    bound = method.most_for_one(scaled)
    if bound.gib is not None and promised > bound.gib:
        texts = {"each": f"{promised:g}", "most": f"{bound.gib:g}", "why": bound.why, "lower": bound.or_lower}
        yield finding("GF307", where, value=pool.profile_name, **texts)
        return
    together = method.pods_per_device * promised
    if together > scaled:
        yield finding(
            "GF302",
            where,
            value=pool.profile_name,
            pods=str(method.pods_per_device),
            each=f"{promised:g}",
            promised=f"{together:g}",
            memory=f"{scaled:g}",
            fit=str(int(scaled // promised)),
            measured=_measured(pool),
        )


def _measured(pool: FleetPool) -> str:
    """What becomes of memory promised twice: as measured for time-slicing, of a GPU or inside an instance."""
    if pool.method.memory_unbounded:
        from gpufleet.advise.isolation import unbounded_memory  # measurements are read only where something may be said

        return unbounded_memory()
    return "A pod that asks for more than is left is refused it."
