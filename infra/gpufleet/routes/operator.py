"""The operator route: Helm values derived from the plan, and the ConfigMap with one key per profile."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from gpufleet.catalog import component, components_of, distribution
from gpufleet.findings.credentials import credentials
from gpufleet.findings.finding import Finding, finding
from gpufleet.images.images import mirrored, runs
from gpufleet.plan.driver_owner import node_labels, operator_driver
from gpufleet.plan.facts import pool_facts
from gpufleet.plan.mig import layout, release_strategy
from gpufleet.plan.names import DEPLOY_LABEL, MIG_CONFIG_LABEL, OPERATOR_CONFIG_LABEL, UNSHARED, config_map_name
from gpufleet.plan.sharing import Profile, plugin_config, serves, spec_of
from gpufleet.plan.taints import Taint, pool_taints, tolerations
from gpufleet.routes.chart_values import get_value, set_value
from gpufleet.routes.plugin import ConfigMapPlan
from gpufleet.stackfile.model import AksStack, Stack, stack_pools
from gpufleet.stackfile.pools import NodePool
from gpufleet.stackfile.sharing import Hami, Mig
from gpufleet.stackfile.software import Images, OperatorRoute
from gpufleet.stackfile.source import PathParts, join_path

RELEASE_NAME = "gpu-operator"
#: The MIG manager's default: nodes that no pool cuts stay whole.
MIG_DISABLED = "all-disabled"
#: The chart's own default toleration; kept, so that nodes outside the stack's pools are served as before.
_CHART_TAINT = Taint("nvidia.com/gpu", "", "NoSchedule")
#: The chart renders this one as it is; an empty text makes the ClusterPolicy invalid (case NV-10).
_RENDERED_EMPTY: PathParts = ("validator", "plugin")
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


@dataclass(frozen=True)
class OperatorPlan:
    """The Helm release. `chart` is a name in `repository`, or a path when `repository` is None; timeout in seconds."""

    namespace: str
    release: str
    chart: str
    repository: str | None
    version: str
    timeout_seconds: int
    values: dict[str, Any]
    config_map: ConfigMapPlan
    default_profile: str
    mig_config: ConfigMapPlan | None = None


def operator_plan(stack: Stack, profiles: dict[str, Profile]) -> OperatorPlan:
    """Raises TypeError when the stack is not on the operator route."""
    route = stack.stack
    if not isinstance(route, OperatorRoute):
        raise TypeError("not the operator route")
    data = {name: profile.config for name, profile in profiles.items()}
    if UNSHARED not in data:
        from gpufleet.stackfile.sharing import NoSharing

        data[UNSHARED] = plugin_config(NoSharing(strategy="none"))
    data = dict(sorted(data.items()))
    config_map = ConfigMapPlan(config_map_name("sharing", data), data)
    mig_config = mig_manager_config(stack)
    known = component("gpu-operator")
    return OperatorPlan(
        namespace=route.namespace,
        release=RELEASE_NAME,
        chart=route.chart.path or known.chart or RELEASE_NAME,
        repository=None if route.chart.path else route.chart.repository or known.repository,
        version=route.version or known.version,
        timeout_seconds=route.timeout_seconds,
        values=_values(stack, route, profiles, config_map, mig_config),
        config_map=config_map,
        default_profile=UNSHARED,
        mig_config=mig_config,
    )


def _values(
    stack: Stack,
    route: OperatorRoute,
    profiles: dict[str, Profile],
    config_map: ConfigMapPlan,
    mig_config: ConfigMapPlan | None,
) -> dict[str, Any]:
    values: dict[str, Any] = copy.deepcopy(route.values)
    driver = operator_driver(stack)
    closure = [t.as_dict() for t in tolerations({t for p in stack.pools for t in pool_taints(p)} | {_CHART_TAINT})]
    set_value(values, "driver.enabled", driver.driver)
    if driver.version:
        set_value(values, "driver.version", driver.version)
    if driver.kernel_module_type:
        set_value(values, "driver.kernelModuleType", driver.kernel_module_type)
    set_value(values, "toolkit.enabled", driver.toolkit)
    if driver.toolkit:
        name = "aks" if isinstance(stack, AksStack) else stack.cluster.distribution
        known = distribution(name)
        env = dict(known.operator_toolkit_env) if known else {}
        set_value(values, "toolkit.env", [{"name": k, "value": v} for k, v in sorted(env.items())])
    set_value(values, "operator.runtimeClass", driver.runtime_class)
    hami = any(p.strategy == "hami" for p in profiles.values())
    set_value(values, "devicePlugin.enabled", not hami)  # two plugins register one resource name
    if not hami:
        set_value(values, "devicePlugin.config", {"name": config_map.name, "default": UNSHARED})
    set_value(values, "gfd.enabled", True)
    set_value(values, "nfd.enabled", True)
    # The plugin takes MIG_STRATEGY from the environment, so the chart's default `single` would beat the file.
    set_value(values, "mig.strategy", release_strategy(stack))
    set_value(values, "migManager.enabled", mig_config is not None)
    if mig_config is not None:
        set_value(values, "migManager.config", {"name": mig_config.name, "default": MIG_DISABLED})
    set_value(values, "daemonsets.tolerations", closure)
    set_value(values, "node-feature-discovery.worker.tolerations", closure)
    if any(p.pods_per_device > 1 for p in profiles.values()):
        # Without it the exporter shows one of the pods that share a GPU (NVIDIA/dcgm-exporter#151).
        set_value(values, "dcgmExporter.env", [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}])
    if route.images.pull_secrets:
        _use_secrets(values, route.images.pull_secrets)
    if route.images.registry:
        _use_registry(values, route.images.registry)
    return _ordered(values)


def _use_secrets(values: dict[str, Any], secrets: tuple[str, ...]) -> None:
    """Every part that runs pulls with the stack's secrets; what the stack file names itself stays.

    The driver's manager is a container of the driver's pod; the NFD subchart takes objects, the parts take names.
    """
    rows = [row for row in components_of("gpu-operator") if row.value and runs(row, values)]
    for part in ("operator", *sorted({row.section for row in rows} - {"driver.manager"})):
        if get_value(values, f"{part}.imagePullSecrets") is None:
            set_value(values, f"{part}.imagePullSecrets", list(secrets))
    nfd, path = component("node-feature-discovery"), "node-feature-discovery.imagePullSecrets"
    if runs(nfd, values) and get_value(values, path) is None:
        set_value(values, path, [{"name": name} for name in secrets])


def _use_registry(values: dict[str, Any], registry: str) -> None:
    """Every image from the stack's registry; a repository that the stack file names itself stays."""
    parts = ["operator", *(row.section for row in components_of("gpu-operator") if row.value)]
    for part in parts:
        if get_value(values, f"{part}.repository") is None:
            set_value(values, f"{part}.repository", registry)
    nfd = component("node-feature-discovery").image or ""
    if get_value(values, "node-feature-discovery.image.repository") is None:
        name = mirrored(nfd.rpartition(":")[0], Images.model_validate({"registry": registry}))
        set_value(values, "node-feature-discovery.image.repository", name)


