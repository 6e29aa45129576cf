"""The pools of a stack, as lint needs them: what the plan says of their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpufleet.catalog import distribution
from gpufleet.compiled import compile_file
from gpufleet.device_plugin import NodeLayout, predict
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.lint.gather import operator_env
from gpufleet.lint.node import UNKNOWN_PRODUCT
from gpufleet.lint.offers import Offers, Share
from gpufleet.lint.place import DISCOVERED, Cards, Labels, PoolNode, Quota, RuntimeClasses
from gpufleet.parts.names import METHOD_LABEL, POOL_LABEL, PRODUCT_LABEL
from gpufleet.stackfile.project import project
from gpufleet.teams.teams import team_plans

#: Classes that the operator makes beside its own while CDI is on (NVIDIA/gpu-operator, transformRuntimeClass).
_OF_OPERATOR = ("nvidia-cdi", "nvidia-legacy")
#: Labels that only gpufleet writes.
_OURS = "gpufleet.dev/"


@dataclass(frozen=True)
class StackNodes:
    """All pools that were asked for, and the fleet that they are of."""

    pools: tuple[PoolNode, ...]
    fleet: Fleet


def nodes_of(stack: str | None, file: Path | None, pool: str | None) -> StackNodes:
    """A node of every pool of a stack, or of one.

    Raises:
        ValueError: no such stack or pool, the stack file has errors, or nothing is known about its hardware.
    """
    try:
        path = file or project().find(stack or "")
        compiled = compile_file(path)
    except LookupError as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}") from None
    fleet = compiled.fleet
    if fleet is None:
        raise ValueError(f"{path} has errors; see gpufleet plan")
    found = of_fleet(fleet)
    if pool is not None:
        found = tuple(one for one in found if one.name == pool)
        if not found:
            raise ValueError(f"{path} has no pool {pool}")
    if all(one.node is None for one in found):
        raise ValueError(f"{path}: the hardware of no pool is known")
    return StackNodes(found, fleet)


def of_fleet(fleet: Fleet) -> tuple[PoolNode, ...]:
    """A node of every pool of a fleet."""
    values: dict[str, list[str]] = {}
    for pool in fleet.pools:
        for key, value in pool.offer.labels.items():
            if value not in values.setdefault(key, []):
                values[key].append(value)
    decided = frozenset(key for pool in fleet.pools for key in pool.labels) | {POOL_LABEL, METHOD_LABEL}
    known = distribution(fleet.distribution)
    resources = tuple(dict.fromkeys(name for pool in fleet.served for name in pool.method.resources))
    exist = _classes(fleet)
    quotas = _quotas(fleet)
    found = []
    for pool in fleet.pools:
        node = _node(pool)
        found.append(
            PoolNode(
                name=pool.name,
                node=node,
                driver=pool.driver,
                taints=pool.taints,
                env=_env(fleet),
                offers=_offers(fleet, pool, node),
                profile=pool.profile_name,
                resources=resources,
                labels=_labels(fleet, pool, decided),
                selector=dict(pool.selector),
                values=values,
                classes=RuntimeClasses(pool.runtime_class, exist, pool.method.own_plugin),
                most_nodes=_most_nodes(pool),
                cards=_cards(pool),
                adds_tolerations=known is not None and known.adds_tolerations,
                quotas=quotas,
            )
        )
    return tuple(found)


def _node(pool: FleetPool) -> NodeLayout | None:
    gpus, model = pool.hardware.gpus, pool.hardware.model
    if gpus is None:
        return None
    product = (model.product if model else None) or UNKNOWN_PRODUCT
    capability = None
    if model and model.compute_capability:
        major, _, minor = model.compute_capability.partition(".")
        capability = (int(major), int(minor))
    each = tuple(profile for profile, count in (pool.layout or {}).items() for _ in range(count))
    mig = dict.fromkeys(range(gpus), each) if each else {}
    return NodeLayout(gpus, product, model.memory_mib if model else None, mig, capability)


def _env(fleet: Fleet) -> dict[str, str]:
    """The plugin's environment: variables of the operator, which override the file; none for the standalone plugin."""
    if fleet.release is None:
        return {}
    return {**operator_env(None), "MIG_STRATEGY": fleet.release.mig_strategy}


def _offers(fleet: Fleet, pool: FleetPool, node: NodeLayout | None) -> Offers | None:
    """What the plan promises for a node; None where somebody else's software offers it, or the hardware is unknown."""
    if pool.owner == "none":
        return Offers(certain=True, planned=True)
    if not pool.served or pool.profile is None or node is None or not pool.offer.known:
        return None
    shares: dict[str, Share] = {}
    if not pool.method.own_plugin:
        answer = predict(pool.profile.config, node, env=_env(fleet))
        refuses = bool(answer.fail_gt1)
        shares = {name: Share(answer.strategy, times, refuses) for name, times in answer.factors.items()}
    return Offers(shares, dict(pool.offer.resources), certain=True, planned=True)


def _cards(pool: FleetPool) -> Cards | None:
    """HAMi registers each card with its memory times the scaling (Project-HAMi/HAMi, devices.go)."""
    if not pool.method.vgpus or pool.hardware.gpus is None:
        return None
    memory = pool.hardware.model.memory_mib if pool.hardware.model else None
    scaled = int(memory * pool.method.memory_scale) if memory else None
    return Cards(pool.hardware.gpus, scaled, pool.method.pods_per_device)


def _labels(fleet: Fleet, pool: FleetPool, decided: frozenset[str]) -> Labels:
    if not pool.nodes.labelled:  # somebody else labels these nodes, so they may carry more
        decided = frozenset()
    prefixes = [_OURS]
    if pool.served and fleet.release is None:
        prefixes.append(DISCOVERED)
    elif pool.served and pool.hardware.model and pool.hardware.model.product:
        decided = decided | {PRODUCT_LABEL}
    return Labels(dict(pool.offer.labels), decided, tuple(prefixes))


def _most_nodes(pool: FleetPool) -> int | None:
    return pool.nodes.count[1] if pool.nodes.count else None


def _classes(fleet: Fleet) -> frozenset[str] | None:
    """NVIDIA's runtime classes of the cluster; None where somebody may have made more than the stack knows of."""
    found = {pool.runtime_class for pool in fleet.served}
    if fleet.release is None:
        if fleet.place.kubeconfig(fleet.stack) is not None:  # a cluster that others have made
            return None
    elif not fleet.release.cdi.nri:  # with that the operator deletes its classes
        found |= {fleet.release.runtime_class, *(_OF_OPERATOR if fleet.release.cdi.enabled else ())}
    return frozenset(name for name in found if name)


def _quotas(fleet: Fleet) -> dict[str, Quota]:
    """By namespace, what a team's quota allows."""
    found = {}
    for team in team_plans(fleet):
        hard = {key.partition(".")[2]: int(count) for key, count in team.quota.items() if count.isdigit()}
        if hard:
            found[team.namespace] = Quota(team.name, hard)
    return found
