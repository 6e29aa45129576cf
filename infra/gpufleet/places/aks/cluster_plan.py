"""The AKS cluster as it will be deployed, or as it is there: every input of its resource, decided here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpufleet.places.aks.access import Credentials, Login
from gpufleet.places.aks.model import AksCluster, AksPool, ExistingAks
from gpufleet.places.aks.upkeep import Maintenance, movers
from gpufleet.places.base import ClusterPlan

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


@dataclass(frozen=True)
class EntraPlan:
    """Sign-in with Entra; groups by object id."""

    admin_groups: tuple[str, ...]
    azure_rbac: bool
    tenant_id: str | None


@dataclass(frozen=True)
class AccessPlan:
    """The kubeconfig that the service is asked for. `login` is None where no kubelogin can be in it."""

    credentials: Credentials
    login: Login | None

    def words(self) -> str:
        """`kubeconfig of a user, kubelogin with azurecli`."""
        whose = "of the local administrator" if self.credentials == "admin" else "of a user"
        return f"kubeconfig {whose}" + (f", kubelogin with {self.login}" if self.login else "")


@dataclass(frozen=True, kw_only=True)
class AksClusterPlan(ClusterPlan):
    """An AKS cluster that the stack makes, with its resource group unless that exists.

    `image_drivers` are the pools whose driver comes with the node image, `order` says how a new version arrives.
    """

    location: str
    resource_group: str
    resource_group_existing: bool
    dns_prefix: str
    tier: str
    upgrade_channel: str
    node_os_upgrade_channel: str
    maintenance: Maintenance
    entra: EntraPlan | None
    disable_local_accounts: bool
    access: AccessPlan
    system_pool: SystemPoolPlan
    network: NetworkPlan | None
    tags: dict[str, str]
    protect: bool
    protection: str
    order: str
    image_drivers: tuple[str, ...]

    def title(self) -> str:
        return f"AKS cluster {self.name}"

    def as_dict(self) -> dict[str, Any]:
        windows = self.maintenance.model_dump(by_alias=True, exclude_none=True)
        return {**asdict(self), "maintenance": windows}

    def _movers(self) -> list[str]:
        return movers(self.upgrade_channel, self.node_os_upgrade_channel, self.maintenance, self.image_drivers)

    def _sign_in(self) -> str:
        local = "local accounts are disabled" if self.disable_local_accounts else "local accounts"
        if self.entra is None:
            return f"{local}, no Entra; {self.access.words()}"
        groups = ", ".join(self.entra.admin_groups) or "none"
        rbac = ", Azure RBAC" if self.entra.azure_rbac else ""
        return f"Entra, administrators {groups}{rbac}; {local}; {self.access.words()}"

    def lines(self) -> list[tuple[str, str]]:
        version = f"Kubernetes {self.version}" if self.version else "Azure's default version of Kubernetes"
        group = f"resource group {self.resource_group} ({'exists' if self.resource_group_existing else 'is made'})"
        tags = ", ".join(f"{name}={value}" for name, value in self.tags.items())
        return [
            ("in Azure", f"{self.location}, {version}, {group}, DNS prefix {self.dns_prefix}"),
            ("settings", f"tier {self.tier}, upgrade channel {self.upgrade_channel}, "
             f"node OS channel {self.node_os_upgrade_channel}"),
            *[("by itself" if i == 0 else "", line) for i, line in enumerate(self._movers())],
            ("upgrades", self.order),
            ("protection", self.protection),
            ("sign-in", self._sign_in()),
            ("system pool", self.system_pool.words()),
            ("network", self.network.words() if self.network else "made by AKS"),
            *([("tags", tags)] if tags else []),
        ]


@dataclass(frozen=True, kw_only=True)
class ExistingAksPlan(ClusterPlan):
    """An AKS cluster that is there; the stack makes agent pools in it."""

    resource_group: str
    subnet_id: str | None
    access: AccessPlan
    protect: bool
    protection: str
    order: str

    def title(self) -> str:
        return f"AKS cluster {self.name}, which exists"

    def lines(self) -> list[tuple[str, str]]:
        version = f", Kubernetes {self.version}" if self.version else ""
        return [
            ("in Azure", f"exists in resource group {self.resource_group}{version}; only agent pools are made"),
            ("upgrades", self.order),
            ("protection", self.protection),
            ("sign-in", self.access.words()),
            *([("network", f"subnet {self.subnet_id}")] if self.subnet_id else []),
        ]


def cluster_plan(cluster: AksCluster, pools: Sequence[AksPool]) -> AksClusterPlan | ExistingAksPlan:
    """All inputs of the cluster, or where it is."""
    return _there(cluster, cluster.existing, pools) if cluster.existing else _made(cluster, pools)


def _order(cluster: AksCluster, pools: Sequence[AksPool]) -> str:
    """In which order a new Kubernetes version arrives."""
    system = f"control plane and pool {cluster.system_pool.name} first"
    first = "whoever made the cluster upgrades it first" if cluster.existing else system
    follow = [pool.name for pool in pools if pool.version in (None, cluster.version)]
    stay = [f"{pool.name} on {pool.version}" for pool in pools if pool.name not in follow]
    kept = f"; {', '.join(stay)} as stated" if stay else ""
    if cluster.version is None and follow:
        return f"{first}; without `version` no pool follows by itself{kept}"
    return first + (f", then {', '.join(follow)}" if follow else "") + kept


def _there(cluster: AksCluster, found: ExistingAks, pools: Sequence[AksPool]) -> ExistingAksPlan:
    return ExistingAksPlan(
        kind="aks",
        name=found.name,
        version=cluster.version,
        resource_group=found.resource_group,
        subnet_id=cluster.network.subnet_id if cluster.network else None,
        access=AccessPlan(cluster.credentials, cluster.login if cluster.credentials == "user" else None),
        protect=cluster.protected,
        protection=cluster.protection(),
        order=_order(cluster, pools),
    )


def _made(cluster: AksCluster, pools: Sequence[AksPool]) -> AksClusterPlan:
    group, system, network = cluster.resource_group, cluster.system_pool, cluster.network
    entra = cluster.entra
    scale = system.autoscale
    return AksClusterPlan(
        kind="aks",
        name=cluster.name,
        version=cluster.version,
        location=cluster.location or "",
        resource_group=group.name if group else f"rg-{cluster.name}",
        resource_group_existing=bool(group and group.existing),
        dns_prefix=cluster.name.replace("_", "-").replace(".", "-")[:_PREFIX_LENGTH].rstrip("-"),
        tier=cluster.tier,
        upgrade_channel=cluster.upgrade_channel,
        node_os_upgrade_channel=cluster.os_channel,
        maintenance=cluster.maintenance,
        entra=EntraPlan(entra.admin_groups, entra.azure_rbac, entra.tenant_id) if entra else None,
        disable_local_accounts=cluster.disable_local_accounts,
        access=AccessPlan(cluster.credentials, cluster.login if entra and cluster.credentials == "user" else None),
        system_pool=SystemPoolPlan(
            system.name,
            system.vm_size,
            scale.min if scale else (system.count or 1),
            scale.min if scale else None,
            scale.max if scale else None,
        ),
        network=NetworkPlan(network.vnet_cidr, network.subnet_cidr, network.subnet_id) if network else None,
        tags=dict(cluster.tags),
        protect=cluster.protected,
        protection=cluster.protection(),
        order=_order(cluster, pools),
        image_drivers=tuple(pool.name for pool in pools if pool.driver == "aks"),
    )
