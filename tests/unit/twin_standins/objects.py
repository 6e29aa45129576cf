"""Nodes, pods and ConfigMaps as the API gives them, small enough to read in a test."""

from __future__ import annotations

from typing import Any

IMAGE = "mirror.example/nvidia/k8s-device-plugin:v0.20.0"
GPU = "nvidia.com/gpu"


def sharing(replicas: int, rename: bool = False) -> str:
    return (f"version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: {str(rename).lower()}\n    resources:\n"
            f"    - {{name: nvidia.com/gpu, replicas: {replicas}}}\n")


def node(gpus: int = 1, driver: str | None = "580.126.09", labels: dict[str, str] | None = None, model: str = "T4",
         layout: str | None = None) -> dict[str, Any]:
    notes = {"twin.gpufleet.dev/gpus": str(gpus), "twin.gpufleet.dev/gpu-model": model}
    if driver is not None:
        notes["twin.gpufleet.dev/driver"] = driver
    if layout is not None:
        notes["twin.gpufleet.dev/mig"] = layout
    return {"metadata": {"name": "n1", "labels": labels or {}, "annotations": notes},
            "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}}


def pod(*containers: dict[str, Any], volumes: list[dict[str, Any]] | None = None, name: str = "p",
        started: str = "2026-11-30T10:00:00Z", inits: list[str] | None = None) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "gpu", "uid": name, "creationTimestamp": started},
        "spec": {"nodeName": "n1", "containers": list(containers), "volumes": volumes or [],
                 "initContainers": [{"name": one} for one in inits or []]},
        "status": {"phase": "Running", "startTime": started, "conditions": [{"type": "Ready", "status": "True"}],
                   "containerStatuses": [{"name": one["name"], "ready": True, "restartCount": 0,
                                          "state": {"running": {"startedAt": started}}} for one in containers]}}


def plugin(config: bool = True, **more: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"name": "plugin", "image": IMAGE}
    if config:
        out |= {"env": [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}],
                "volumeMounts": [{"name": "config", "mountPath": "/config"}]}
    return {**out, **more}


def mounted(name: str = "sharing", **more: Any) -> list[dict[str, Any]]:
    return [{"name": "config", "configMap": {"name": name, **more}}]


def configmaps(text: str, name: str = "sharing", key: str = "config.yaml") -> dict[tuple[str, str], dict[str, Any]]:
    return {("gpu", name): {"data": {key: text}}}
