"""The agent pools of an AKS cluster as they will be deployed: every input of the resources, decided here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpufleet.catalog import GpuModel
from gpufleet.methods.mig import Mig
from gpufleet.parts.names import GENERATION_LENGTH, content_hash
from gpufleet.places.aks.model import AksCluster, AksPool, aks_pool
from gpufleet.places.base import PoolResource

if TYPE_CHECKING:
    from gpufleet.fleet.model import FleetPool


@dataclass(frozen=True, kw_only=True)
class AgentPoolPlan(PoolResource):
    """One agent pool, its inputs as AKS names them. `driver` is `gpuProfile.driver`; prices in US dollars per hour."""

    name: str
    vm_size: str
    driver: str
    gpu_instance_profile: str | None
    os_sku: str
    os_disk_size_gb: int | None
    os_disk_type: str | None
    count: int
    min_count: int | None
    max_count: int | None
    scale_down_mode: str
    spot: bool
    spot_max_price: float | None
    max_pods: int | None
    zones: tuple[str, ...]
    max_surge: str
    max_unavailable: str
    version: str | None
    tags: dict[str, str]

    def lines(self) -> list[tuple[str, str]]:
        cut = f", gpuInstanceProfile: {self.gpu_instance_profile}" if self.gpu_instance_profile else ""
        price = "the price on demand" if self.spot_max_price in (None, -1) else f"{self.spot_max_price:g} USD an hour"
        size = f"{self.os_disk_size_gb} GB" if self.os_disk_size_gb else None
        options = {
            "spot, up to": price if self.spot else None,
            "zones": " ".join(self.zones),
            "disk": " ".join(filter(None, (self.os_disk_type, size))),
            "pods per node at most": self.max_pods,
            "Kubernetes": self.version,
            "tags": " ".join(f"{name}={value}" for name, value in self.tags.items()),
        }
        stated = ", ".join(f"{word} {value}" for word, value in options.items() if value)
        upgrade = f"upgrades with surge {self.max_surge}, unavailable {self.max_unavailable}"
        return [
            ("in Azure", f"{self.name} (gpuProfile.driver: {self.driver}{cut}), {self.vm_size}, {self.os_sku}"),
            *([("", stated)] if stated else []),
            ("", f"{upgrade}; scale down: {self.scale_down_mode}"),
        ]

    def output(self) -> dict[str, Any]:
        return {"azureName": self.name}


def agent_pool_plan(pool: FleetPool, cluster: AksCluster) -> AgentPoolPlan:
    """All inputs of an agent pool."""
    spec = aks_pool(pool)
    scale, method = spec.autoscale, pool.profile.strategy if pool.profile else "none"
    profile = gpu_instance_profile(pool)
    surge, unavailable = spec.upgrade_settings
    return AgentPoolPlan(
        name=agent_pool_name(spec, cluster, method, profile),
        vm_size=spec.vm_size,
        driver=aks_driver(spec),
        gpu_instance_profile=profile,
        os_sku=spec.os_sku,
        os_disk_size_gb=spec.os_disk_size_gb,
        os_disk_type=os_disk_type(spec),
        count=scale.min if scale else (1 if spec.count is None else spec.count),
        min_count=scale.min if scale else None,
        max_count=scale.max if scale else None,
        scale_down_mode=spec.scale_down_mode,
        spot=spec.spot,
        spot_max_price=spot_max_price(spec),
        max_pods=spec.max_pods,
        zones=spec.zones,
        max_surge=surge,
        max_unavailable=unavailable,
        version=spec.version or cluster.version,
        tags=dict(spec.tags),
    )


def gpu_instance_profile(pool: FleetPool) -> str | None:
    """AKS's own MIG profile, where AKS is the one to cut the GPUs."""
    if pool.owner == "aks" and isinstance(pool.method, Mig):
        return aks_profile(pool.method, pool.hardware.model)
    return None


def aks_profile(mig: Mig, model: GpuModel | None) -> str | None:
    """`gpuInstanceProfile` of AKS that cuts the GPU as asked; AKS knows uniform layouts only."""
    if model is None or mig.profile is None:
        return None
    return next((name for name, profile in model.mig_aks.items() if profile == mig.profile), None)


# Names that carry a generation: a hash of what cannot be changed on a pool. A changed immutable input gives another
# name, so the new pool is made before the old one goes. Without it, the provider would delete first (explicit name), or
# AKS would refuse the change half-way through `pulumi up`.


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
        "osDiskType": os_disk_type(pool),
        "spot": pool.spot,
        "spotMaxPrice": spot_max_price(pool),
        "subnet": subnet,
        "zones": sorted(pool.zones),
    }


def os_disk_type(pool: AksPool) -> str | None:
    """The type of the OS disk as sent.

    Without one Azure takes an ephemeral disk where it can; such a disk cannot be kept when a node is deallocated.
    """
    return pool.os_disk_type or ("Managed" if pool.scale_down_mode == "Deallocate" else None)


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


# The count of a pool with an autoscaler. Azure refuses one outside of minCount and maxCount
# (kubernetes-sigs/cluster-api-provider-azure#5947), so the count of an earlier run does not go with raised bounds.


@dataclass(frozen=True)
class Counted:
    """A pool as Azure has it now; without an autoscaler it has no bounds."""

    count: int
    min_count: int | None
    max_count: int | None


def count_to_send(low: int, high: int, there: Counted | None) -> tuple[int, bool]:
    """(count, whether the engine keeps the one that it recorded) for a pool that scales from `low` to `high`.

    The autoscaler moves the count behind the program, so it is left alone, but for the run that changes the bounds.
    """
    if there is None or (there.min_count, there.max_count) == (low, high):
        return low, True
    return min(max(there.count, low), high), False
