"""Declared against observed, node by node, with the cause where they differ. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gpufleet.parts.artifact import Serving
from gpufleet.parts.device_requests import GpuPod
from gpufleet.plan.model import Plan, PoolPlan
from gpufleet.status.node import Here, NodeStatus, missing_node, node_status
from gpufleet.status.observed import Observed, ObservedNode, OperandPod, Policy


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
    pods: dict[str, list[OperandPod]] = {}
    for pod in seen.pods:
        pods.setdefault(pod.node, []).append(pod)
    holders: dict[str, list[GpuPod]] = {}
    for holder in seen.holders:
        holders.setdefault(holder.node, []).append(holder)
    namespaces = frozenset(artifact.namespace for artifact in plan.software)
    refusal = _refusal(plan, seen)
    for pool in plan.pools:
        nodes = _nodes_of(pool, seen)
        rows += [missing_node(pool, name) for name in pool.nodes if name not in seen.nodes]
        if not pool.nodes:
            causes += _count_causes(pool, len(nodes))
        serving = _serving(plan, pool)
        operator = plan.operator is not None and serving is not None
        for node in nodes:
            here = Here(
                pods=tuple(pods.get(node.name, ())),
                holders=tuple(holders.get(node.name, ())),
                namespaces=namespaces,
                operator=operator,
                refusal=refusal if operator else None,
                config_maps=seen.config_maps,
            )
            rows.append(node_status(pool, node, serving, here))
    if refusal is not None:
        causes.append(refusal)
    causes += _lost_configurations(rows, seen)
    return Status(plan.stack, tuple(rows), tuple(causes))


def _refusal(plan: Plan, seen: Observed) -> str | None:
    """Why the operator does not do what its ClusterPolicy says; None where it does, or merely waits for its pods."""
    if plan.operator is None:
        return None
    return next((_policy_words(p) for p in seen.policies or () if _refuses(p)), None)


def _refuses(policy: Policy) -> bool:
    """OperandNotReady is left out: the pods say themselves which of them is not ready."""
    return policy.state == "notReady" and policy.reason not in ("", "OperandNotReady")


def _policy_words(policy: Policy) -> str:
    why = ": ".join(part for part in (policy.reason, policy.message) if part)
    return f"ClusterPolicy {policy.name} is notReady: {why}"


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
        for namespace, name in sorted(used - seen.config_maps.keys())
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
