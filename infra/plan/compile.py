"""Stack -> plan: all decisions together. Pure: the same input gives the same bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from infra.config.diagnostics import Diagnostic
from infra.config.model import AksStack, Stack, stack_pools
from infra.config.pools import AksPool, Pool
from infra.config.software import PluginRoute
from infra.plan.autoscaler import Autoscaling, autoscaling, check_autoscaling
from infra.plan.capacity import check_capacity
from infra.plan.driver_owner import check_owner, check_release, node_labels
from infra.plan.facts import check_hardware, pool_facts
from infra.plan.images import stack_images
from infra.plan.labels import check_labels
from infra.plan.names import UNSHARED
from infra.plan.operator_values import OperatorPlan, check_operator, config_labels, operator_plan
from infra.plan.plugin_objects import PluginPlan, check_plugin, plugin_plan
from infra.plan.pool_names import agent_pool_name, aks_driver
from infra.plan.prediction import NodePrediction, pool_labels, predict_node
from infra.plan.sharing import Profile, check_pool_sharing, check_sharing, profiles, serves
from infra.plan.taints import check_taints, pool_taints
from infra.plan.teams import TeamPlan, check_teams, check_workload_tolerations, team_plans

PLAN_VERSION = 1


@dataclass(frozen=True)
class PoolPlan:
    """One pool. `nodes` are host names, or empty where the cloud or a selector decides; `node_count` (low, high)."""

    name: str
    azure_name: str | None
    driver_owner: str
    aks_driver: str | None
    gpu: str | None
    gpus_per_node: int | None
    nodes: tuple[str, ...]
    node_count: tuple[int, int] | None
    profile: str | None
    taints: tuple[str, ...]
    labels: dict[str, str]
    node: NodePrediction
    autoscaling: Autoscaling | None


@dataclass(frozen=True)
class Plan:
    """Everything that will be, before anything changes."""

    version: int
    stack: str
    cluster: dict[str, Any]
    route: str
    pools: tuple[PoolPlan, ...]
    profiles: tuple[Profile, ...]
    plugin: PluginPlan | None
    operator: OperatorPlan | None
    teams: tuple[TeamPlan, ...]
    images: tuple[str, ...]
    warnings: tuple[dict[str, Any], ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """JSON-like form; keys in the order of declaration."""
        return asdict(self)

    def as_json(self) -> str:
        """One JSON document, the same bytes for the same input."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)


def check(stack: Stack) -> list[Diagnostic]:
    """All rules, over the whole stack; order follows the stack file."""
    found: list[Diagnostic] = []
    known = profiles(stack)
    for i, pool in enumerate(stack_pools(stack)):
        path, facts = f"pools[{i}]", pool_facts(pool)
        profile = known.get(pool.sharing or UNSHARED) if serves(pool) else None
        found += check_hardware(pool, path)
        found += check_owner(pool, facts, stack, path)
        found += check_taints(pool, path)
        found += check_labels(pool, path)
        found += check_capacity(pool, facts, path)
        if profile is not None:
            found += check_pool_sharing(pool, facts, profile, path)
            if isinstance(pool, AksPool):
                found += check_autoscaling(pool, facts.gpus, profile, path)
    found += check_release(stack)
    found += check_operator(stack)
    found += check_plugin(stack)
    found += check_sharing(stack)
    found += check_teams(stack, known)
    found += check_workload_tolerations(stack, known)
    return found


def _node_count(pool: Pool) -> tuple[int, int] | None:
    if isinstance(pool, AksPool):
        if pool.autoscale:
            return (pool.autoscale.min, pool.autoscale.max)
        count = 1 if pool.count is None else pool.count
        return (count, count)
    return (len(pool.hosts), len(pool.hosts)) if pool.hosts else None


def _cluster(stack: Stack) -> dict[str, Any]:
    if isinstance(stack, AksStack):
        c = stack.cluster
        group = c.resource_group.name if c.resource_group else f"rg-{c.name}"
        return {
            "kind": "aks",
            "name": c.name,
            "location": c.location,
            "version": c.version,
            "resource_group": group,
            "resource_group_existing": bool(c.resource_group and c.resource_group.existing),
        }
    e = stack.cluster
    return {"kind": "existing", "name": e.name, "identifier": e.site or e.name, "distribution": e.distribution}


def compile_plan(name: str, stack: Stack, warnings: tuple[Diagnostic, ...] = ()) -> Plan:
    """The plan of a stack without errors; with errors it is a sketch for display and must not be deployed."""
    known = profiles(stack)
    on_operator = not isinstance(stack.stack, PluginRoute)
    config, apart = config_labels(stack), node_labels(stack)
    pools = []
    for pool in stack.pools:
        facts = pool_facts(pool)
        profile = known[pool.sharing or UNSHARED] if serves(pool) else None
        extra = {**apart.get(pool.name, {}), **config.get(pool.name, {})}
        if not isinstance(pool, AksPool) and pool.node_selector:
            extra = {}
        node = predict_node(pool, facts, profile, feature_labels=on_operator)
        aks = isinstance(pool, AksPool)
        pools.append(
            PoolPlan(
                name=pool.name,
                azure_name=agent_pool_name(pool, stack.cluster)
                if isinstance(pool, AksPool) and isinstance(stack, AksStack)
                else None,
                driver_owner=pool.driver,
                aks_driver=aks_driver(pool) if isinstance(pool, AksPool) else None,
                gpu=facts.model.id if facts.model else None,
                gpus_per_node=facts.gpus,
                nodes=() if aks or isinstance(pool, AksPool) else tuple(sorted(pool.hosts)),
                node_count=_node_count(pool),
                profile=profile.name if profile else None,
                taints=tuple(str(t) for t in pool_taints(pool)),
                labels=dict(sorted({**pool_labels(pool), **extra}.items())),
                node=NodePrediction(
                    node.resources,
                    dict(sorted({**node.labels, **extra}.items())),
                    node.memory_per_pod_gib,
                    node.known,
                ),
                autoscaling=autoscaling(pool, facts.gpus, profile)
                if isinstance(pool, AksPool) and profile and facts.gpus
                else None,
            )
        )
    return Plan(
        version=PLAN_VERSION,
        stack=name,
        cluster=_cluster(stack),
        route=stack.stack.kind,
        pools=tuple(pools),
        profiles=tuple(known.values()),
        plugin=None if on_operator else plugin_plan(stack, known),
        operator=operator_plan(stack, known) if on_operator else None,
        teams=team_plans(stack, known),
        images=stack_images(stack),
        warnings=tuple(d.as_dict() for d in warnings),
    )
