"""One node: what it should show, what it shows, and why they differ, the cause first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gpufleet.catalog import labels, mig_states
from gpufleet.parts.artifact import Serving
from gpufleet.parts.device_requests import GpuPod, excesses
from gpufleet.parts.names import DEPLOY_LABEL, MIG_CONFIG_LABEL, OPERATOR_CONFIG_LABEL
from gpufleet.parts.taints import Taint, parse_taint
from gpufleet.plan.model import PoolPlan
from gpufleet.status.faults import fault_words, gpu_faults
from gpufleet.status.observed import ObservedNode, OperandPod
from gpufleet.status.operands import operand_causes

#: The control plane sets and removes taints with this prefix by the state of the node.
_BY_STATE = "node.kubernetes.io/"
_CORDON = "node.kubernetes.io/unschedulable"
#: The operator takes a node for a GPU node if it has one of these.
_DETECTED = tuple(f"feature.node.kubernetes.io/pci-{kind}10de.present" for kind in ("", "0302_", "0300_"))


@dataclass(frozen=True)
class NodeStatus:
    """One node: what was declared, what it shows, and why they differ (`causes` is empty when they agree).

    The first cause is the one to repair first. `notes` say what is no difference and yet keeps pods away.
    """

    node: str
    pool: str
    declared: dict[str, int]
    observed: dict[str, int]
    plugin_pod: str | None
    config: str | None
    config_declared: str | None
    causes: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return not self.causes


@dataclass(frozen=True)
class Here:
    """What is on the node, and what of the cluster bears upon it.

    `namespaces` are those of the stack's software. `operator`: the operator looks after the node; `refusal` is why it
    does not do its work.
    """

    pods: tuple[OperandPod, ...]
    holders: tuple[GpuPod, ...]
    namespaces: frozenset[str]
    operator: bool
    refusal: str | None
    config_maps: Mapping[tuple[str, str], frozenset[str]] | None


def missing_node(pool: PoolPlan, name: str) -> NodeStatus:
    """A declared node that the cluster does not have."""
    return NodeStatus(name, pool.name, pool.node.resources, {}, None, None, None, ("there is no node of this name",))


def node_status(pool: PoolPlan, node: ObservedNode, serving: Serving | None, here: Here) -> NodeStatus:
    """One node of a pool. Without `serving` somebody else looks after the node, plugin included."""
    plugins = [p for p in here.pods if p.operand == "plugin"]
    ours = [p for p in plugins if serving is not None and p.namespace == serving.namespace]
    pod = next((p for p in ours if p.ready), ours[0] if ours else None)
    counts = {k: v for k, v in node.allocatable.items() if v or k in pool.node.resources}
    causes = [] if node.ready else [_not_ready(node)]
    faults = gpu_faults(node)
    causes += [fault_words(condition) for condition in faults]
    marks, features = _missing_labels(pool, node)
    causes += marks
    causes += _missing_taints(pool, node)
    out: list[str] = []
    if serving is not None:
        if node.ready:
            operands = [p for p in here.pods if p.operand != "plugin" and p.namespace in here.namespaces]
            causes += _missing_key(node, pod, serving, here)
            layout = _layout(pool, node, counts)
            failing = operand_causes([*ours, *operands], pool.driver_owner)
            causes += [*layout.failed, *failing, *layout.at_work]
            causes += _no_plugin(node, serving, here) if pod is None else _old_configuration(pod, serving)
        out = _unhealthy(pool, node, pod)
        causes += out
        strangers = [p for p in plugins if p not in ours]
        causes += [f"a second device plugin registers here: pod {p.namespace}/{p.name}" for p in strangers]
        causes += _undeclared_taints(pool, node, pod, serving)
    causes += features
    if serving is not None:
        offer = pool.node.resources if pool.node.known else (node.capacity or node.allocatable)
        known = {*node.capacity, *node.allocatable}
        causes += [f"{e.words()}; they keep it until they end" for e in excesses(here.holders, offer, known)]
        causes += _offer(pool, counts, alone=not causes)
    config = pod.config_maps[0] if pod and pod.config_maps else None
    if pod and serving and serving.config_map in pod.config_maps:
        config = serving.config_map
    return NodeStatus(
        node.name,
        pool.name,
        pool.node.resources,
        counts,
        f"{pod.namespace}/{pod.name}" if pod else None,
        config,
        serving.config_map if serving else None,
        tuple(causes),
        _notes(node, [condition.type for condition in faults], bool(out)),
    )


def _not_ready(node: ObservedNode) -> str:
    said = next((c.words() for c in node.conditions if c.type == "Ready"), "")
    return "the node is not Ready" + (f": {said}" if said else "")


def _notes(node: ObservedNode, faults: list[str], unhealthy: bool) -> tuple[str, ...]:
    if not node.cordoned and not any(key == _CORDON for key, _, _ in node.taints):
        return ()
    if faults or unhealthy:
        what = f"condition {' and '.join(faults)}" if faults else "its unhealthy GPUs"
        return (f"cordoned: no new pods get onto it; leave it so until {what} is repaired",)
    return (f"cordoned: no new pods get onto it until `kubectl uncordon {node.name}`",)


def _offer(pool: PoolPlan, counts: dict[str, int], alone: bool) -> list[str]:
    if not pool.node.known or counts == pool.node.resources:
        return []
    plain = f"offers {', '.join(_differences(pool.node.resources, counts))}"
    if alone:
        plain += " although its plugin pod is ready with the right configuration: look at its log and at nvidia-smi"
        plain += " on the node (missing driver, fewer GPUs, or not registered yet)"
    return [plain]


def _differences(declared: dict[str, int], seen: dict[str, int]) -> Iterable[str]:
    for name in sorted({*declared, *seen}):
        if declared.get(name, 0) != seen.get(name, 0):
            yield f"{name}: {seen.get(name, 0)} instead of {declared.get(name, 0)}"


def _unhealthy(pool: PoolPlan, node: ObservedNode, pod: OperandPod | None) -> list[str]:
    """Devices that are registered and not offered, while their plugin runs: it has called them unhealthy."""
    if pod is None or not pod.ready or not node.ready:
        return []
    causes = []
    for name, total in sorted(node.capacity.items()):
        bad = total - node.allocatable.get(name, 0)
        if bad <= 0 or (pool.node.known and name not in pool.node.resources):
            continue
        text = f"{bad} of {total} devices of {name} are unhealthy: the device plugin has taken them out; look for Xid"
        text += f" in the node's kernel log and the log of pod {pod.name}, drain the node, then reset the GPU or reboot"
        if bad == total:
            text += " (without an Xid: the plugin has lost the kubelet, so delete its pod)"
        causes.append(text)
    return causes


class _Layout(NamedTuple):
    """What the MIG manager says about its work: that it has failed, or that it is still at it."""

    failed: list[str]
    at_work: list[str]


def _layout(pool: PoolPlan, node: ObservedNode, counts: dict[str, int]) -> _Layout:
    key = labels()["mig-config-state"].key
    state = mig_states().get(node.labels.get(key, ""))
    cut = {**pool.labels, **pool.node.labels}.get(MIG_CONFIG_LABEL)
    if state is None or state.done or (cut is None and counts == pool.node.resources):
        return _Layout([], [])
    layout = node.labels.get(MIG_CONFIG_LABEL, cut or "")
    if not state.failed:
        return _Layout([], [f"the MIG manager has not applied layout {layout} yet ({key}={state.state})"])
    text = f"the MIG manager could not apply layout {layout} ({key}={state.state}): look at the log of its pod; it"
    return _Layout([f"{text} tries again when {MIG_CONFIG_LABEL} changes, or when its pod starts anew"], [])


def _missing_labels(pool: PoolPlan, node: ObservedNode) -> tuple[list[str], list[str]]:
    """Labels that the stack sets, and those that feature discovery writes once driver and plugin work."""
    marks: list[str] = []
    features: list[str] = []
    for key, value in pool.node.labels.items():
        if node.labels.get(key) != value:
            text = f"label {key} is {node.labels.get(key, 'missing')}, declared {value}"
            (marks if key in pool.labels else features).append(text)
    return marks, features


def _missing_taints(pool: PoolPlan, node: ObservedNode) -> list[str]:
    have = {Taint(*t) for t in node.taints}
    return [f"taint {text} is missing" for text in pool.taints if parse_taint(text) not in have]


def _undeclared_taints(pool: PoolPlan, node: ObservedNode, pod: OperandPod | None, serving: Serving) -> list[str]:
    """Taints that pods written by the plan do not tolerate, beside those that `_no_plugin` names."""
    declared = {parse_taint(text) for text in pool.taints}
    return [
        f"taint {taint} is not declared: pods that follow the plan stay off the node; declare it in the pool, or remove"
        f" it (kubectl taint nodes {node.name} {taint.key}:{taint.effect}-)"
        for taint in _repelling(node)
        if taint not in declared and (pod is not None or _tolerated(taint, serving.tolerations))
    ]


def _repelling(node: ObservedNode) -> list[Taint]:
    """The node's taints that keep pods off, but for those that go by the state of the node."""
    taints = [Taint(*t) for t in node.taints]
    return [t for t in taints if t.effect in ("NoSchedule", "NoExecute") and not t.key.startswith(_BY_STATE)]


