"""What each node of a pool will show in Kubernetes once the plugin has read its configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from infra.config.pools import AksPool, Pool
from infra.plan.device_plugin import NodeLayout, predict
from infra.plan.facts import Facts
from infra.plan.names import POOL_LABEL
from infra.plan.sharing import Profile


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
def _answer(config: str, gpus: int, product: str) -> tuple[dict[str, int], dict[str, str]]:
    answer = predict(config, NodeLayout(gpus=gpus, product=product))
    return dict(answer.capacity or {}), dict(answer.labels or {})


def predict_node(pool: Pool, facts: Facts, profile: Profile | None, feature_labels: bool) -> NodePrediction:
    """The device plugin's own semantics, applied to the text that will be deployed.

    `feature_labels`: whether feature discovery (GFD) runs on the node and writes nvidia.com/gpu.* labels.
    """
    ours = pool_labels(pool)
    if profile is None:
        return NodePrediction({}, ours)
    if facts.gpus is None:
        return NodePrediction({}, ours, known=False)
    product = facts.model.product if facts.model else None
    resources, labels = _answer(profile.config, facts.gpus, product or "")
    shown = dict(ours)
    if feature_labels:
        shown |= {f"nvidia.com/{k}": v for k, v in labels.items() if product or k != "gpu.product"}
        shown["nvidia.com/gpu.present"] = "true"
        if facts.model and facts.model.memory_mib:
            shown["nvidia.com/gpu.memory"] = str(facts.model.memory_mib)
    memory = round(facts.memory_gib / profile.replicas, 2) if facts.memory_gib else None
    return NodePrediction(dict(resources), dict(sorted(shown.items())), memory)


def pool_labels(pool: Pool) -> dict[str, str]:
    """Labels that every node of the pool carries, whoever runs there."""
    if not isinstance(pool, AksPool) and pool.node_selector:
        return dict(pool.node_selector)
    labels = {**pool.labels, POOL_LABEL: pool.name}
    if isinstance(pool, AksPool) and pool.spot:
        labels["kubernetes.azure.com/scalesetpriority"] = "spot"
    return labels
