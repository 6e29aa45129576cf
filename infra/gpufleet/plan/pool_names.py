"""AKS pool names that carry a generation: a hash of what cannot be changed on a pool.

A changed immutable input gives another name, so the new pool is made before the old one goes. Without it, the provider
would delete first (explicit name), or AKS would refuse the change half-way through `pulumi up`.
"""

from __future__ import annotations

from typing import Any

from gpufleet.plan.names import GENERATION_LENGTH, content_hash
from gpufleet.stackfile.cluster import AksCluster
from gpufleet.stackfile.pools import AksPool


def immutable_inputs(pool: AksPool, cluster: AksCluster, method: str, mig: str | None) -> dict[str, Any]:
    """What AKS cannot change on an agent pool (AKS documentation: create-node-pools, spot-node-pool,
    aks-managed-gpu-nodes, gpu-multi-instance, reliability-availability-zones-configure, concepts-storage), as sent.

    The sharing method is one of them: under pods that run, whole GPUs must not turn into shared ones."""
    network = cluster.network
    subnet = None
    if network is not None:
        subnet = network.subnet_id or f"own:{network.subnet_cidr}"
    return {
        "vmSize": pool.vm_size,
        "driver": aks_driver(pool),
        "gpuInstanceProfile": mig,
        "method": method,
        "maxPods": pool.max_pods,
        "osDiskSizeGB": pool.os_disk_size_gb,
        "osDiskType": pool.os_disk_type,
        "spot": pool.spot,
        "spotMaxPrice": spot_max_price(pool),
        "subnet": subnet,
        "zones": sorted(pool.zones),
    }


def spot_max_price(pool: AksPool) -> float | None:
    """In US dollars per hour; -1, the price on demand, where a spot pool states none."""
    if not pool.spot:
        return None
    return -1.0 if pool.spot_max_price is None else pool.spot_max_price


def aks_driver(pool: AksPool) -> str:
    """`gpuProfile.driver` as it follows from the owner: AKS installs, or leaves the node without."""
    return "Install" if pool.driver == "aks" else "None"


def generation(pool: AksPool, cluster: AksCluster, method: str, mig: str | None) -> str:
    """Four characters, the same as long as nothing immutable changes."""
    return content_hash(immutable_inputs(pool, cluster, method, mig), GENERATION_LENGTH)


def agent_pool_name(pool: AksPool, cluster: AksCluster, method: str = "none", mig: str | None = None) -> str:
    """Name of the agent pool in Azure and of its Pulumi resource: at most 12 characters, `[a-z][a-z0-9]*`."""
    return pool.name + generation(pool, cluster, method, mig)
