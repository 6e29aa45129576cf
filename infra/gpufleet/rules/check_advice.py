"""Sharing that goes against what was measured, or against what the cluster is for.

The objections themselves are those of `gpufleet advise` (advise/against.py); memory is GF302, in check_sharing.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet


def check_advice(fleet: Fleet) -> Iterator[Finding]:
    """Training that shares a GPU with many, and time-slicing in production, per pool."""
    environment = fleet.stack.cluster.environment
    for pool in fleet.served:
        shared = pool.method.shared()
        if shared is None or (shared.workload != "training" and environment != "production"):
            continue
        from gpufleet.advise.against import objections  # measurements are read only where something may be said
        from gpufleet.advise.measurements import measurements

        whole = not pool.layout  # nothing was measured inside an instance
        said = objections(
            shared.method,
            shared.pods,
            pool.hardware.model if whole else None,
            measurements() if whole and shared.workload == "training" else (),
            workload=shared.workload,
            environment=environment,
        )
        for one in said:
            yield finding(one.code, f"{pool.path}.sharing", value=pool.spec.sharing, **one.details)
