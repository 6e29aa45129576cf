"""Workload pods that ask for GPUs, and questions about the cluster."""

from __future__ import annotations

from typing import Any

from kubernetes import client

from twin.engine import Twin


def gpu_pod(name: str, resource: str = "nvidia.com/gpu", pool: str | None = None, taints: tuple[str, ...] = ()) -> Any:
    """A pod that asks for one device; `taints` as key=value:Effect, each tolerated."""
    tolerations = []
    for taint in taints:
        body, _, effect = taint.rpartition(":")
        key, _, value = body.partition("=")
        tolerations.append({"key": key, "operator": "Equal" if value else "Exists", "value": value, "effect": effect})
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"gpufleet.dev/pool": pool} if pool else {},
            "tolerations": tolerations,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "example/train:1", "resources": {"limits": {resource: "1"}}}],
        },
    }


def start(twin: Twin, *pods: Any, namespace: str = "default") -> None:
    for pod in pods:
        twin.core.create_namespaced_pod(namespace, pod)


def remove_all(twin: Twin, namespace: str = "default") -> None:
    twin.core.delete_collection_namespaced_pod(namespace, grace_period_seconds=0)
    twin.wait(lambda: not twin.core.list_namespaced_pod(namespace).items, 30, f"no pod left in {namespace}")


def phases(twin: Twin, namespace: str = "default") -> dict[str, str]:
    return {p.metadata.name: p.status.phase for p in twin.core.list_namespaced_pod(namespace).items}


def running(twin: Twin, namespace: str = "default") -> set[str]:
    return {name for name, phase in phases(twin, namespace).items() if phase == "Running"}


def unschedulable(twin: Twin, name: str, namespace: str = "default") -> bool:
    """Whether the scheduler has said that the pod fits nowhere; not merely that it has not looked yet."""
    pod = twin.core.read_namespaced_pod(name, namespace)
    return any(c.type == "PodScheduled" and c.reason == "Unschedulable" for c in pod.status.conditions or ())


def plugin_pods(twin: Twin, namespace: str = "gpu-plugin") -> dict[str, Any]:
    """Plugin pods by node."""
    return {p.spec.node_name: p for p in twin.core.list_namespaced_pod(namespace).items}


def daemon_sets(twin: Twin, namespace: str) -> list[Any]:
    return list(client.AppsV1Api(twin.client()).list_namespaced_daemon_set(namespace).items)
