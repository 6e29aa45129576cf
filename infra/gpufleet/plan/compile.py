"""Stack -> plan: all decisions together. Pure: the same input gives the same bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from gpufleet.findings.finding import Finding
from gpufleet.images.images import stack_images
from gpufleet.methods.hami import HamiPlan, hami_labels, hami_plan
from gpufleet.plan.advice import check_advice
from gpufleet.plan.autoscaler import check_autoscaling
from gpufleet.plan.capacity import check_capacity
from gpufleet.plan.driver_owner import check_owner, check_release, node_labels
from gpufleet.plan.facts import check_hardware, check_system_pool, pool_facts
from gpufleet.plan.hosts import check_hosts
from gpufleet.plan.labels import check_labels
from gpufleet.plan.mig import check_mig, release_strategy
from gpufleet.plan.names import UNSHARED
from gpufleet.plan.pool_plan import PoolPlan, plan_pool
from gpufleet.plan.prediction import predict_node
from gpufleet.plan.selector_labels import check_selectors
from gpufleet.plan.selector_overlaps import check_overlaps
from gpufleet.plan.sharing import Profile, check_pool_sharing, check_sharing, profiles, serves, spec_of
from gpufleet.plan.taints import check_taints
from gpufleet.routes.operator import OperatorPlan, check_operator, config_labels, operator_plan
from gpufleet.routes.plugin import PluginPlan, check_plugin, plugin_plan
from gpufleet.stackfile.model import AksStack, Stack, stack_pools
from gpufleet.stackfile.pools import AksPool
from gpufleet.stackfile.sharing import Mig
from gpufleet.stackfile.software import OperatorRoute
from gpufleet.teams.images import check_images
from gpufleet.teams.teams import TeamPlan, check_namespace, check_teams, check_workload_tolerations, team_plans

PLAN_VERSION = 1


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
    hami: HamiPlan | None
    teams: tuple[TeamPlan, ...]
    images: tuple[str, ...]
    images_unknown: tuple[str, ...]
    warnings: tuple[dict[str, Any], ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """JSON-like form; keys in the order of declaration."""
        return asdict(self)

    def as_json(self) -> str:
        """One JSON document, the same bytes for the same input."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)


def check(stack: Stack) -> list[Finding]:
    """All rules, over the whole stack; order follows the stack file."""
    found: list[Finding] = []
    known, release = profiles(stack), release_strategy(stack)
    on_operator = isinstance(stack.stack, OperatorRoute)
    for i, pool in enumerate(stack_pools(stack)):
        path, facts = f"pools[{i}]", pool_facts(pool)
        profile = known.get(pool.sharing or UNSHARED) if serves(pool) else None
        found += check_hardware(pool, path)
        found += check_owner(pool, facts, stack, path)
        found += check_taints(pool, path)
        found += check_labels(pool, path)
        found += check_capacity(pool, facts, path)
        if profile is not None:
            spec = spec_of(pool, stack)
            found += check_pool_sharing(pool, facts, spec, profile, path)
            if isinstance(spec, Mig):
                found += check_mig(pool, spec, facts, release if on_operator else None, path)
            if isinstance(pool, AksPool):
                node = predict_node(pool, facts, spec, profile, None, feature_labels=False)
                found += check_autoscaling(pool, facts.gpus, profile, sum(node.resources.values()), path)
    found += check_hosts(stack)
    found += check_release(stack)
    found += check_operator(stack)
    found += check_selectors(stack)
    found += check_plugin(stack)
    found += check_sharing(stack)
    found += check_overlaps(stack)
    found += check_system_pool(stack)
    found += check_namespace(stack)
    found += check_teams(stack, known)
    found += check_workload_tolerations(stack, known)
    found += check_images(stack)
    found += check_advice(stack)
    return found


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


def compile_plan(name: str, stack: Stack, warnings: tuple[Finding, ...] = ()) -> Plan:
    """The plan of a stack without errors; with errors it is a sketch for display and must not be deployed."""
    known = profiles(stack)
    on_operator = isinstance(stack.stack, OperatorRoute)
    mig_env = release_strategy(stack) if on_operator else None
    config, apart, cut = config_labels(stack), node_labels(stack), hami_labels(stack)
    pools = tuple(
        plan_pool(
            pool,
            stack,
            known[pool.sharing or UNSHARED] if serves(pool) else None,
            {**apart.get(pool.name, {}), **config.get(pool.name, {}), **cut.get(pool.name, {})},
            mig_env,
            on_operator,
        )
        for pool in stack_pools(stack)
    )
    plugin = None if on_operator else plugin_plan(stack, known)
    operator = operator_plan(stack, known) if on_operator else None
    hami = hami_plan(stack)
    images = stack_images(stack, plugin, operator, hami)
    return Plan(
        version=PLAN_VERSION,
        stack=name,
        cluster=_cluster(stack),
        route=stack.stack.kind,
        pools=pools,
        profiles=tuple(known.values()),
        plugin=plugin,
        operator=operator,
        hami=hami,
        teams=team_plans(stack, known),
        images=tuple(image.pulled_as for image in images.known),
        images_unknown=images.unknown,
        warnings=tuple(d.as_dict() for d in warnings),
    )
