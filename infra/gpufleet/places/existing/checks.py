"""What is wrong with the nodes of a cluster that exists."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import gpu_model, gpu_models
from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.places.existing.model import NodePool


def check_existing_pool(pool: FleetPool, fleet: Fleet) -> Iterator[Finding]:
    """A GPU that the catalogue does not know."""
    if isinstance(pool.spec, NodePool) and gpu_model(pool.spec.gpu) is None:
        yield finding("GF231", f"{pool.path}.gpu", value=pool.spec.gpu, allowed=sorted(gpu_models()))


def check_existing_stack(fleet: Fleet) -> Iterator[Finding]:
    """A selector that another one contains picks all of its nodes; others cannot be told apart without the cluster."""
    pools = [pool for pool in fleet.pools if not pool.nodes.labelled]
    for n, pool in enumerate(pools):
        for other in pools[:n]:
            wide, narrow = sorted((pool.selector.items(), other.selector.items()), key=len)
            if set(wide) <= set(narrow):
                yield finding("GF424", f"{pool.path}.nodeSelector", value=pool.name, other=other.name)
