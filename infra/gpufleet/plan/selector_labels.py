"""Nodes that are found by a selector: somebody else labels them, so it must name what the GPU software looks for."""

from __future__ import annotations

from gpufleet.findings.finding import Finding, finding
from gpufleet.methods.hami import hami_labels
from gpufleet.plan.names import MIG_CONFIG_LABEL, OPERATOR_CONFIG_LABEL
from gpufleet.plan.sharing import serves, spec_of
from gpufleet.routes.operator import MIG_DISABLED, config_labels
from gpufleet.stackfile.model import Stack, stack_pools
from gpufleet.stackfile.pools import AksPool
from gpufleet.stackfile.sharing import Mig


def check_selectors(stack: Stack) -> list[Finding]:
    """Labels of HAMi and of the MIG manager that are missing (NV-22), or that cut what is to be shared (NV-40).

    The operator's own labels are GF222 and GF223, in operator_values.py.
    """
    found: list[Finding] = []
    config, hami = config_labels(stack), hami_labels(stack)
    for i, pool in enumerate(stack_pools(stack)):
        if isinstance(pool, AksPool) or not pool.node_selector:
            continue
        path, has = f"pools[{i}].nodeSelector", pool.node_selector
        needs = {**config.get(pool.name, {}), **hami.get(pool.name, {})}
        missing = {k: v for k, v in needs.items() if k != OPERATOR_CONFIG_LABEL and has.get(k) != v}
        if missing:
            found.append(finding("GF225", path, value=has, missing=missing))
        label, spec = has.get(MIG_CONFIG_LABEL, MIG_DISABLED), spec_of(pool, stack)
        if serves(pool) and not isinstance(spec, Mig) and label != MIG_DISABLED:
            found.append(finding("GF317", path, value=f"{MIG_CONFIG_LABEL}={label}", strategy=spec.strategy))
    return found
