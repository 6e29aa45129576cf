"""Pods that hold more than their node will offer: the kubelet lets them run, and nothing else says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import finding
from gpufleet.parts.device_requests import GpuPod, excesses, gpu_pod
from gpufleet.places.credentials import LoginError
from gpufleet.places.look import Cluster

if TYPE_CHECKING:
    from gpufleet.plan.model import Plan, PoolPlan

#: Nodes that one finding names.
_NODES = 5


def held_too_much(plan: Plan, nodes: Iterable[Mapping[str, Any]], pods: Iterable[GpuPod]) -> list[Finding]:
    """One warning for each pool some of whose nodes will offer less than their pods hold. `nodes` as the API's JSON."""
    nodes = list(nodes)
    by_node: dict[str, list[GpuPod]] = {}
    for pod in pods:
        by_node.setdefault(pod.node, []).append(pod)
    found = []
    for i, pool in enumerate(plan.pools):
        if pool.profile is None or not pool.node.known:
            continue
        words = []
        for node in nodes:
            name = node["metadata"]["name"]
            if name in by_node and _belongs(pool, node):
                shown = (node.get("status") or {}).get("capacity") or {}
                words += [f"{name}: {e.words()}" for e in excesses(by_node[name], pool.node.resources, shown)]
        if words:
            rest = len(words) - _NODES
            said = "; ".join(words[:_NODES]) + (f"; and {rest} more" if rest > 0 else "")
            found.append(finding("GF490", f"pools[{i}].sharing", value=pool.profile, pool=pool.name, pods=said))
    return found


def _belongs(pool: PoolPlan, node: Mapping[str, Any]) -> bool:
    if pool.nodes:
        return node["metadata"]["name"] in pool.nodes
    labels = node["metadata"].get("labels") or {}
    return all(labels.get(k) == v for k, v in pool.selector.items())


def _slim(node: Mapping[str, Any]) -> dict[str, Any]:
    meta, status = node["metadata"], node.get("status") or {}
    return {
        "metadata": {"name": meta["name"], "labels": meta.get("labels")},
        "status": {"capacity": status.get("capacity")},
    }


def check_held(plan: Plan, cluster: Cluster) -> list[Finding]:
    """Looks at the pods of a cluster.

    Raises:
        ApiError: the API server does not answer, or refuses.
    """
    nodes = [_slim(node) for node in cluster.each("/api/v1/nodes")]
    pods = (gpu_pod(pod) for pod in cluster.each("/api/v1/pods"))
    return held_too_much(plan, nodes, [pod for pod in pods if pod is not None])


def login_finding(error: LoginError) -> Finding:
    """The login program of the kubeconfig gives no credentials, as a finding."""
    return finding(error.code, "cluster.kubeconfig", value=error.program, why=error.why, do=error.do)
