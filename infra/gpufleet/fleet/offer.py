"""What each node of a pool will show in Kubernetes once the plugin has read its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from gpufleet.device_plugin import NodeLayout, predict
from gpufleet.fleet.profile import Profile
from gpufleet.methods.base import Method
from gpufleet.parts.hardware import Hardware


@dataclass(frozen=True)
class NodePrediction:
    """One node: resource name -> count, and labels.

    `memory_gib_by_resource` is what a pod that asks for one of a resource may count on, in GiB, if all behave: an equal
    share of the device, under HAMi what it asks for. Under time-slicing nothing enforces it. `memory_per_pod_gib` is
    the smallest of them. `known` is False where the catalogue does not know the hardware.
    """

    resources: dict[str, int]
    labels: dict[str, str] = field(default_factory=dict)
    memory_per_pod_gib: float | None = None
    known: bool = True
    memory_gib_by_resource: dict[str, float] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def _answer(
    config: str, gpus: int, product: str, mig: tuple[str, ...], env: tuple[tuple[str, str], ...]
) -> tuple[dict[str, int], dict[str, str]]:
    layout = dict.fromkeys(range(gpus), mig) if mig else {}
    answer = predict(config, NodeLayout(gpus=gpus, product=product, mig=layout), env=dict(env))
    return dict(answer.capacity or {}), dict(answer.labels or {})


def predict_node(
    hardware: Hardware,
    method: Method,
    profile: Profile | None,
    layout: Mapping[str, int] | None,
    mig_env: str | None,
    feature_labels: bool,
) -> NodePrediction:
    """The device plugin's own semantics, applied to the text that will be deployed.

    `mig_env` is the MIG strategy that the operator gives the plugin as an environment variable (it beats the file).
    `feature_labels`: whether feature discovery (GFD) runs on the node and writes nvidia.com/gpu.* labels.
    """
    if profile is None:
        return NodePrediction({})
    if hardware.gpus is None or layout is None:
        return NodePrediction({}, known=False)
    product = hardware.model.product if hardware.model else None
    mig = tuple(p for p, n in layout.items() for _ in range(n))
    env = (("MIG_STRATEGY", mig_env),) if mig_env else ()
    resources, labels = _answer(profile.config, hardware.gpus, product or "", mig, env)
    shown: dict[str, str] = {}
    if feature_labels:
        shown = {f"nvidia.com/{k}": v for k, v in labels.items() if product or not k.endswith("product")}
        shown["nvidia.com/gpu.present"] = "true"
        if hardware.model and hardware.model.memory_mib and not mig:
            shown["nvidia.com/gpu.memory"] = str(hardware.model.memory_mib)
    memory = method.memory_for_each(hardware)
    offered = method.offers(hardware.gpus, dict(resources))
    return NodePrediction(offered, shown, min(memory.values(), default=None), memory_gib_by_resource=memory)
