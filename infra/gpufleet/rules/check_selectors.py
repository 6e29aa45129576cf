"""Nodes that are found by a selector: somebody else labels them, so it must name what the GPU software looks for."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.names import METHOD_LABEL, MIG_CONFIG_LABEL, OPERATOR_CONFIG_LABEL, UNSHARED
from gpufleet.fleet.owner import operand_labels
from gpufleet.routes.operator import MIG_DISABLED


def check_selectors(fleet: Fleet) -> Iterator[Finding]:
    """Labels that are missing (NV-22), or that cut what is to be shared (NV-40)."""
    for pool in fleet.pools:
        if pool.nodes.labelled:
            continue
        if fleet.release is not None:
            yield from _operator(pool, fleet)
        path, has = f"{pool.path}.nodeSelector", pool.selector
        apart = operand_labels(pool.spec, fleet.release) if fleet.release else {}
        needs = {k: v for k, v in pool.derived.items() if k not in (OPERATOR_CONFIG_LABEL, METHOD_LABEL, *apart)}
        missing = {k: v for k, v in needs.items() if has.get(k) != v}
        if missing:
            yield finding("GF225", path, value=dict(has), missing=missing)
        label = has.get(MIG_CONFIG_LABEL, MIG_DISABLED)
        if pool.served and pool.method.mig_strategy == "none" and label != MIG_DISABLED:
            yield finding("GF317", path, value=f"{MIG_CONFIG_LABEL}={label}", strategy=pool.method.strategy)


def _operator(pool: FleetPool, fleet: Fleet) -> Iterator[Finding]:
    """The operator's own labels: those that keep its operands off, and the one that names the sharing text."""
    path, has = f"{pool.path}.nodeSelector", pool.selector
    apart = operand_labels(pool.spec, fleet.release) if fleet.release else {}
    missing = {k: v for k, v in apart.items() if has.get(k) != v}
    if missing:
        yield finding("GF223", path, value=dict(has), missing=missing)
    wanted = pool.derived.get(OPERATOR_CONFIG_LABEL)
    if wanted is not None and has.get(OPERATOR_CONFIG_LABEL, UNSHARED) != wanted:
        yield finding("GF222", path, value=dict(has), profile=wanted)
