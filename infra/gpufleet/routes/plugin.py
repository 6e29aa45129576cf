"""The standalone route: one DaemonSet and one ConfigMap per sharing profile, bound to the pools that use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpufleet.catalog import component, distribution
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.parts.artifact import NO_IMAGES, Artifact, ConfigMapPlan, Image, Images, Serving
from gpufleet.parts.names import POOL_LABEL, config_map_name
from gpufleet.parts.seen import Seen, ours
from gpufleet.parts.taints import in_words, tolerations
from gpufleet.stackfile.software import Images as OwnImages
from gpufleet.stackfile.software import PluginRoute

CONFIG_KEY = "config.yaml"
CONFIG_FOLDER = "/etc/gpufleet/device-plugin"


@dataclass(frozen=True)
class DaemonSetPlan:
    """The plugin for one profile. `affinity` holds node selector terms, any of which suffices.

    `control_daemon` is the DaemonSet of the MPS control daemon that runs beside it, if one does. `env` is what the
    method adds to the plugin's environment.
    """

    name: str
    profile: str
    pools: tuple[str, ...]
    config_map: ConfigMapPlan
    affinity: tuple[dict[str, Any], ...]
    tolerations: tuple[dict[str, str], ...]
    runtime_class: str | None
    image: str
    control_daemon: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """What `gpufleet plan` prints."""
        tolerated = ", ".join(map(in_words, self.tolerations)) or "nothing"
        beside = f" and MPS control daemon {self.control_daemon}" if self.control_daemon else ""
        runtime = f", runtime class {self.runtime_class}" if self.runtime_class else ""
        return [
            f"  DaemonSet {self.name}{beside} on pools {', '.join(self.pools)}",
            f"    configuration {self.config_map.name}, tolerates {tolerated}{runtime}",
        ]


@dataclass(frozen=True, kw_only=True)
class PluginPlan(Artifact):
    """Everything that the standalone route puts into the cluster.

    `runtime_class` is the one to create, if any, `existing_runtime_class` one that pods use and somebody else made.
    `keep_runtime_class`: a destroy leaves the first, since it belongs to the cluster.
    """

    daemon_sets: tuple[DaemonSetPlan, ...]
    runtime_class: str | None
    existing_runtime_class: str | None = None
    keep_runtime_class: bool = False
    images: Images = NO_IMAGES

    def given(self, seen: Seen) -> PluginPlan:
        """A RuntimeClass of somebody else is used as it is; one with our label stays registered.

        Before 4.29 the Kubernetes provider (pulumi/pulumi-kubernetes, provider/pkg/await) takes over a class that
        exists. Where the class is the cluster's own and carries our label, that has happened. It stays registered, so
        that no `up` deletes it, and a destroy leaves it.
        """
        name = self.runtime_class or self.existing_runtime_class
        found = (seen.runtime_classes or {}).get(name) if name else None
        if found is None:
            return self
        if not ours(found.labels):
            return replace(self, runtime_class=None, existing_runtime_class=name)
        if self.runtime_class is None:
            return replace(self, runtime_class=name, existing_runtime_class=None, keep_runtime_class=True)
        return self

    def lines(self) -> list[str]:
        made = [f"  makes the RuntimeClass {self.runtime_class}, unless it is there"] if self.runtime_class else []
        if self.existing_runtime_class:
            made = [f"  uses the RuntimeClass {self.existing_runtime_class} that is there"]
        made += self.secret_lines()
        head = f"device plugin, namespace {self.namespace}:"
        nowhere = [] if self.daemon_sets else ["  no DaemonSet: no pool takes NVIDIA's plugin"]
        return [head, *made, *(line for one in self.daemon_sets for line in one.lines()), *nowhere]

    def serves(self, profile: str) -> Serving | None:
        for one in self.daemon_sets:
            if one.profile == profile:
                return Serving(self.namespace, one.config_map.name, one.tolerations)
        return None

    def component(self) -> str:
        return "gpufleet.deploy.plugin:DevicePlugin"


def affinity_terms(pools: Sequence[FleetPool]) -> tuple[dict[str, Any], ...]:
    """Node selector terms that pick exactly the nodes of these pools."""
    ours = sorted(pool.name for pool in pools if pool.nodes.labelled)
    terms = [[{"key": POOL_LABEL, "operator": "In", "values": ours}]] if ours else []
    terms += [
        [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(pool.selector.items())]
        for pool in sorted(pools, key=lambda pool: pool.name)
        if not pool.nodes.labelled
    ]
    return tuple({"matchExpressions": term} for term in terms)


def plugin_image(route: PluginRoute, images: OwnImages) -> str:
    """The plugin's image at the version that the stack asks for, from its registry."""
    image = component("k8s-device-plugin").image or ""
    if route.version:
        image = f"{image.rpartition(':')[0]}:{route.version}"
    return images.mirrored(image)


def plugin_plan(fleet: Fleet, route: PluginRoute) -> PluginPlan:
    """The standalone route of a fleet; a method that brings its own plugin serves its pools itself."""
    image = plugin_image(route, route.images)
    by_profile: dict[str, list[FleetPool]] = {}
    for pool in fleet.served:
        if pool.profile and not pool.method.own_plugin:
            by_profile.setdefault(pool.profile.name, []).append(pool)
    daemon_sets = []
    for name, pools in sorted(by_profile.items()):
        data = {CONFIG_KEY: fleet.profiles[name].config}
        taints = {taint for pool in pools for taint in pool.taints}
        daemon_sets.append(
            DaemonSetPlan(
                name=f"gpufleet-plugin-{name}",
                profile=name,
                pools=tuple(sorted(pool.name for pool in pools)),
                config_map=ConfigMapPlan(config_map_name(name, data), data),
                affinity=affinity_terms(pools),
                tolerations=tuple(t.as_dict() for t in tolerations(taints)),
                runtime_class=next((p.runtime_class for p in pools if p.runtime_class), None),
                image=image,
                control_daemon=f"gpufleet-mps-{name}" if pools[0].method.control_daemon else None,
                env=dict(pools[0].method.plugin_env),
            )
        )
    made, there = _runtime_class(fleet)
    plain = Image(plugin_image(route, OwnImages.model_validate({})), image)
    return PluginPlan(
        id="plugin",
        namespace=route.namespace,
        daemon_sets=tuple(daemon_sets),
        runtime_class=made,
        existing_runtime_class=there,
        pull_secret=route.images.made_secret,
        pull_secrets=route.images.pull_secrets,
        images=Images((plain,) if daemon_sets else ()),
    )


def _runtime_class(fleet: Fleet) -> tuple[str | None, str | None]:
    """(the RuntimeClass to make, the one that is there); the pods of a method with its own plugin need it as well."""
    wanted = next((pool.runtime_class for pool in fleet.served if pool.runtime_class), None)
    there = fleet.place.existing_runtime_class(fleet.stack)
    if there is None:
        known = distribution(fleet.distribution)
        there = known is not None and wanted in known.runtime_classes
    return (None, wanted) if there else (wanted, None)
