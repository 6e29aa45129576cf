"""Rules about what the cluster autoscaler sees of a shared pool."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import FleetPool

GF420 = rule(
    "GF420", Severity.WARNING,
    title="From zero, {pods} pods may start {nodes} nodes where one would do.",
    reason="The autoscaler's template of an empty pool knows physical GPUs, not replicas (Azure/AKS#3427).",
    remedy="Set min to 1, or bound the cost with max (now {max}).",
    source="Azure/AKS#3427; kubernetes/autoscaler#8095",
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools: [{name: t4, autoscale: {min: 0, max: 3}, sharing: half}]
    """,
    fix=("min: 0", "min: 1"),
)

GF421 = rule(
    "GF421", Severity.ERROR,
    title="A pool of zero nodes never scales up for {resource}.",
    reason="The autoscaler's template of an empty pool knows nvidia.com/gpu only; pods that ask for another name "
    "stay Pending.",
    remedy="Set min to 1, or renameByDefault to false.",
    source="Azure/AKS#4216; Azure/AKS#5161; kubernetes/autoscaler#8095",
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, renameByDefault: true}}
        gpufleet:pools: [{name: t4, autoscale: {min: 0, max: 3}, sharing: half}]
    """,
    fix=("min: 0", "min: 1"),
)

GF422 = rule(
    "GF422", Severity.NOTE,
    title="The autoscaler counts {pods} pods per node, at most {most} in the pool.",
    reason="With a node up, it copies that node's capacity; at zero it would count physical GPUs.",
    remedy="Nothing to do.",
    source="Azure/AKS#3427",
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 4}}
        gpufleet:pools: [{name: t4, autoscale: {min: 1, max: 3}, sharing: half}]
    """,
    right="gpufleet:pools: [{name: t4, autoscale: {min: 1, max: 3}}]",
)

GF423 = rule(
    "GF423", Severity.NOTE,
    title="Scale-up from zero starts about 30 seconds late.",
    reason="The cluster autoscaler delays GPU pods by a constant (Azure/AKS#5573).",
    remedy="Set min to 1 for interactive teams.",
    source="Azure/AKS#5573",
    wrong="gpufleet:pools: [{name: t4, autoscale: {min: 0, max: 3}}]",
    right="gpufleet:pools: [{name: t4, autoscale: {min: 1, max: 3}}]",
)


@check("pool", GF420, GF421, GF422, GF423)
def sharing_unseen(pool: FleetPool) -> Iterator[Finding]:
    """Sharing that the autoscaler cannot see."""
    scale, profile, plan = pool.place.autoscale(pool.spec), pool.profile, pool.autoscaling
    if scale is None or profile is None:
        return
    where = f"{pool.path}.autoscale"
    if plan is not None and plan.pods_per_node > (pool.hardware.gpus or 0):
        if scale.min > 0:
            yield GF422.at(where, pods=str(plan.pods_per_node), most=str(plan.pods_at_max))
        elif profile.mig_strategy == "mixed":
            pass  # said where the layout is looked at
        elif profile.resource != "nvidia.com/gpu":
            yield GF421.at(f"{where}.min", value=0, resource=profile.resource)
        else:
            counts = {"pods": str(plan.pods_per_node), "nodes": str(plan.nodes_started), "max": str(scale.max)}
            yield GF420.at(f"{where}.min", value=0, **counts)
    if scale.min == 0:
        yield GF423.at(f"{where}.min", value=0)
