"""Fleet -> plan: the artifacts of a fleet, together. Pure: the same input gives the same bytes."""

from __future__ import annotations

from gpufleet.findings.finding import Finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.owner import OWNER_WORDS
from gpufleet.parts.artifact import Artifact, Images
from gpufleet.plan.model import Plan, PoolPlan
from gpufleet.routes import software
from gpufleet.teams.teams import team_plans


def compile_plan(name: str, fleet: Fleet, warnings: tuple[Finding, ...] = ()) -> Plan:
    """The plan of a stack without errors."""
    installed = software(fleet)
    images = stack_images(installed)
    return Plan(
        stack=name,
        cluster=fleet.place.cluster_plan(fleet.stack),
        route=fleet.stack.stack.kind,
        pools=tuple(_pool(pool, fleet) for pool in fleet.pools),
        profiles=tuple(fleet.profiles.values()),
        software=installed,
        teams=team_plans(fleet),
        images=tuple(image.pulled_as for image in images.known),
        images_unknown=images.unknown,
        warnings=tuple(found.as_dict() for found in warnings),
    )


def stack_images(installed: tuple[Artifact, ...]) -> Images:
    """What the nodes pull for GPU software, sorted by the name under which it is pulled."""
    by_name = {image.pulled_as: image for artifact in installed for image in artifact.images_pulled.known}
    unknown = dict.fromkeys(words for artifact in installed for words in artifact.images_pulled.unknown)
    return Images(tuple(by_name[name] for name in sorted(by_name)), tuple(unknown))


def _pool(pool: FleetPool, fleet: Fleet) -> PoolPlan:
    return PoolPlan(
        name=pool.name,
        driver_owner=pool.owner,
        driver={**OWNER_WORDS, **fleet.place.owner_words}[pool.owner],
        gpu=pool.hardware.model.id if pool.hardware.model else None,
        gpus_per_node=pool.hardware.gpus,
        nodes=pool.nodes.names,
        selector=pool.selector,
        node_count=pool.nodes.count,
        profile=pool.profile_name,
        runtime=pool.runtime,
        taints=tuple(str(taint) for taint in pool.taints),
        labels=pool.labels,
        node=pool.offer,
        autoscaling=pool.autoscaling,
        resource=fleet.place.pool_resource(pool, fleet.stack),
    )
