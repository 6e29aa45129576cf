"""Declared against observed, node by node, with the cause where they differ. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpufleet.parts.artifact import Serving
from gpufleet.parts.taints import Taint, parse_taint
from gpufleet.plan.model import Plan, PoolPlan
from gpufleet.status.observe import Observed, ObservedNode, PluginPod

#: The control plane sets and removes taints with this prefix by the state of the node.
_BY_STATE = "node.kubernetes.io/"
_CORDON = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True)
class NodeStatus:
    """One node: what was declared, what it shows, and why they differ (`causes` is empty when they agree).

    `notes` say what is no difference and yet keeps pods away.
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
class Status:
    """The whole stack; `causes` are about pools as a whole: nodes that are missing, configurations that are gone."""

    stack: str
    nodes: tuple[NodeStatus, ...]
    causes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not self.causes and all(n.agrees for n in self.nodes)

    def as_dict(self) -> dict[str, Any]:
        """JSON-like form with the verdicts."""
        rows = [{**asdict(n), "agrees": n.agrees} for n in self.nodes]
        return {"stack": self.stack, "agrees": self.agrees, "causes": list(self.causes), "nodes": rows}


def compare(plan: Plan, seen: Observed) -> Status:
    """Every node that a pool claims, and every pool that lacks some."""
    rows: list[NodeStatus] = []
    causes: list[str] = []
    pods: dict[str, list[PluginPod]] = {}
    for pod in seen.pods:
        pods.setdefault(pod.node, []).append(pod)
    for pool in plan.pools:
        nodes = _nodes_of(pool, seen)
        for name in pool.nodes:
            if name not in seen.nodes:
                missing = NodeStatus(
                    name, pool.name, pool.node.resources, {}, None, None, None, ("there is no node of this name",)
                )
                rows.append(missing)
        if not pool.nodes:
            causes += _count_causes(pool, len(nodes))
        serving = _serving(plan, pool)
        rows += [_node(pool, node, pods.get(node.name, []), serving) for node in nodes]
    causes += _lost_configurations(rows, seen)
    return Status(plan.stack, tuple(rows), tuple(causes))


def _lost_configurations(rows: list[NodeStatus], seen: Observed) -> list[str]:
    """ConfigMaps that running plugin pods have read and that are gone: nothing shows until a pod starts anew."""
    if seen.config_maps is None:
        return []
    used = {
        (row.plugin_pod.partition("/")[0], row.config_declared)
        for row in rows
        if row.plugin_pod is not None and row.config_declared is not None and row.config == row.config_declared
    }
    return [
        f"ConfigMap {namespace}/{name} is gone: plugin pods go on with what they have read, and one that starts anew"
        " waits for it; `pulumi up --refresh` puts it back"
        for namespace, name in sorted(used - seen.config_maps)
    ]


def _nodes_of(pool: PoolPlan, seen: Observed) -> list[ObservedNode]:
    if pool.nodes:
        return [seen.nodes[n] for n in pool.nodes if n in seen.nodes]
    wanted = pool.selector.items()
    return sorted(
        (n for n in seen.nodes.values() if all(n.labels.get(k) == v for k, v in wanted)), key=lambda n: n.name
    )


def _count_causes(pool: PoolPlan, have: int) -> list[str]:
    if pool.node_count is None:
        return [f"pool {pool.name}: no node matches its selector"] if have == 0 else []
    low, high = pool.node_count
    if have < low:
        return [f"pool {pool.name}: {have} of at least {low} nodes are there"]
    if have > high:
        return [f"pool {pool.name}: {have} nodes are there, at most {high} were declared"]
    return []


def _serving(plan: Plan, pool: PoolPlan) -> Serving | None:
    """What the plan says about the plugin pods of one pool, by the artifact that brings them."""
    if pool.profile is None:
        return None
    found = (artifact.serves(pool.profile) for artifact in plan.software)
    return next((serving for serving in found if serving is not None), None)


def _node(pool: PoolPlan, node: ObservedNode, here: list[PluginPod], serving: Serving | None) -> NodeStatus:
    ours = [p for p in here if serving is not None and p.namespace == serving.namespace]
    # Without a driver of this stack's choosing somebody else looks after the node, plugin included.
    strangers = [p for p in here if p not in ours] if serving is not None else []
    counts = {k: v for k, v in node.allocatable.items() if v or k in pool.node.resources}
    pod = next((p for p in ours if p.ready), ours[0] if ours else None)
    causes: list[str] = []
    if not node.ready:
        causes.append("the node is not Ready")
    causes += _missing_labels(pool, node)
    causes += _missing_taints(pool, node)
    for other in strangers:
        causes.append(f"a second device plugin registers here: pod {other.namespace}/{other.name}")
    if serving is not None:
        causes += _undeclared_taints(pool, node, pod, serving)
        causes += _pod_causes(node, pod, serving)
    if serving is not None and pool.node.known and counts != pool.node.resources:
        differences = ", ".join(_differences(pool.node.resources, counts))
        plain = f"offers {differences}"
        if not causes:
            plain += " although its plugin pod is ready with the right configuration: look at its log and at nvidia-smi"
            plain += " on the node (missing driver, fewer GPUs, or not registered yet)"
        causes.insert(0, plain)
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
        _notes(node),
    )


def _notes(node: ObservedNode) -> tuple[str, ...]:
    if not any(key == _CORDON for key, _, _ in node.taints):
        return ()
    return (f"cordoned: no new pods get onto it until `kubectl uncordon {node.name}`",)


def _differences(declared: dict[str, int], seen: dict[str, int]) -> Iterable[str]:
    for name in sorted({*declared, *seen}):
        if declared.get(name, 0) != seen.get(name, 0):
            yield f"{name}: {seen.get(name, 0)} instead of {declared.get(name, 0)}"


def _missing_labels(pool: PoolPlan, node: ObservedNode) -> list[str]:
    causes = []
    for key, value in pool.node.labels.items():
        if node.labels.get(key) != value:
            causes.append(f"label {key} is {node.labels.get(key, 'missing')}, declared {value}")
    return causes


def _missing_taints(pool: PoolPlan, node: ObservedNode) -> list[str]:
    have = {Taint(*t) for t in node.taints}
    return [f"taint {text} is missing" for text in pool.taints if parse_taint(text) not in have]


def _undeclared_taints(pool: PoolPlan, node: ObservedNode, pod: PluginPod | None, serving: Serving) -> list[str]:
    """Taints that pods written by the plan do not tolerate, beside those that `_pod_causes` names."""
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


def _pod_causes(node: ObservedNode, pod: PluginPod | None, serving: Serving) -> list[str]:
    if pod is None:
        repelling = [t for t in _repelling(node) if not _tolerated(t, serving.tolerations)]
        if repelling:
            return [f"no plugin pod: taint {t} is not tolerated (declare it in the pool)" for t in repelling]
        cure = "`pulumi up --refresh` puts back what was deleted by hand"
        return [f"no plugin pod of namespace {serving.namespace} is on the node; {cure}"]
    causes = []
    if not pod.ready:
        causes.append(f"plugin pod {pod.name} is not ready" + (f": {pod.trouble}" if pod.trouble else ""))
    if serving.config_map is not None and serving.config_map not in pod.config_maps:
        found = ", ".join(pod.config_maps) or "no ConfigMap"
        causes.append(f"plugin pod {pod.name} still uses {found}, declared {serving.config_map}")
    return causes
