"""The AKS cluster and its agent pools as they will be deployed: every input of the resources, decided here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpufleet.catalog import GpuModel
from gpufleet.methods.mig import Mig
from gpufleet.parts.names import GENERATION_LENGTH, content_hash
from gpufleet.places.aks.model import AksCluster, AksPool, aks_pool
from gpufleet.places.base import ClusterPlan, PoolResource

if TYPE_CHECKING:
    from gpufleet.fleet.model import FleetPool

#: Longer prefixes are refused.
_PREFIX_LENGTH = 54


@dataclass(frozen=True)
class NetworkPlan:
    """Ranges of an own network, or the id of a subnet that exists."""

    vnet_cidr: str | None
    subnet_cidr: str | None
    subnet_id: str | None

    def words(self) -> str:
        """What the nodes attach to."""
        return f"subnet {self.subnet_id}" if self.subnet_id else f"{self.vnet_cidr} is made, subnet {self.subnet_cidr}"


@dataclass(frozen=True)
class SystemPoolPlan:
    """The one pool inside the cluster resource; the counts in nodes, `min_count` and `max_count` with an autoscaler."""

    name: str
    vm_size: str
    count: int
    min_count: int | None
    max_count: int | None

    def words(self) -> str:
        """`system: 1 to 3 x Standard_D4s_v5`."""
        count = f"{self.min_count} to {self.max_count}" if self.max_count else str(self.count)
        return f"{self.name}: {count} x {self.vm_size}"


@dataclass(frozen=True, kw_only=True)
class AksClusterPlan(ClusterPlan):
    """An AKS cluster that the stack makes, with its resource group unless that exists."""

    location: str
    resource_group: str
    resource_group_existing: bool
    dns_prefix: str
    tier: str
    upgrade_channel: str
    system_pool: SystemPoolPlan
    network: NetworkPlan | None
    tags: dict[str, str]
    protect: bool

    def title(self) -> str:
        return f"AKS cluster {self.name}"

    def lines(self) -> list[tuple[str, str]]:
        version = f"Kubernetes {self.version}" if self.version else "Azure's default version of Kubernetes"
        group = f"resource group {self.resource_group} ({'exists' if self.resource_group_existing else 'is made'})"
        protected = ", protected" if self.protect else ""
        tags = ", ".join(f"{name}={value}" for name, value in self.tags.items())
        return [
            ("in Azure", f"{self.location}, {version}, {group}, DNS prefix {self.dns_prefix}"),
            ("settings", f"tier {self.tier}, upgrade channel {self.upgrade_channel}{protected}"),
            ("system pool", self.system_pool.words()),
            ("network", self.network.words() if self.network else "made by AKS"),
            *([("tags", tags)] if tags else []),
        ]


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


def cluster_plan(cluster: AksCluster) -> AksClusterPlan:
    """All inputs of the cluster."""
    group, system, network = cluster.resource_group, cluster.system_pool, cluster.network
    scale = system.autoscale
    return AksClusterPlan(
        kind="aks",
        name=cluster.name,
        version=cluster.version,
        location=cluster.location,
        resource_group=group.name if group else f"rg-{cluster.name}",
        resource_group_existing=bool(group and group.existing),
        dns_prefix=cluster.name.replace("_", "-").replace(".", "-")[:_PREFIX_LENGTH].rstrip("-"),
        tier=cluster.tier,
        upgrade_channel=cluster.upgrade_channel,
        system_pool=SystemPoolPlan(
            system.name,
            system.vm_size,
            scale.min if scale else (system.count or 1),
            scale.min if scale else None,
            scale.max if scale else None,
        ),
        network=NetworkPlan(network.vnet_cidr, network.subnet_cidr, network.subnet_id) if network else None,
        tags=dict(cluster.tags),
        protect=cluster.protect,
    )


def agent_pool_plan(pool: FleetPool, cluster: AksCluster) -> AgentPoolPlan:
    """All inputs of an agent pool."""
    spec = aks_pool(pool)
    scale, method = spec.autoscale, pool.profile.strategy if pool.profile else "none"
    profile = gpu_instance_profile(pool)
    return AgentPoolPlan(
        name=agent_pool_name(spec, cluster, method, profile),
        vm_size=spec.vm_size,
        driver=aks_driver(spec),
        gpu_instance_profile=profile,
        os_sku=spec.os_sku,
        os_disk_size_gb=spec.os_disk_size_gb,
        os_disk_type=spec.os_disk_type,
        count=scale.min if scale else (1 if spec.count is None else spec.count),
        min_count=scale.min if scale else None,
        max_count=scale.max if scale else None,
        scale_down_mode=spec.scale_down_mode,
        spot=spec.spot,
        spot_max_price=spot_max_price(spec),
        max_pods=spec.max_pods,
        zones=spec.zones,
        max_surge=spec.max_surge,
        max_unavailable=spec.max_unavailable,
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
