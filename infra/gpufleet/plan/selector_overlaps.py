"""Pools by node selector: two of them must not pick the same nodes."""

from __future__ import annotations

from gpufleet.findings.finding import Finding, finding
from gpufleet.stackfile.model import Stack, stack_pools
from gpufleet.stackfile.pools import NodePool


def check_overlaps(stack: Stack) -> list[Finding]:
    """A selector that another one contains picks all of its nodes; others cannot be told apart without the cluster."""
    found = []
    pools = [(i, p) for i, p in enumerate(stack_pools(stack)) if isinstance(p, NodePool) and p.node_selector]
    for n, (i, pool) in enumerate(pools):
        for _, other in pools[:n]:
            wide, narrow = sorted((pool.node_selector.items(), other.node_selector.items()), key=len)
            if set(wide) <= set(narrow):
                where = f"pools[{i}].nodeSelector"
                found.append(finding("GF424", where, value=pool.name, other=other.name))
    return found
