"""Rules about sharing that goes against measurements, or against what the cluster is for."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, find, rule
from gpufleet.fleet.model import Fleet

GF900 = rule(
    "GF900", Severity.WARNING,
    title="{replicas} training pods share one GPU under {strategy}.",
    reason="Jobs that fill the GPU do no more together than one alone; each only takes longer.",
    because="{measured}. Jobs that fill the GPU do no more together than one alone.",
    remedy="Give training whole GPUs (strategy none), or replicas 2 where waiting is no loss.",
    source="measurements_h200",
    wrong="""
        gpufleet:sharing: {quarter: {strategy: timeSlicing, replicas: 4, workload: training}}
        gpufleet:pools:
          - {name: a100, gpu: A100-SXM4-80GB, sharing: quarter}
    """,
    right="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, workload: training}}
        gpufleet:pools:
          - {name: a100, gpu: A100-SXM4-80GB, sharing: half}
    """,
)

GF901 = rule(
    "GF901", Severity.WARNING,
    title="Production pods share GPUs by time-slicing.",
    reason="One pod's memory use or fault can end all pods of its GPU, and nothing limits what a pod takes.",
    remedy="Use mig where the GPU has it, or mps for a limit on memory; `gpufleet advise` weighs them.",
    source="isolation_h200; AKS-DOC (concepts-gpu-partitioning)",
    wrong="""
        gpufleet:cluster: {environment: production}
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - {name: a100, gpu: A100-SXM4-80GB, sharing: half}
    """,
    fix=("strategy: timeSlicing", "strategy: mps"),
)


@check("stack", GF900, GF901)
def measured(fleet: Fleet) -> Iterator[Finding]:
    """Training that shares a GPU with many, and time-slicing in production, per pool."""
    environment = fleet.stack.cluster.environment
    for pool in fleet.served:
        shared = pool.method.shared()
        if shared is None or (shared.workload != "training" and environment != "production"):
            continue
        from gpufleet.measure.measurements import measurements  # read only where something may be said
        from gpufleet.measure.objections import objections

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
            yield find(one.code).at(f"{pool.path}.sharing", value=pool.spec.sharing, **one.details)
