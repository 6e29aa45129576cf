"""The operator route: Helm values derived from the fleet, and the ConfigMap with one key per profile."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import yaml

from gpufleet.catalog import component, distribution
from gpufleet.fleet.model import Fleet, Release
from gpufleet.fleet.profile import plugin_text
from gpufleet.methods.mig import layout_name
from gpufleet.methods.whole import WHOLE
from gpufleet.parts.artifact import ConfigMapPlan, HelmRelease, KeepingConfigMap
from gpufleet.parts.chart_values import get_value, set_value
from gpufleet.parts.names import (
    MIG_CONFIG_LABEL,
    OPERATOR_CONFIG_LABEL,
    ROUTE_LABEL,
    UNSHARED,
    config_map_name,
)
from gpufleet.parts.seen import Seen, SeenConfigMap
from gpufleet.parts.taints import Taint, tolerations
from gpufleet.routes.operator_images import operator_images, use_registry, use_secrets
from gpufleet.stackfile.software import OperatorRoute

RELEASE_NAME = "gpu-operator"
#: The MIG manager's default: nodes that no pool cuts stay whole.
MIG_DISABLED = "all-disabled"
#: Lets the MIG manager restart a node whose GPU takes the mode only then.
WITH_REBOOT = "WITH_REBOOT"
#: The only key of its ConfigMap that the MIG manager reads.
MIG_KEY = "config.yaml"
#: The chart's own default toleration; kept, so that nodes outside the stack's pools are served as before.
_CHART_TAINT = Taint("nvidia.com/gpu", "", "NoSchedule")
#: Paths that the plan derives. A raw value there would contradict it.
DERIVED_PATHS = (
    "driver.enabled",
    "driver.version",
    "driver.kernelModuleType",
    "toolkit.enabled",
    "toolkit.env",
    "operator.runtimeClass",
    "devicePlugin.enabled",
    "devicePlugin.config",
    "gfd.enabled",
    "mig.strategy",
    "migManager.enabled",
    "migManager.config",
    "daemonsets.tolerations",
    "nfd.enabled",
    "node-feature-discovery.worker.tolerations",
    "dcgmExporter.env",
)


@dataclass(frozen=True, kw_only=True)
class OperatorPlan(HelmRelease):
    """The Helm release, the ConfigMap of sharing texts, and that of MIG layouts where the release cuts GPUs."""

    config_map: ConfigMapPlan
    default_profile: str
    mig_config: ConfigMapPlan | None = None

    before_labels: ClassVar[bool] = True

    def given(self, seen: Seen) -> OperatorPlan:
        """With the keys that labels of nodes still name, so that these fit until they have moved."""
        own = [one for one in seen.config_maps if one.namespace == self.namespace]
        return replace(self, config_map=_keeping(self.config_map, own, seen), mig_config=self._mig_keeping(own, seen))

    def _mig_keeping(self, own: Sequence[SeenConfigMap], seen: Seen) -> ConfigMapPlan | None:
        if self.mig_config is None:
            return None
        content = yaml.safe_load(self.mig_config.data[MIG_KEY])
        known: dict[str, Any] = {}
        for one in own:
            if MIG_KEY in one.data:
                known |= yaml.safe_load(one.data[MIG_KEY]).get("mig-configs", {})
        configs = content["mig-configs"]
        kept = sorted(seen.named(MIG_CONFIG_LABEL) & (known.keys() - configs.keys()))
        content["mig-configs"] = dict(sorted({**configs, **{name: known[name] for name in kept}}.items()))
        return _with_kept(self.mig_config, {MIG_KEY: yaml.safe_dump(content)}, kept, own)

    @property
    def config_maps(self) -> tuple[tuple[ConfigMapPlan, dict[str, str]], ...]:
        cut = ((self.mig_config, dict[str, str]()),) if self.mig_config else ()
        return ((self.config_map, {ROUTE_LABEL: "operator"}), *cut)

    @property
    def reads(self) -> str:
        return self.config_map.name


def operator_plan(fleet: Fleet, route: OperatorRoute) -> OperatorPlan:
    """The operator route of a fleet.

    Raises:
        TypeError: the fleet has no operator release.
    """
    if fleet.release is None:
        raise TypeError("not the operator route")
    data = {UNSHARED: plugin_text(WHOLE), **{name: profile.config for name, profile in fleet.profiles.items()}}
    data = dict(sorted(data.items()))
    config_map = ConfigMapPlan(config_map_name("sharing", data), data)
    mig_config = _mig_config(fleet.release)
    values = _values(fleet, fleet.release, route, config_map, mig_config)
    known = component("gpu-operator")
    return OperatorPlan(
        id="operator",
        namespace=route.namespace,
        pull_secret=route.images.made_secret,
        pull_secrets=route.images.pull_secrets,
        release=RELEASE_NAME,
        chart=route.chart.path or known.chart or RELEASE_NAME,
        repository=None if route.chart.path else route.chart.repository or known.repository,
        version=route.version or known.version,
        timeout_seconds=route.timeout_seconds,
        values=values,
        title="GPU Operator",
        words=_words(fleet, fleet.release, route, config_map, mig_config),
        component_type="gpufleet:operator:GpuOperator",
        component_name="gpu-operator",
        chart_env="GPUFLEET_OPERATOR_CHART",
        tolerations=tuple(values["daemonsets"]["tolerations"]),
        profiles=tuple(sorted({p.profile.name for p in fleet.served if p.profile and not p.method.own_plugin})),
        images=operator_images(fleet, route, values),
        config_map=config_map,
        default_profile=UNSHARED,
        mig_config=mig_config,
    )


def _keeping(wanted: ConfigMapPlan, own: Sequence[SeenConfigMap], seen: Seen) -> ConfigMapPlan:
    """The ConfigMap of sharing texts, with those that labels of nodes name and that an earlier one holds."""
    texts = {key: text for one in own if one.labels.get(ROUTE_LABEL) == "operator" for key, text in one.data.items()}
    kept = sorted(seen.named(OPERATOR_CONFIG_LABEL) & (texts.keys() - wanted.data.keys()))
    data = dict(sorted({**wanted.data, **{key: texts[key] for key in kept}}.items()))
    return _with_kept(wanted, data, kept, own)


def _with_kept(
    wanted: ConfigMapPlan, data: dict[str, str], kept: list[str], own: Sequence[SeenConfigMap]
) -> ConfigMapPlan:
    frozen = any(one.name == wanted.name and one.immutable for one in own)
    return KeepingConfigMap(wanted.name, data, tuple(kept), frozen) if kept or frozen else wanted


def _words(
    fleet: Fleet, release: Release, route: OperatorRoute, config_map: ConfigMapPlan, mig_config: ConfigMapPlan | None
) -> tuple[str, ...]:
    driver, toolkit = ("on" if on else "off" for on in (release.driver, release.toolkit))
    cut = sorted({layout_name(layout) for layout in release.layouts.values()})
    cdi, restarts = "on" if release.cdi.enabled else "off", fleet.place.mig_restarts_nodes(fleet.stack)
    own_nfd = route.nfd == "existing"
    tolerated = ", ".join(str(t) for t in sorted({t for pool in fleet.pools for t in pool.taints})) or "nothing"
    return (
        f"driver {driver}, toolkit {toolkit}, CDI {cdi}, runtime class {release.runtime_class}",
        *(("NVIDIA's device plugin off: another one serves the GPUs",) if fleet.own_plugin else ()),
        f"sharing {config_map.name}, keys {', '.join(config_map.data)}, default {UNSHARED}",
        *((f"MIG manager {mig_config.name}, layouts {', '.join(cut)}, default {MIG_DISABLED}",) if mig_config else ()),
        *(("a node restarts when the MIG manager changes the mode of its GPUs",) if mig_config and restarts else ()),
        *((f"Node Feature Discovery: the cluster's own; its workers must tolerate {tolerated}",) if own_nfd else ()),
    )


def _mig_config(release: Release) -> ConfigMapPlan | None:
    """The MIG manager's configuration with the stack's own layouts; None where it has nothing to cut."""
    if not release.layouts:
        return None
    configs: dict[str, Any] = {MIG_DISABLED: [{"devices": "all", "mig-enabled": False}]}
    for instances in release.layouts.values():
        configs[layout_name(instances)] = [{"devices": "all", "mig-enabled": True, "mig-devices": dict(instances)}]
    data = {MIG_KEY: yaml.safe_dump({"version": "v1", "mig-configs": dict(sorted(configs.items()))})}
    return ConfigMapPlan(config_map_name("mig", data), data)


def _values(
    fleet: Fleet, release: Release, route: OperatorRoute, config_map: ConfigMapPlan, mig_config: ConfigMapPlan | None
) -> dict[str, Any]:
    values: dict[str, Any] = copy.deepcopy(route.values)
    closure = [t.as_dict() for t in tolerations({t for pool in fleet.pools for t in pool.taints} | {_CHART_TAINT})]
    set_value(values, "driver.enabled", release.driver)
    if release.version:
        set_value(values, "driver.version", release.version)
    if release.kernel_module_type:
        set_value(values, "driver.kernelModuleType", release.kernel_module_type)
    set_value(values, "toolkit.enabled", release.toolkit)
    if release.toolkit:
        known = distribution(fleet.distribution)
        env = dict(known.operator_toolkit_env) if known else {}
        set_value(values, "toolkit.env", [{"name": k, "value": v} for k, v in sorted(env.items())])
    set_value(values, "operator.runtimeClass", release.runtime_class)
    if release.cdi.known.cdi or release.cdi.enabled:
        set_value(values, "cdi.enabled", release.cdi.enabled)
    set_value(values, "devicePlugin.enabled", not fleet.own_plugin)  # two plugins register one resource name
    if not fleet.own_plugin:
        set_value(values, "devicePlugin.config", {"name": config_map.name, "default": UNSHARED})
    set_value(values, "gfd.enabled", True)
    set_value(values, "nfd.enabled", route.nfd == "install")
    # The plugin takes MIG_STRATEGY from the environment, so the chart's default `single` would beat the file.
    set_value(values, "mig.strategy", release.mig_strategy)
    set_value(values, "migManager.enabled", mig_config is not None)
    if mig_config is not None:
        set_value(values, "migManager.config", {"name": mig_config.name, "default": MIG_DISABLED})
        if fleet.place.mig_restarts_nodes(fleet.stack):
            own = [one for one in get_value(values, "migManager.env") or [] if one.get("name") != WITH_REBOOT]
            set_value(values, "migManager.env", [*own, {"name": WITH_REBOOT, "value": "true"}])
    set_value(values, "daemonsets.tolerations", closure)
    if route.nfd == "install":
        set_value(values, "node-feature-discovery.worker.tolerations", closure)
    if any(profile.pods_per_device > 1 for profile in fleet.profiles.values()):
        # Without it the exporter shows one of the pods that share a GPU (NVIDIA/dcgm-exporter#151).
        set_value(values, "dcgmExporter.env", [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}])
    version = route.version or component("gpu-operator").version
    if route.images.pull_secrets:
        use_secrets(values, route.images.pull_secrets, version)
    if route.images.registry:
        use_registry(values, route.images, version)
    return _ordered(values)


def _ordered(values: dict[str, Any]) -> dict[str, Any]:
    """The same map with its keys sorted: their order in the stack file means nothing."""
    return {k: _ordered(v) if isinstance(v, dict) else v for k, v in sorted(values.items())}
