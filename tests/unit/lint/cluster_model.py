"""A cluster as Kubernetes and the plugin make it, for comparison with lint. Nothing here asks the product's lint.

Nodes come from the plan's artifacts (labels, taints, the text that the plugin reads) through the twin's stand-in for
plugin and feature discovery. Pods are judged by the documented rules:

- API server: RuntimeClass exists (Kubernetes documentation, runtime-class)
- scheduler: nodeSelector, required node affinity, taints and tolerations, resources of containers, init containers and
  sidecars (assign-pod-node, taint-and-toleration, manage-resources-containers, sidecar-containers)
- plugin: with failRequestsGreaterThanOne a container gets one share (NVIDIA/k8s-device-plugin v0.20.0)
- runtime: without CDI a container needs NVIDIA's runtime, by default or by its class (reference, real-software 2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.fleet.model import Fleet
from gpufleet.plan.model import Plan

from twin.advertiser import discovery, mig, offer, plugin_config

Pod = Mapping[str, Any]
#: A node has room for a pod's CPU and memory; the generated pods ask for none.
GPU_PREFIX = "nvidia.com/"


@dataclass(frozen=True)
class Node:
    """One node as the API shows it, with what stands behind it."""

    pool: str
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str, str], ...]
    resources: Mapping[str, int]
    config: plugin_config.Config
    needs_class: str | None


@dataclass(frozen=True)
class Cluster:
    """Nodes, runtime classes, and whether admission adds tolerations for requested resources."""

    nodes: tuple[Node, ...]
    classes: frozenset[str]
    adds_tolerations: bool


def cluster(plan: Plan, fleet: Fleet) -> Cluster:
    """The cluster after `pulumi up`."""
    nodes: list[Node] = []
    classes: set[str] = set()
    if plan.operator is not None:
        classes.add(str(plan.operator.values["operator"]["runtimeClass"]))
        classes |= {"nvidia-cdi", "nvidia-legacy"} if _cdi(plan) else set()
    if plan.plugin is not None and plan.plugin.runtime_class:
        classes.add(plan.plugin.runtime_class)
    for planned in plan.pools:
        pool = fleet.by_name[planned.name]
        text, env = _plugin_reads(plan, planned.name, pool.profile_name or "")
        config = plugin_config.read(text, env, [])
        model = pool.hardware.model.id if pool.hardware.model else ""
        hardware = offer.Hardware(pool.hardware.gpus or 0, model, layout=_layout(pool.spec, fleet, model))
        labels = dict(pool.labels)
        needs = None
        if plan.operator is not None:
            labels |= offer.labels(hardware, config)
            labels |= discovery.operator_labels({**labels, **discovery.nfd_labels()}, bool(hardware.layout), False)
        by_class = plan.operator is None or (not _cdi(plan) and pool.owner == "host")
        if by_class and plan.cluster.kind == "existing" and not pool.spec.model_dump().get("nvidia_default_runtime"):
            needs = "nvidia"
        count = max(len(pool.nodes.names), pool.nodes.count[1] if pool.nodes.count else 0)
        taints = tuple((t.key, t.value, t.effect) for t in pool.taints)
        node = Node(planned.name, labels, taints, offer.resources(hardware, config), config, needs)
        nodes += [node] * count
    return Cluster(tuple(nodes), frozenset(classes), plan.cluster.kind == "aks")


def _cdi(plan: Plan) -> bool:
    """The chart's default is true since v25.10 (reference, real-software 2)."""
    assert plan.operator is not None
    return bool(plan.operator.values.get("cdi", {}).get("enabled", True))


def _plugin_reads(plan: Plan, pool: str, profile: str) -> tuple[str, dict[str, str]]:
    if plan.operator is not None:
        return plan.operator.config_map.data[profile], {"MIG_STRATEGY": plan.operator.values["mig"]["strategy"]}
    assert plan.plugin is not None
    [one] = [d for d in plan.plugin.daemon_sets if pool in d.pools]
    return next(iter(one.config_map.data.values())), {}


