"""Teams: namespaces, quotas on what their pools really offer, and what their pods need to get there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.parts.taints import in_words, tolerations
from gpufleet.stackfile.software import Team


@dataclass(frozen=True)
class TeamPool:
    """What a pod needs to run on one pool. `runtime_class` is None where any runtime that runs it hands it its GPU.

    `asks_beside`: what a pod asks for beside one of `resources`, None where the number is its own choice (under HAMi
    MiB of memory). `memory_gib` is what it may count on, by resource.
    """

    pool: str
    resources: tuple[str, ...]
    node_selector: dict[str, str]
    tolerations: tuple[dict[str, str], ...]
    runtime_class: str | None
    asks_beside: dict[str, int | None] = field(default_factory=dict)
    memory_gib: dict[str, float] = field(default_factory=dict)

    def line(self) -> str:
        """What `gpufleet plan` prints."""
        beside = "".join(f", {name}: {'N' if n is None else n}" for name, n in self.asks_beside.items())
        selector = ", ".join(f"{k}={v}" for k, v in self.node_selector.items())
        return (
            f"  on {self.pool}: ask for {' or '.join(self.resources)}: 1{beside}, nodeSelector {selector},"
            f" tolerate {', '.join(map(in_words, self.tolerations)) or 'nothing'}"
            + (f", runtimeClassName {self.runtime_class}" if self.runtime_class else "")
        )


@dataclass(frozen=True)
class TeamPlan:
    """`quota` is the ResourceQuota's `hard` map, in devices as pods ask for them."""

    name: str
    namespace: str
    group: str | None
    role: str
    quota: dict[str, str]
    pools: tuple[TeamPool, ...]

    def lines(self) -> list[str]:
        """What `gpufleet plan` prints."""
        quota = ", ".join(f"{k}: {v}" for k, v in self.quota.items()) or "none"
        bound = f", group {self.group} as {self.role}" if self.group else ""
        head = f"team {self.name}, namespace {self.namespace}, quota {quota}{bound}"
        return [head, *(pool.line() for pool in self.pools)]


def team_pools(team: Team, fleet: Fleet) -> list[FleetPool]:
    """The team's pools, in the order of its list."""
    return [fleet.by_name[name] for name in dict.fromkeys(team.pools) if name in fleet.by_name]


def team_resources(pools: Iterable[FleetPool]) -> tuple[str, ...]:
    """Names of the resources that a team's pools offer, sorted."""
    return tuple(sorted({resource for pool in pools if pool.profile for resource in pool.profile.resources}))


def counted(pools: Iterable[FleetPool]) -> dict[str, str]:
    """What a quota on these pools may count beside the resources: its name, and the key that counts it."""
    return {name: key for pool in pools if pool.profile for name, key in pool.method.counted.items()}


def _quota(team: Team, resources: tuple[str, ...], beside: Mapping[str, str]) -> dict[str, str]:
    hard = {}
    for key, count in team.quota.items():
        names = resources if key == "gpu" and len(resources) == 1 else (key,)
        for name in names:
            hard[beside.get(name, f"requests.{name}")] = str(count)
    return dict(sorted(hard.items()))


def pool_access(pool: FleetPool) -> TeamPool:
    """What a pod needs to run on a pool that the stack's GPU software serves."""
    return TeamPool(
        pool.name,
        pool.method.resources,
        dict(sorted(pool.selector.items())),
        tuple(t.as_dict() for t in tolerations(pool.taints)),
        pool.runtime_class,
        pool.method.asks_beside(pool.hardware),
        dict(pool.offer.memory_gib_by_resource),
    )


def team_plans(fleet: Fleet) -> tuple[TeamPlan, ...]:
    """One plan per team, in the order of the stack file."""
    plans = []
    for team in fleet.stack.teams:
        own = team_pools(team, fleet)
        quota = _quota(team, team_resources(own), counted(own))
        pools = tuple(pool_access(pool) for pool in own if pool.served)
        plans.append(TeamPlan(team.name, team.namespace, team.group, team.role, quota, pools))
    return tuple(plans)