def _tolerated(taint: Taint, tolerations: Iterable[Mapping[str, str]]) -> bool:
    """As the scheduler decides it; an absent key with Exists stands everything."""
    return any(
        t.get("key") in (None, taint.key)
        and t.get("effect") in (None, "", taint.effect)
        and (t.get("operator") == "Exists" or t.get("value", "") == taint.value)
        for t in tolerations
    )


def _no_plugin(node: ObservedNode, serving: Serving, here: Here) -> list[str]:
    """Why no plugin pod is on the node."""
    repelling = [t for t in _repelling(node) if not _tolerated(t, serving.tolerations)]
    if repelling:
        return [f"no plugin pod: taint {t} is not tolerated (declare it in the pool)" for t in repelling]
    if here.operator:
        for key in (f"{DEPLOY_LABEL}operands", f"{DEPLOY_LABEL}device-plugin"):
            if node.labels.get(key, "true") != "true":
                return [f"no plugin pod: label {key}={node.labels[key]} keeps it off the node"]
        if here.refusal:
            return [f"no plugin pod: {here.refusal}"]
        if not any(node.labels.get(key) == "true" for key in (*_DETECTED, labels()["gpu-present"].key)):
            return [
                "no plugin pod: the operator takes the node for one without a GPU (node feature discovery has not set"
                f" {_DETECTED[0]}); look at the node-feature-discovery worker on it"
            ]
    cure = "`pulumi up --refresh` puts back what was deleted by hand"
    return [f"no plugin pod of namespace {serving.namespace} is on the node; {cure}"]


def _old_configuration(pod: OperandPod, serving: Serving) -> list[str]:
    if serving.config_map is None or serving.config_map in pod.config_maps:
        return []
    found = ", ".join(pod.config_maps) or "no ConfigMap"
    return [f"plugin pod {pod.name} still uses {found}, declared {serving.config_map}"]


def _missing_key(node: ObservedNode, pod: OperandPod | None, serving: Serving, here: Here) -> list[str]:
    """Whether the node's label names a key that the ConfigMap of its plugin pod lacks."""
    key = node.labels.get(OPERATOR_CONFIG_LABEL)
    if not here.operator or not key or pod is None or serving.config_map not in pod.config_maps:
        return []
    keys = (here.config_maps or {}).get((serving.namespace, serving.config_map or ""))
    if keys is None or key in keys:
        return []
    return [
        f"label {OPERATOR_CONFIG_LABEL} names {key}, which is no key of ConfigMap {serving.config_map} (keys:"
        f" {', '.join(sorted(keys)) or 'none'}): the config-manager ends with an error, and the plugin waits for it"
    ]