def _layout(spec: Any, fleet: Fleet, model: str) -> mig.Layout:
    """The instances that the stack asks for, as many as the twin's own table says."""
    method = fleet.stack.sharing.get(spec.sharing or "")
    if method is None or getattr(method, "strategy", "") != "mig":
        return {}
    table = offer.product(model)["mig"]
    wanted = {method.profile: table[method.profile]} if method.profile else dict(method.instances)
    found = mig.every_gpu(fleet.by_name[spec.name].hardware.gpus or 0, wanted, table)
    assert found is not None
    return found


def runs(pod: Pod, here: Cluster, replicas: int = 1) -> bool:
    """Whether `replicas` such pods start and see their GPUs, on whichever nodes the scheduler puts them."""
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    if name is not None and name not in here.classes:
        return False
    asked = _asked(spec)
    nodes = schedulable(pod, here)
    room = sum(min((node.resources[r] // n for r, n in asked.items()), default=replicas) for node in nodes)
    return room >= replicas and all(_starts(spec, name, node) for node in nodes)


def schedulable(pod: Pod, here: Cluster) -> list[Node]:
    """The nodes that the scheduler may choose."""
    spec = pod["spec"]
    return [node for node in here.nodes if _schedulable(spec, _asked(spec), node, here.adds_tolerations)]


def _asked(spec: Mapping[str, Any]) -> dict[str, int]:
    """The pod's effective request."""
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for one in spec.get("initContainers") or ():
        own = _limits(one)
        if one.get("restartPolicy") == "Always":
            running = {k: running.get(k, 0) + own.get(k, 0) for k in {*running, *own}}
        else:
            peak = {k: max(peak.get(k, 0), running.get(k, 0) + own.get(k, 0)) for k in {*peak, *running, *own}}
    for one in spec["containers"]:
        own = _limits(one)
        running = {k: running.get(k, 0) + own.get(k, 0) for k in {*running, *own}}
    most = {k: max(running.get(k, 0), peak.get(k, 0)) for k in {*running, *peak}}
    return {k: n for k, n in most.items() if n}


def _limits(container: Mapping[str, Any]) -> dict[str, int]:
    found = (container.get("resources") or {}).get("limits") or {}
    return {k: int(n) for k, n in found.items() if k.startswith(GPU_PREFIX)}


def _schedulable(spec: Mapping[str, Any], asked: Mapping[str, int], node: Node, adds: bool) -> bool:
    if any(node.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required and not any(
        all(_matches(node.labels, wanted) for wanted in term["matchExpressions"])
        for term in required["nodeSelectorTerms"]
    ):
        return False
    given = list(spec.get("tolerations") or ())
    if adds:
        given += [{"key": resource, "operator": "Exists", "effect": ""} for resource in asked]
    for taint in node.taints:
        if taint[2] != "PreferNoSchedule" and not any(_tolerates(one, taint) for one in given):
            return False
    return all(node.resources.get(resource, 0) >= number for resource, number in asked.items())


def _matches(labels: Mapping[str, str], wanted: Mapping[str, Any]) -> bool:
    have, values = labels.get(wanted["key"]), wanted.get("values") or []
    match wanted["operator"]:
        case "In":
            return have in values
        case "NotIn":
            return have not in values
        case "Exists":
            return have is not None
        case "DoesNotExist":
            return have is None
        case "Gt":
            return have is not None and have.isdigit() and int(have) > int(values[0])
        case "Lt":
            return have is not None and have.isdigit() and int(have) < int(values[0])
    raise ValueError(wanted["operator"])


def _tolerates(toleration: Mapping[str, Any], taint: tuple[str, str, str]) -> bool:
    key, value, effect = taint
    if toleration.get("effect") and toleration["effect"] != effect:
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", key)
    return toleration.get("key") == key and toleration.get("value", "") == value


def _starts(spec: Mapping[str, Any], name: str | None, node: Node) -> bool:
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    asked = [_limits(one) for one in containers]
    if node.config.fail_above_one and any(
        number > 1 and _is_shared(resource, node) for own in asked for resource, number in own.items()
    ):
        return False
    return not (any(any(own.values()) for own in asked) and node.needs_class and name != node.needs_class)


def _is_shared(resource: str, node: Node) -> bool:
    plain = resource.removesuffix(".shared")
    return any(one.name == plain and one.replicas > 1 for one in node.config.resources)
