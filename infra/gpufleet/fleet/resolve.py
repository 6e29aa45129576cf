"""Stack -> Fleet: every word of every pool, decided once, in the order in which one follows from the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from gpufleet.fleet.autoscaler import autoscaling
from gpufleet.fleet.model import Fleet, FleetPool, Release
from gpufleet.fleet.offer import NodePrediction, predict_node
from gpufleet.fleet.owner import known_driver, operand_labels, release_of, serves
from gpufleet.fleet.profile import Profile, profile_of
from gpufleet.fleet.runtime import node_runtime
from gpufleet.methods.base import Method
from gpufleet.methods.mig import layout_name
from gpufleet.methods.whole import WHOLE
from gpufleet.parts.names import (
    DEPLOY_LABEL,
    METHOD_LABEL,
    MIG_CONFIG_LABEL,
    OPERATOR_CONFIG_LABEL,
    UNSHARED,
)
from gpufleet.parts.taints import declared_taints
from gpufleet.places import PLACES
from gpufleet.places.base import Place
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.pool import Pool
from gpufleet.stackfile.software import OperatorRoute


def method_of(pool: Pool, stack: Stack) -> Method:
    """The method of a pool as the stack file states it; whole GPUs where it names no profile."""
    methods = cast("dict[str, Method]", stack.sharing)
    return methods.get(pool.sharing or UNSHARED) or WHOLE


def resolve(stack: Stack) -> Fleet:
    """The fleet of a stack; a stack with errors gives one as well, so that rules can look at all of it."""
    place = PLACES[stack.cluster.kind]
    profiles: dict[str, Profile] = {}
    first = tuple(_alone(i, pool, stack, place, profiles) for i, pool in enumerate(stack.pools))
    route = stack.stack
    release = _release(stack, route, place, first) if isinstance(route, OperatorRoute) else None
    distribution = place.distribution(stack)
    return Fleet(stack, place, tuple(_together(pool, release, distribution) for pool in first), release)


def _alone(index: int, spec: Pool, stack: Stack, place: Place[Any, Any], profiles: dict[str, Profile]) -> FleetPool:
    """What a pool is by itself: place, hardware, owner, method, layout, taints, nodes."""
    hardware, served, method = place.hardware(spec), serves(spec), method_of(spec, stack)
    name = spec.sharing or UNSHARED
    if served and name not in profiles:
        profiles[name] = profile_of(name, method)
    return FleetPool(
        index=index,
        spec=spec,
        place=place,
        owners=place.owners_on(stack),
        release=None,
        hardware=hardware,
        driver=known_driver(spec, place, hardware),
        served=served,
        method=method,
        profile=profiles[name] if served else None,
        layout=method.layout(hardware),
        taints=tuple(sorted(declared_taints(spec.taints) | set(place.added_taints(spec)))),
        nodes=place.nodes(spec),
        runtime=None,
        os=place.os(spec, stack),
        derived={},
        labels={},
        offer=NodePrediction({}),
        autoscaling=None,
    )


def _release(
    stack: Stack, route: OperatorRoute, place: Place[Any, Any], pools: tuple[FleetPool, ...]
) -> Release:
    """What the pools give one operator release together."""
    words = {pool.method.mig_strategy for pool in pools}
    cut = {p.name: p.layout for p in pools if p.method.mig_strategy != "none" and p.owner == "operator" and p.layout}
    return release_of(
        route,
        pools,
        place.distribution(stack),
        next((word for word in ("mixed", "single") if word in words), "none"),
        cut,
    )


def _together(pool: FleetPool, release: Release | None, distribution: str) -> FleetPool:
    """The rest, which needs to know of the other pools: runtime, labels, offer, autoscaling."""
    derived = _derived(pool, release)
    own = pool.place.labels(pool.spec)
    put = derived if pool.nodes.labelled else {}
    mig_env = release.mig_strategy if release else None
    offer = predict_node(pool.hardware, pool.method, pool.profile, pool.layout, mig_env, release is not None)
    shown = {**own, **offer.labels, **put}
    if MIG_CONFIG_LABEL in put:
        shown[MIG_CONFIG_LABEL + ".state"] = "success"
    scale = pool.place.autoscale(pool.spec)
    return replace(
        pool,
        release=release,
        runtime=node_runtime(pool, release, distribution),
        derived=derived,
        labels=dict(sorted({**own, **put}.items())),
        offer=replace(offer, labels=dict(sorted(shown.items()))),
        autoscaling=autoscaling(scale, pool.hardware.gpus, sum(offer.resources.values())),
    )


def _derived(pool: FleetPool, release: Release | None) -> Mapping[str, str]:
    """Labels by which the software finds the nodes that are meant for it."""
    together = pool.nodes.labelled and not pool.nodes.names  # all labels of an agent pool change at once
    labels = operand_labels(pool.spec, release, ahead=together) if release else {}
    if release and pool.profile:
        if not pool.method.own_plugin:
            labels[OPERATOR_CONFIG_LABEL] = pool.profile.name
        if pool.name in release.layouts:
            labels[MIG_CONFIG_LABEL] = layout_name(release.layouts[pool.name])
        elif release.layouts:
            labels[DEPLOY_LABEL + "mig-manager"] = "false"  # what others cut is not its business
    if pool.profile:
        labels |= pool.method.node_labels()
        if pool.nodes.names:
            labels[METHOD_LABEL] = pool.method.strategy
    return labels
