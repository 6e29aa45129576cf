"""One pool of the plan: everything that is decided about it, together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufleet.plan.autoscaler import Autoscaling, autoscaling
from gpufleet.plan.facts import Facts, pool_facts
from gpufleet.plan.mig import aks_profile
from gpufleet.plan.names import METHOD_LABEL, MIG_CONFIG_LABEL
from gpufleet.plan.pool_names import agent_pool_name, aks_driver
from gpufleet.plan.prediction import NodePrediction, pool_labels, predict_node
from gpufleet.plan.sharing import Profile, Spec, spec_of
from gpufleet.plan.taints import pool_taints
from gpufleet.stackfile.model import AksStack, Stack
from gpufleet.stackfile.pools import AksPool, NodePool, Pool
from gpufleet.stackfile.sharing import Mig


@dataclass(frozen=True)
class PoolPlan:
    """One pool. `nodes` are host names, or empty where the cloud or a selector decides; `node_count` (low, high)."""

    name: str
    azure_name: str | None
    driver_owner: str
    aks_driver: str | None
    gpu_instance_profile: str | None
    gpu: str | None
    gpus_per_node: int | None
    nodes: tuple[str, ...]
    node_count: tuple[int, int] | None
    profile: str | None
    taints: tuple[str, ...]
    labels: dict[str, str]
    node: NodePrediction
    autoscaling: Autoscaling | None


def _node_count(pool: Pool) -> tuple[int, int] | None:
    if isinstance(pool, AksPool):
        if pool.autoscale:
            return (pool.autoscale.min, pool.autoscale.max)
        count = 1 if pool.count is None else pool.count
        return (count, count)
    return (len(pool.hosts), len(pool.hosts)) if pool.hosts else None


def gpu_instance_profile(pool: Pool, spec: Spec, facts: Facts) -> str | None:
    """AKS's own MIG profile, where AKS is the one to cut the GPUs."""
    if isinstance(pool, AksPool) and pool.driver == "aks" and isinstance(spec, Mig):
        return aks_profile(spec, facts.model)
    return None


def plan_pool(
    pool: Pool, stack: Stack, profile: Profile | None, derived: dict[str, str], mig_env: str | None, features: bool
) -> PoolPlan:
    """All about one pool.

    `derived` are the labels that the route gives the pool's nodes, `mig_env` the operator's MIG strategy, `features`
    whether feature discovery labels the nodes.
    """
    facts, spec = pool_facts(pool), spec_of(pool, stack)
    node = predict_node(pool, facts, spec, profile, mig_env, features)
    method = profile.strategy if profile else "none"
    named = isinstance(pool, NodePool) and bool(pool.hosts)
    if named and profile:
        derived = {**derived, METHOD_LABEL: method}
    if isinstance(pool, NodePool) and pool.node_selector:
        derived = {}
    shown = {**node.labels, **derived}
    if MIG_CONFIG_LABEL in derived:
        shown[MIG_CONFIG_LABEL + ".state"] = "success"
    devices = sum(node.resources.values())
    mig = gpu_instance_profile(pool, spec, facts)
    return PoolPlan(
        name=pool.name,
        azure_name=agent_pool_name(pool, stack.cluster, method, mig)
        if isinstance(pool, AksPool) and isinstance(stack, AksStack)
        else None,
        driver_owner=pool.driver,
        aks_driver=aks_driver(pool) if isinstance(pool, AksPool) else None,
        gpu_instance_profile=mig,
        gpu=facts.model.id if facts.model else None,
        gpus_per_node=facts.gpus,
        nodes=tuple(sorted(pool.hosts)) if isinstance(pool, NodePool) else (),
        node_count=_node_count(pool),
        profile=profile.name if profile else None,
        taints=tuple(str(t) for t in pool_taints(pool)),
        labels=dict(sorted({**pool_labels(pool), **derived}.items())),
        node=replace(node, labels=dict(sorted(shown.items()))),
        autoscaling=autoscaling(pool, facts.gpus, devices)
        if isinstance(pool, AksPool) and devices and facts.gpus
        else None,
    )
