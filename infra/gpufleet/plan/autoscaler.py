"""What the cluster autoscaler will do with a shared pool.

The autoscaler's template of an empty pool knows the size's physical GPUs under the name nvidia.com/gpu, and nothing
of replicas or other names (Azure/AKS#3427, #4216, #5161; kubernetes/autoscaler#8095). With a node up, it copies that
node and counts right.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.sharing import Profile
from gpufleet.stackfile.pools import AksPool


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


def autoscaling(pool: AksPool, gpus: int, per_node: int) -> Autoscaling | None:
    """Arithmetic of a pool whose nodes hold `per_node` pods on `gpus` GPUs; None for pools of fixed size."""
    if pool.autoscale is None:
        return None
    from_zero = min(-(-per_node // gpus), pool.autoscale.max) if pool.autoscale.min == 0 else 1
    return Autoscaling(
        min_nodes=pool.autoscale.min,
        max_nodes=pool.autoscale.max,
        pods_per_node=per_node,
        pods_at_min=pool.autoscale.min * per_node,
        pods_at_max=pool.autoscale.max * per_node,
        nodes_needed_for_one_nodeful=1,
        nodes_started=from_zero,
    )


def check_autoscaling(pool: AksPool, gpus: int | None, profile: Profile, per_node: int, path: str) -> list[Finding]:
    """Sharing that the autoscaler cannot see."""
    scale = pool.autoscale
    if scale is None:
        return []
    found: list[Finding] = []
    if gpus and per_node > gpus:
        plan = autoscaling(pool, gpus, per_node)
        assert plan is not None
        if scale.min == 0 and profile.mig_strategy == "mixed":
            pass  # check_mig says it
        elif scale.min == 0 and profile.resource != "nvidia.com/gpu":
            found.append(finding("GF421", f"{path}.autoscale.min", value=0, resource=profile.resource))
        elif scale.min == 0:
            found.append(
                finding(
                    "GF420",
                    f"{path}.autoscale.min",
                    value=0,
                    pods=str(plan.pods_per_node),
                    nodes=str(plan.nodes_started),
                    max=str(scale.max),
                )
            )
        else:
            found.append(
                finding("GF422", f"{path}.autoscale", pods=str(plan.pods_per_node), most=str(plan.pods_at_max))
            )
    if scale.min == 0:
        found.append(finding("GF423", f"{path}.autoscale.min", value=0))
    return found
