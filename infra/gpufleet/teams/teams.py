"""Teams: namespaces, quotas on what their pools really offer, and what their pods need to get there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.driver_owner import plugin_runtime_class
from gpufleet.plan.names import UNSHARED
from gpufleet.plan.sharing import Profile, serves
from gpufleet.plan.taints import pool_taints, tolerations
from gpufleet.routes.plugin import affinity_terms
from gpufleet.stackfile.model import Stack, stack_pools
from gpufleet.stackfile.pools import Pool
from gpufleet.stackfile.software import OperatorRoute, Team

_TAKEN = ("default", "kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True)
class TeamPool:
    """What a pod needs to run on one pool. `runtime_class` is None where any runtime that runs it hands it its GPU."""

    pool: str
    resources: tuple[str, ...]
    node_selector: dict[str, str]
    tolerations: tuple[dict[str, str], ...]
    runtime_class: str | None


@dataclass(frozen=True)
class TeamPlan:
    """`quota` is the ResourceQuota's `hard` map, in devices as pods ask for them."""

    name: str
    namespace: str
    group: str | None
    role: str
    quota: dict[str, str]
    pools: tuple[TeamPool, ...]


def _pools(team: Team, by_name: Mapping[str, Pool]) -> list[Pool]:
    """The team's pools, in the order of its list."""
    return [by_name[name] for name in dict.fromkeys(team.pools) if name in by_name]


def _by_name(stack: Stack) -> dict[str, Pool]:
    return {pool.name: pool for pool in stack_pools(stack)}


def team_resources(pools: Iterable[Pool], profiles: dict[str, Profile]) -> tuple[str, ...]:
    """Names of the resources that a team's pools offer, sorted."""
    return tuple(sorted({r for p in pools if serves(p) for r in profiles[p.sharing or UNSHARED].resources}))


def _quota(team: Team, resources: tuple[str, ...]) -> dict[str, str]:
    hard = {}
    for key, count in team.quota.items():
        names = resources if key == "gpu" and len(resources) == 1 else (key,)
        for name in names:
            hard[f"requests.{name}"] = str(count)
    return dict(sorted(hard.items()))


def _node_selector(pool: Pool) -> dict[str, str]:
    terms = affinity_terms([pool])[0]["matchExpressions"]
    return {e["key"]: e["values"][0] for e in terms}


def pool_access(stack: Stack, pool: Pool, profiles: dict[str, Profile]) -> TeamPool:
    """What a pod needs to run on a pool that the stack's GPU software serves.

    Without the operator, whose plugin hands out CDI devices, a GPU reaches a container through NVIDIA's runtime: a pod
    has to name it where it is not the default (chart of the device plugin, runtimeClassName; HAMi the same).
    """
    profile = profiles[pool.sharing or UNSHARED]
    by_operator = isinstance(stack.stack, OperatorRoute) and profile.strategy != "hami"
    return TeamPool(
        pool.name,
        profile.resources,
        _node_selector(pool),
        tuple(t.as_dict() for t in tolerations(pool_taints(pool))),
        None if by_operator else plugin_runtime_class([pool]),
    )


def team_plans(stack: Stack, profiles: dict[str, Profile]) -> tuple[TeamPlan, ...]:
    """One plan per team, in the order of the stack file."""
    plans = []
    by_name = _by_name(stack)
    for team in stack.teams:
        own = _pools(team, by_name)
        resources = team_resources(own, profiles)
        pools = tuple(pool_access(stack, p, profiles) for p in own if serves(p))
        plans.append(TeamPlan(team.name, team.namespace, team.group, team.role, _quota(team, resources), pools))
    return tuple(plans)


def check_teams(stack: Stack, profiles: dict[str, Profile]) -> list[Finding]:
    """Quota keys that limit nothing, and namespaces that belong to somebody else."""
    found = []
    by_name = _by_name(stack)
    for i, team in enumerate(stack.teams):
        resources = team_resources(_pools(team, by_name), profiles)
        for key in team.quota:
            where = f'teams[{i}].quota["{key}"]' if "." in key else f"teams[{i}].quota.{key}"
            if key == "gpu" and len(resources) > 1:
                found.append(finding("GF430", where, value=key, allowed=resources))
            elif key != "gpu" and key not in resources:
                found.append(finding("GF431", where, value=key, allowed=("gpu", *resources)))
        if len(resources) == 1 and "gpu" in team.quota and resources[0] in team.quota:
            why = f"`gpu` means {resources[0]} here; one of the two counts would be lost."
            found.append(finding("GF108", f'teams[{i}].quota["{resources[0]}"]', value=resources[0], why=why))
        if team.namespace in _TAKEN or team.namespace.startswith("kube-"):
            found.append(finding("GF432", f"teams[{i}].namespace", value=team.namespace, whose="Kubernetes"))
        elif team.namespace == stack.stack.namespace:
            found.append(
                finding("GF432", f"teams[{i}].namespace", value=team.namespace, whose="this stack's GPU software")
            )
        for j, name in enumerate(team.pools):
            if name in by_name and not serves(by_name[name]):
                found.append(finding("GF433", f"teams[{i}].pools[{j}]", value=name))
    return found


def check_namespace(stack: Stack) -> list[Finding]:
    """The software's own namespace must not be one of Kubernetes': it would go with the stack."""
    name = stack.stack.namespace
    if name in _TAKEN or name.startswith("kube-"):
        return [finding("GF432", "stack.namespace", value=name, whose="Kubernetes")]
    return []


def check_workload_tolerations(stack: Stack, profiles: dict[str, Profile]) -> list[Finding]:
    """AKS tolerates a GPU taint only for the resource of that very name (Azure/AKS#1449; case AZ-19)."""
    found = []
    for i, pool in enumerate(stack_pools(stack)):
        profile = profiles.get(pool.sharing or UNSHARED)
        if profile is None or not serves(pool) or profile.resources == ("nvidia.com/gpu",):
            continue
        repelling = [taint for taint in pool_taints(pool) if taint.key == "nvidia.com/gpu"]
        if repelling:
            value, names = ", ".join(map(str, repelling)), " or ".join(profile.resources)
            add = [t.as_dict() for t in tolerations(repelling)]
            found.append(finding("GF440", f"pools[{i}].taints", value=value, resource=names, add=add))
    return found
