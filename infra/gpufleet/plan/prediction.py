"""What each node of a pool will show in Kubernetes once the plugin has read its configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from gpufleet.device_plugin import NodeLayout, predict
from gpufleet.plan.facts import Facts
from gpufleet.plan.mig import layout
from gpufleet.plan.names import POOL_LABEL
from gpufleet.plan.sharing import Profile, Spec, device_memory_gib
from gpufleet.stackfile.pools import AksPool, Pool
from gpufleet.stackfile.sharing import Hami, Mig


@dataclass(frozen=True)
class NodePrediction:
    """One node: resource name -> count, and labels.

    `memory_per_pod_gib` is an equal share of one GPU's memory in GiB: what a pod may count on if all behave; under
    time-slicing nothing enforces it. `known` is False where the catalogue does not know the hardware.
    """

    resources: dict[str, int]
    labels: dict[str, str] = field(default_factory=dict)
    memory_per_pod_gib: float | None = None
    known: bool = True


@lru_cache(maxsize=4096)
def _answer(
    config: str, gpus: int, product: str, mig: tuple[str, ...], env: tuple[tuple[str, str], ...]
) -> tuple[dict[str, int], dict[str, str]]:
    layout = dict.fromkeys(range(gpus), mig) if mig else {}
    answer = predict(config, NodeLayout(gpus=gpus, product=product, mig=layout), env=dict(env))
    return dict(answer.capacity or {}), dict(answer.labels or {})


def predict_node(
    pool: Pool, facts: Facts, spec: Spec, profile: Profile | None, mig_env: str | None, feature_labels: bool
) -> NodePrediction:
    """The device plugin's own semantics, applied to the text that will be deployed.

    `mig_env` is the MIG strategy that the operator gives the plugin as an environment variable (it beats the file).
    `feature_labels`: whether feature discovery (GFD) runs on the node and writes nvidia.com/gpu.* labels.
    """
    ours = pool_labels(pool)
    if profile is None:
        return NodePrediction({}, ours)
    instances = layout(spec, facts.model) if isinstance(spec, Mig) else {}
    if facts.gpus is None or instances is None:
        return NodePrediction({}, ours, known=False)
    product = facts.model.product if facts.model else None
    mig = tuple(p for p, n in instances.items() for _ in range(n))
    env = (("MIG_STRATEGY", mig_env),) if mig_env else ()
    resources, labels = _answer(profile.config, facts.gpus, product or "", mig, env)
    if isinstance(spec, Hami):  # its plugin registers the same name, so many times per GPU
        resources = {profile.resource: facts.gpus * spec.split_count}
    shown = dict(ours)
    if feature_labels:
        shown |= {f"nvidia.com/{k}": v for k, v in labels.items() if product or not k.endswith("product")}
        shown["nvidia.com/gpu.present"] = "true"
        if facts.model and facts.model.memory_mib and not mig:
            shown["nvidia.com/gpu.memory"] = str(facts.model.memory_mib)
    memory = device_memory_gib(spec, facts)
    each = round(memory / profile.pods_per_device, 2) if memory else None
    return NodePrediction(dict(resources), dict(sorted(shown.items())), each)


def pool_labels(pool: Pool) -> dict[str, str]:
    """Labels that every node of the pool carries, whoever runs there."""
    if not isinstance(pool, AksPool) and pool.node_selector:
        return dict(pool.node_selector)
    labels = {**pool.labels, POOL_LABEL: pool.name}
    if isinstance(pool, AksPool) and pool.spot:
        labels["kubernetes.azure.com/scalesetpriority"] = "spot"
    return labels
