"""Sharing that goes against what was measured, or against what the cluster is for.

The objections themselves are those of `gpufleet advise` (measure/objections.py); memory is GF302, in sharing.py.
"""

from __future__ import annotations

from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.facts import pool_facts
from gpufleet.plan.sharing import Spec, serves, spec_of
from gpufleet.stackfile.model import Stack, stack_pools
from gpufleet.stackfile.sharing import Mig, Mps, TimeSlicing


def check_advice(stack: Stack) -> list[Finding]:
    """Training that shares a GPU with many, and time-slicing in production, per pool."""
    found: list[Finding] = []
    for i, pool in enumerate(stack_pools(stack)):
        spec = spec_of(pool, stack)
        shared = _shared(spec) if serves(pool) else None
        if shared is None:
            continue
        strategy, pods, workload = shared
        environment = stack.cluster.environment
        if workload != "training" and environment != "production":
            continue
        from gpufleet.measure.measurements import measurements
        from gpufleet.measure.objections import objections  # measurements are read only where something may be said

        whole = not isinstance(spec, Mig)  # nothing was measured inside an instance
        said = objections(
            strategy,
            pods,
            pool_facts(pool).model if whole else None,
            measurements() if whole and workload == "training" else (),
            workload=workload,
            environment=environment,
        )
        found += [finding(o.code, f"pools[{i}].sharing", value=pool.sharing, **o.details) for o in said]
    return found


def _shared(spec: Spec) -> tuple[str, int, str | None] | None:
    """Method, pods per GPU or instance, and workload; None where nothing is shared by turns or by MPS."""
    if isinstance(spec, TimeSlicing | Mps):
        return spec.strategy, spec.replicas, spec.workload
    if isinstance(spec, Mig) and spec.replicas is not None:
        return "timeSlicing", spec.replicas, spec.workload
    return None