def _ordered(values: dict[str, Any]) -> dict[str, Any]:
    """The same map with its keys sorted: their order in the stack file means nothing."""
    return {k: _ordered(v) if isinstance(v, dict) else v for k, v in sorted(values.items())}


def mig_layouts(stack: Stack) -> dict[str, dict[str, int]]:
    """Per pool whose GPUs the MIG manager cuts, the instances of each GPU."""
    if not isinstance(stack.stack, OperatorRoute):
        return {}
    out = {}
    for pool in stack_pools(stack):
        spec = spec_of(pool, stack)
        if isinstance(spec, Mig) and pool.driver == "operator":
            wanted = layout(spec, pool_facts(pool).model)
            if wanted is not None:
                out[pool.name] = wanted
    return out


def mig_layout_name(instances: dict[str, int]) -> str:
    """`2x1g.10gb_1x3g.40gb`: a name for the MIG manager's configuration that is a label value as well."""
    return "_".join(f"{count}x{profile.replace('+', '.')}" for profile, count in sorted(instances.items()))


def mig_manager_config(stack: Stack) -> ConfigMapPlan | None:
    """The MIG manager's configuration with the stack's own layouts; None where it has nothing to cut."""
    wanted = mig_layouts(stack)
    if not wanted:
        return None
    configs: dict[str, Any] = {MIG_DISABLED: [{"devices": "all", "mig-enabled": False}]}
    for instances in wanted.values():
        configs[mig_layout_name(instances)] = [{"devices": "all", "mig-enabled": True, "mig-devices": instances}]
    data = {"config.yaml": yaml.safe_dump({"version": "v1", "mig-configs": dict(sorted(configs.items()))})}
    return ConfigMapPlan(config_map_name("mig", data), data)


