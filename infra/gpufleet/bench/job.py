"""A Kubernetes Job that runs the bench on a GPU node. Pure functions.

The bench travels as one archive in a ConfigMap: it needs Python 3.11 and nothing else, so any such image will do
(one with PyTorch measures the real models too). The Job asks for one GPU; on a node whose GPU is shared, other
pods on that GPU disturb the numbers.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[1]
_PARTS = ("bench", "measure")
_START = "import sys\nfrom gpufleet.bench.__main__ import main\nsys.exit(main())\n"
_DATE = (1980, 1, 1, 0, 0, 0)  # fixed: the same sources give the same bytes


@dataclass(frozen=True)
class JobOptions:
    image: str = "python:3.12-slim"
    namespace: str = "default"
    name: str = "gpufleet-bench"
    resource: str = "nvidia.com/gpu"
    runtime_class: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()  # as in a pod
    deadline_seconds: int = 3600


def archive() -> bytes:
    """The bench and what it counts with as a zip that ``python3`` runs; deterministic."""
    buffer = io.BytesIO()
    files = {f"gpufleet/{part}/{path.name}": path.read_bytes() for part in _PARTS for path in _sources(part)}
    files |= {"gpufleet/__init__.py": b"", "__main__.py": _START.encode()}
    with zipfile.ZipFile(buffer, "w") as bundle:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            bundle.writestr(info, files[name])
    return buffer.getvalue()


def _sources(part: str) -> list[Path]:
    return sorted((_PACKAGE / part).glob("*.py"))


def manifests(options: JobOptions, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """ConfigMap and Job. The ConfigMap's name carries a hash of its content."""
    content = archive()
    config = f"{options.name}-{hashlib.sha256(content).hexdigest()[:8]}"

    def labels() -> dict[str, str]:  # a mapping of its own each time, so that YAML writes no anchors
        return {"app.kubernetes.io/name": options.name, "app.kubernetes.io/managed-by": "gpufleet"}

    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": config, "namespace": options.namespace, "labels": labels()},
            "immutable": True,
            "binaryData": {"bench.pyz": base64.b64encode(content).decode()},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": options.name, "namespace": options.namespace, "labels": labels()},
            "spec": {
                "backoffLimit": 0,
                "activeDeadlineSeconds": options.deadline_seconds,
                "template": {"metadata": {"labels": labels()}, "spec": _pod(options, config, arguments)},
            },
        },
    ]


def _pod(options: JobOptions, config: str, arguments: Sequence[str]) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "bench",
                "image": options.image,
                "command": ["python3", "-u", "/bench/bench.pyz", *arguments],
                # compute: libcuda and MPS; utility: nvidia-smi
                "env": [
                    {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"},
                    {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
                ],
                # the smallest GPU nodes have 4 processors, not all of them for pods
                "resources": {"limits": {options.resource: "1"}, "requests": {"cpu": "2", "memory": "8Gi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [
                    {"name": "bench", "mountPath": "/bench", "readOnly": True},
                    {"name": "tmp", "mountPath": "/tmp"},
                    {"name": "shm", "mountPath": "/dev/shm"},
                ],
            }
        ],
        "volumes": [
            {"name": "bench", "configMap": {"name": config}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        ],
    }
    if options.runtime_class:
        pod["runtimeClassName"] = options.runtime_class
    if options.node_selector:
        pod["nodeSelector"] = dict(options.node_selector)
    if options.tolerations:
        pod["tolerations"] = [dict(one) for one in options.tolerations]
    return pod


def toleration(text: str) -> dict[str, str]:
    """The toleration that "key" or "key=value" stands for, of any effect."""
    key, _, value = text.partition("=")
    return {"key": key, "operator": "Equal", "value": value} if value else {"key": key, "operator": "Exists"}
