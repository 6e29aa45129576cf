"""What the cluster autoscaler will do with a shared pool.

The autoscaler's template of an empty pool knows the size's physical GPUs under the name nvidia.com/gpu, and nothing
of replicas or other names (Azure/AKS#3427, #4216, #5161; kubernetes/autoscaler#8095). With a node up, it copies that
node and counts right.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.stackfile.cluster import Autoscale


@dataclass(frozen=True)
class Autoscaling:
    """Arithmetic of one pool; a pod here asks for one device.

    `nodes_started` is how many nodes the autoscaler may start from zero for as many pods as one node holds.
    """

    min_nodes: int
    max_nodes: int
    pods_per_node: int
    pods_at_min: int
    pods_at_max: int
    nodes_needed_for_one_nodeful: int
    nodes_started: int


def autoscaling(scale: Autoscale | None, gpus: int | None, per_node: int) -> Autoscaling | None:
    """Arithmetic of a pool whose nodes hold `per_node` pods on `gpus` GPUs; None for pools of fixed size, and where
    nothing is offered."""
    if scale is None or not gpus or not per_node:
        return None
    from_zero = min(-(-per_node // gpus), scale.max) if scale.min == 0 else 1
    return Autoscaling(
        min_nodes=scale.min,
        max_nodes=scale.max,
        pods_per_node=per_node,
        pods_at_min=scale.min * per_node,
        pods_at_max=scale.max * per_node,
        nodes_needed_for_one_nodeful=1,
        nodes_started=from_zero,
    )