def config_labels(stack: Stack) -> dict[str, dict[str, str]]:
    """Per pool, the labels by which config-manager and MIG manager find what is meant for the pool's nodes."""
    if not isinstance(stack.stack, OperatorRoute):
        return {}
    cut = mig_layouts(stack)
    out: dict[str, dict[str, str]] = {}
    for pool in stack_pools(stack):
        if not serves(pool):
            continue
        labels = out.setdefault(pool.name, {})
        spec = spec_of(pool, stack)
        if not isinstance(spec, Hami):
            labels[OPERATOR_CONFIG_LABEL] = pool.sharing or UNSHARED
        if pool.name in cut:
            labels[MIG_CONFIG_LABEL] = mig_layout_name(cut[pool.name])
        elif cut:
            labels[DEPLOY_LABEL + "mig-manager"] = "false"  # what others cut is not its business
    return out


def _leaves(values: Any, path: PathParts = ()) -> Iterator[tuple[PathParts, Any]]:
    """Every scalar of raw values with its place."""
    if isinstance(values, dict | list):
        for key, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from _leaves(value, (*path, key))
    else:
        yield path, values


def check_operator(stack: Stack) -> list[Finding]:
    """Raw values that the plan derives, and pools whose nodes nobody labels."""
    route = stack.stack
    if not isinstance(route, OperatorRoute):
        return []
    found = [
        finding("GF220", f"stack.values.{path}", value=get_value(route.values, path))
        for path in DERIVED_PATHS
        if get_value(route.values, path) is not None
    ]
    found += [
        finding("GF224", join_path(("stack", "values", *path)), value=value)
        for path, value in _leaves(route.values)
        if value is None or (value == "" and path == _RENDERED_EMPTY)
    ]
    found += [finding("GF226", join_path(p)) for p in credentials(route.values, ("stack", "values"))]
    known = component("gpu-operator").version
    if route.version and route.version != known:
        found.append(finding("GF221", "stack.version", value=route.version, known=known))
    labels = node_labels(stack)
    for i, pool in enumerate(stack_pools(stack)):
        if not isinstance(pool, NodePool) or not pool.node_selector:
            continue
        missing = {k: v for k, v in labels[pool.name].items() if pool.node_selector.get(k) != v}
        if missing:
            found.append(finding("GF223", f"pools[{i}].nodeSelector", value=pool.node_selector, missing=missing))
        if serves(pool) and not isinstance(spec_of(pool, stack), Hami):
            profile = pool.sharing or UNSHARED
            if pool.node_selector.get(OPERATOR_CONFIG_LABEL, UNSHARED) != profile:
                found.append(finding("GF222", f"pools[{i}].nodeSelector", value=pool.node_selector, profile=profile))
    return found
