"""The standalone route: one DaemonSet and one ConfigMap per sharing profile, bound to the pools that use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.catalog import component, distribution
from gpufleet.findings.finding import Finding, finding
from gpufleet.images.images import mirrored
from gpufleet.plan.driver_owner import plugin_runtime_class
from gpufleet.plan.names import POOL_LABEL, UNSHARED, config_map_name
from gpufleet.plan.sharing import Profile, serves
from gpufleet.plan.taints import pool_taints, tolerations
from gpufleet.stackfile.model import ExistingStack, Stack, stack_pools
from gpufleet.stackfile.pools import AksPool, NodePool, Pool
from gpufleet.stackfile.software import PluginRoute

CONFIG_KEY = "config.yaml"
CONFIG_FOLDER = "/etc/gpufleet/device-plugin"


@dataclass(frozen=True)
class ConfigMapPlan:
    """A ConfigMap whose name carries the hash of its data."""

    name: str
    data: dict[str, str]


@dataclass(frozen=True)
class DaemonSetPlan:
    """The plugin for one profile. `affinity` holds node selector terms, any of which suffices.

    `mps`: an MPS control daemon runs beside it, as a DaemonSet of its own. `mig`: the plugin may look into MIG devices.
    """

    name: str
    profile: str
    pools: tuple[str, ...]
    config_map: ConfigMapPlan
    affinity: tuple[dict[str, Any], ...]
    tolerations: tuple[dict[str, str], ...]
    runtime_class: str | None
    image: str
    mps: bool = False
    mig: bool = False


@dataclass(frozen=True)
class PluginPlan:
    """Everything that the standalone route puts into the cluster. `runtime_class` is the one to create, if any."""

    namespace: str
    daemon_sets: tuple[DaemonSetPlan, ...]
    runtime_class: str | None
    pull_secrets: tuple[str, ...] = ()


def affinity_terms(pools: Sequence[Pool]) -> tuple[dict[str, Any], ...]:
    """Node selector terms that pick exactly the nodes of these pools."""
    labelled = sorted(p.name for p in pools if isinstance(p, AksPool) or not p.node_selector)
    terms: list[dict[str, Any]] = []
    if labelled:
        terms.append({"matchExpressions": [{"key": POOL_LABEL, "operator": "In", "values": labelled}]})
    for pool in sorted(pools, key=lambda p: p.name):
        if not isinstance(pool, AksPool) and pool.node_selector:
            terms.append(
                {
                    "matchExpressions": [
                        {"key": k, "operator": "In", "values": [v]} for k, v in sorted(pool.node_selector.items())
                    ]
                }
            )
    return tuple(terms)


def plugin_image(route: PluginRoute) -> str:
    """The plugin's image, at the version and registry that the stack asks for."""
    image = component("k8s-device-plugin").image or ""
    if route.version:
        image = f"{image.rpartition(':')[0]}:{route.version}"
    return mirrored(image, route.images)


def plugin_plan(stack: Stack, profiles: dict[str, Profile]) -> PluginPlan:
    """Raises TypeError when the stack is not on the plugin route."""
    route = stack.stack
    if not isinstance(route, PluginRoute):
        raise TypeError("not the plugin route")
    by_profile: dict[str, list[Pool]] = {name: [] for name in profiles}
    for pool in stack.pools:
        if serves(pool) and profiles[pool.sharing or UNSHARED].strategy != "hami":  # it brings its own plugin
            by_profile[pool.sharing or UNSHARED].append(pool)
    daemon_sets = []
    for name, pools in by_profile.items():
        if not pools:
            continue
        data = {CONFIG_KEY: profiles[name].config}
        taints = {t for pool in pools for t in pool_taints(pool)}
        daemon_sets.append(
            DaemonSetPlan(
                name=f"gpufleet-plugin-{name}",
                profile=name,
                pools=tuple(sorted(p.name for p in pools)),
                config_map=ConfigMapPlan(config_map_name(name, data), data),
                affinity=affinity_terms(pools),
                tolerations=tuple(t.as_dict() for t in tolerations(taints)),
                runtime_class=plugin_runtime_class(pools),
                image=plugin_image(route),
                mps=profiles[name].strategy == "mps",
                mig=profiles[name].strategy == "mig",
            )
        )
    wanted = plugin_runtime_class([p for p in stack_pools(stack) if serves(p)])  # HAMi's pods need it as well
    if wanted and isinstance(stack, ExistingStack):
        known = distribution(stack.cluster.distribution)
        if known is not None and known.runtime_class == wanted:
            wanted = None  # the distribution brings it
    return PluginPlan(route.namespace, tuple(daemon_sets), wanted, route.images.pull_secrets)


def check_plugin(stack: Stack) -> list[Finding]:
    """Versions whose behaviour the prediction does not describe, and runtimes that one DaemonSet cannot serve."""
    route = stack.stack
    if not isinstance(route, PluginRoute):
        return []
    found = []
    known = component("k8s-device-plugin").version
    if route.version and route.version != known:
        found.append(finding("GF305", "stack.version", value=route.version, known=known))
    runtimes: dict[str, set[bool]] = {}
    first: dict[str, int] = {}
    for i, pool in enumerate(stack_pools(stack)):
        if isinstance(pool, NodePool) and serves(pool):
            name = pool.sharing or UNSHARED
            first.setdefault(name, i)
            runtimes.setdefault(name, set()).add(pool.nvidia_default_runtime)
    found += [
        finding("GF306", f"pools[{first[name]}].nvidiaDefaultRuntime", value=name)
        for name, kinds in runtimes.items()
        if len(kinds) > 1
    ]
    return found
