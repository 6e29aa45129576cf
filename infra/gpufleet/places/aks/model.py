"""An AKS cluster that the stack makes, and its GPU pools, as the stack file states them."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from gpufleet.stackfile.base import AsTuple, Model, Tags, matches, refuse
from gpufleet.stackfile.cluster import Autoscale, Cluster
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.pool import DriverOwner, Pool

if TYPE_CHECKING:
    from gpufleet.fleet.model import Fleet, FleetPool

#: Azure's resource name rules: managedClusters, resourceGroups.
ClusterName = Annotated[
    str,
    matches(
        r"[A-Za-z0-9]([-\w]{0,61}[A-Za-z0-9])?",
        "AKS cluster names are letters, digits, '-' and '_', at most 63, with a letter or digit at both ends.",
        "Write a name such as `vision-dev`.",
    ),
]
ResourceGroupName = Annotated[
    str,
    matches(
        r"(?u:[-\w.()]{0,89}[-\w()])",
        "Resource group names are letters, digits, '-', '_', '.' and parentheses, at most 90 characters, without '.' at"
        " the end.",
        "Write a name such as `vision-dev`.",
    ),
]
#: What the SDK gives a network profile for services and pods; the service refuses networks that overlap them.
TAKEN_RANGES = ("10.0.0.0/16", "10.244.0.0/16")
#: Ranges that Azure takes for no network (virtual network FAQ), and AKS for none of a cluster (AKS documentation).
REFUSED_RANGES = (
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.30.0.0/15",
    "192.0.2.0/24",
    "224.0.0.0/4",
    "255.255.255.255/32",
)
#: Azure takes no smaller subnet (virtual network FAQ); five addresses of each are its own.
LONGEST_PREFIX = 29


def _range(text: str) -> str:
    try:
        network = IPv4Network(text)
    except ValueError:
        hint = "Write network address and prefix length."
        raise refuse("GF106", "An address range looks like 10.40.0.0/16.", hint) from None
    if text != str(network):
        raise refuse("GF106", "An address range has a prefix length.", f"Write {network}.")
    return text


Cidr = Annotated[str, AfterValidator(_range)]


class SystemPool(Model):
    """The one pool inside the cluster resource; it carries the cluster's own services, never GPUs."""

    bare: ClassVar[tuple[str, ...]] = ("vmSize",)

    name: Annotated[
        str,
        matches(
            r"[a-z][a-z0-9]{0,11}",
            "AKS pool names are lower case letters and digits, at most 12, beginning with a letter.",
            "Write a name such as `system`.",
        ),
    ] = Field(default="system", description="The name of the system pool.", examples=["system"])
    vm_size: str = Field(
        default="Standard_D4s_v5", description="The Azure size of its nodes.", examples=["Standard_D4s_v5"]
    )
    count: int | None = Field(
        default=None, ge=1, le=1000, description="How many nodes it has, without autoscaler.", examples=[2]
    )
    autoscale: Autoscale | None = Field(
        default=None, description="Bounds of its autoscaler, in nodes.", examples=[{"min": 1, "max": 3}]
    )

    @model_validator(mode="after")
    def _one_size(self) -> SystemPool:
        if self.count is not None and self.autoscale is not None:
            raise refuse("GF110", "A pool has a fixed size or an autoscaler.", "Keep one.", keys="count, autoscale")
        if self.autoscale is not None and self.autoscale.min == 0:
            raise refuse("GF110", "A system pool cannot be empty.", "Set min to 1 or more.", keys="autoscale.min")
        return self


class ResourceGroup(Model):
    """The resource group, made by the stack unless `existing`."""

    bare: ClassVar[tuple[str, ...]] = ("name",)

    name: ResourceGroupName = Field(description="The name of the resource group.", examples=["vision-dev"])
    existing: bool = Field(default=False, description="Whether the resource group exists already.", examples=[True])


class Network(Model):
    """Own address ranges (the stack makes network and subnet), or a subnet that exists; neither: AKS makes one."""

    vnet_cidr: Cidr | None = Field(
        default=None, description="The address range of a network that the stack makes.", examples=["10.40.0.0/16"]
    )
    subnet_cidr: Cidr | None = Field(
        default=None, description="The address range of the nodes within vnetCidr.", examples=["10.40.0.0/20"]
    )
    subnet_id: (
        Annotated[
            str,
            matches(
                r"(?i:/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network/virtualNetworks/[^/]+/subnets/[^/]+)",
                "A subnet is named by its full resource id.",
                "Copy the id that `az network vnet subnet show --query id` prints.",
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="The resource id of a subnet that exists.",
        examples=["/subscriptions/<id>/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub/subnets/gpu"],
    )

    @model_validator(mode="after")
    def _one_way(self) -> Network:
        own = self.vnet_cidr is not None or self.subnet_cidr is not None
        if own and (self.subnet_id is not None or self.vnet_cidr is None or self.subnet_cidr is None):
            raise refuse(
                "GF110",
                "Either both ranges of an own network are given, or the id of a subnet that exists.",
                "Give vnetCidr and subnetCidr, or subnetId alone.",
                keys="vnetCidr, subnetCidr, subnetId",
            )
        if self.vnet_cidr is not None and self.subnet_cidr is not None:
            network = IPv4Network(self.vnet_cidr)
            if not IPv4Network(self.subnet_cidr).subnet_of(network):
                why, hint = "The subnet lies outside of its network.", "Choose a range within vnetCidr."
                raise refuse("GF110", why, hint, keys="vnetCidr, subnetCidr")
            if IPv4Network(self.subnet_cidr).prefixlen > LONGEST_PREFIX:
                why = f"Azure makes no subnet smaller than /{LONGEST_PREFIX}, and keeps five addresses of each."
                raise refuse("GF110", why, "Choose a range with an address for every node.", keys="subnetCidr")
            refused = [r for r in REFUSED_RANGES if network.overlaps(IPv4Network(r))]
            if refused:
                why = f"Azure and AKS take no network that overlaps {' or '.join(refused)}."
                raise refuse("GF110", why, "Choose another range, such as 10.40.0.0/16.", keys="vnetCidr, subnetCidr")
            taken = [r for r in TAKEN_RANGES if network.overlaps(IPv4Network(r))]
            if taken:
                why = f"The cluster's services and pods use {' and '.join(taken)}."
                raise refuse("GF110", why, "Choose another range, such as 10.40.0.0/16.", keys="vnetCidr, subnetCidr")
        return self


class AksCluster(Cluster):
    """An AKS cluster owned by this stack."""

    kind: Literal["aks"] = Field(description="The stack makes an AKS cluster.", examples=["aks"])
    name: ClusterName = Field(description="The name of the AKS cluster.", examples=["vision-dev"])
    location: Annotated[
        str, matches(r"[a-z0-9]+", "Azure regions are lower case without blanks.", "Write a region such as `eastus`.")
    ] = Field(description="The Azure region.", examples=["eastus"])
    resource_group: ResourceGroup | None = Field(
        default=None,
        description="The resource group; without it the stack makes one.",
        examples=[{"name": "vision-dev"}],
    )
    system_pool: SystemPool = Field(
        default_factory=lambda: SystemPool.model_validate({}),
        description="The pool of the cluster's own services, without GPUs.",
        examples=[{"vmSize": "Standard_D4s_v5", "count": 2}],
    )
    network: Network | None = Field(
        default=None,
        description="The network of the nodes; without it AKS makes one.",
        examples=[{"vnetCidr": "10.40.0.0/16", "subnetCidr": "10.40.0.0/20"}],
    )
    upgrade_channel: Literal["none", "patch", "stable", "rapid", "node-image"] = Field(
        default="none", description="Which Kubernetes versions AKS moves to by itself.", examples=["patch"]
    )
    tier: Literal["Free", "Standard", "Premium"] = Field(
        default="Free", description="The price tier of the control plane.", examples=["Standard"]
    )
    tags: Tags = Field(
        default_factory=dict, description="Azure tags of the cluster.", examples=[{"costCentre": "vision"}]
    )

    @model_validator(mode="after")
    def _channel(self) -> AksCluster:
        if self.upgrade_channel in ("patch", "stable", "rapid") and self.version and self.version.count(".") == 2:
            raise refuse(
                "GF110",
                "The channel moves the patch version; an exact one here would move it back at the next `pulumi up`.",
                f'Write version: "{self.version.rpartition(".")[0]}".',
                keys="version, upgradeChannel",
            )
        return self


_NODES = r"\d{1,3}|(100|[1-9]?\d)%"


class AksPool(Pool):
    """One AKS agent pool with GPUs. `count` or `autoscale` in nodes; `osDiskSizeGb` in GB."""

    name: Annotated[
        str,
        matches(
            r"[a-z][a-z0-9]{0,7}",
            "An AKS pool name has room for 8 characters, lower case letters and digits, beginning with a letter: 4 more"
            " are the pool's generation. Longer names are never cut, because two could become one.",
            "Write at most 8 lower case letters and digits, a letter first, such as `t4train`.",
        ),
    ] = Field(description="The name of the pool, at most 8 lower case letters and digits.", examples=["t4train"])
    vm_size: str = Field(
        min_length=1, description="The Azure size of the nodes; it decides the GPU.", examples=["Standard_NC4as_T4_v3"]
    )
    driver: DriverOwner = Field(
        default="aks", description="Who installs the NVIDIA driver on the nodes.", examples=["aks"]
    )
    count: int | None = Field(
        default=None, ge=0, le=1000, description="How many nodes the pool has, without autoscaler.", examples=[2]
    )
    autoscale: Autoscale | None = Field(
        default=None,
        description="Bounds of the cluster autoscaler for this pool, in nodes.",
        examples=[{"min": 1, "max": 4}],
    )
    spot: bool = Field(
        default=False, description="Whether the nodes are spot machines, which Azure may take back.", examples=[True]
    )
    spot_max_price: float | None = Field(
        default=None,
        description="The highest price of a spot machine, in US dollars per hour; -1 is the price on demand.",
        examples=[0.35],
    )
    os_sku: Literal["Ubuntu", "Ubuntu2204", "AzureLinux", "AzureLinux3"] = Field(
        default="Ubuntu", description="The operating system of the nodes.", examples=["Ubuntu2204"]
    )
    os_disk_size_gb: int | None = Field(
        default=None, ge=30, le=2048, description="The size of the operating system's disk, in GB.", examples=[256]
    )
    os_disk_type: Literal["Managed", "Ephemeral"] | None = Field(
        default=None, description="The kind of the operating system's disk.", examples=["Ephemeral"]
    )
    max_pods: int | None = Field(default=None, ge=10, le=250, description="The most pods on one node.", examples=[50])
    zones: Annotated[tuple[Literal["1", "2", "3"], ...], AsTuple] = Field(
        default=(), description="Availability zones, in quotes.", examples=[["1"]]
    )
    scale_down_mode: Literal["Delete", "Deallocate"] = Field(
        default="Delete", description="What the autoscaler does with a node that it removes.", examples=["Delete"]
    )
    max_surge: Annotated[
        str,
        matches(_NODES, "A surge is a number of nodes, or a percentage up to 100.", 'Write "1" or "33%", in quotes.'),
    ] = Field(
        default="0", description="How many nodes an upgrade adds: a number or a percentage, in quotes.", examples=["1"]
    )
    max_unavailable: Annotated[
        str,
        matches(_NODES, "This is a number of nodes, or a percentage up to 100.", 'Write "1" or "10%", in quotes.'),
    ] = Field(
        default="1",
        description="How many nodes an upgrade takes away: a number or a percentage, in quotes.",
        examples=["1"],
    )
    tags: Tags = Field(default_factory=dict, description="Azure tags of the pool.", examples=[{"costCentre": "vision"}])

    @model_validator(mode="after")
    def _size(self) -> AksPool:
        if self.count is not None and self.autoscale is not None:
            raise refuse("GF110", "A pool has a fixed size or an autoscaler.", "Keep one.", keys="count, autoscale")
        if self.spot_max_price is not None and not self.spot:
            raise refuse("GF110", "Only spot pools have a maximum price.", "Set spot: true.", keys="spotMaxPrice, spot")
        if (price := self.spot_max_price) is not None and price != -1 and (not price > 0 or price != round(price, 5)):
            raise refuse(
                "GF110",
                "A maximum price is above 0 and has five decimals at most, in US dollars; -1 is the price on demand.",
                "Leave spotMaxPrice out to pay up to the price on demand.",
                keys="spotMaxPrice",
            )
        if self.max_surge.rstrip("%").strip("0") == "" and self.max_unavailable.rstrip("%").strip("0") == "":
            raise refuse(
                "GF110",
                "With both at 0 an upgrade could replace no node.",
                "Set maxUnavailable to 1 or more.",
                keys="maxSurge, maxUnavailable",
            )
        return self


def aks_pool(pool: FleetPool) -> AksPool:
    """The pool as the stack file states it, in code that is there for AKS alone.

    Raises:
        TypeError: it is on another kind of cluster.
    """
    if not isinstance(pool.spec, AksPool):
        raise TypeError("not a pool of AKS")
    return pool.spec


def aks_stack(fleet: Fleet) -> AksStack:
    """The stack file, in code that is there for AKS alone.

    Raises:
        TypeError: it is on another kind of cluster.
    """
    if not isinstance(fleet.stack, AksStack):
        raise TypeError("not a stack on AKS")
    return fleet.stack


class AksStack(Stack):
    """A stack that makes its own AKS cluster."""

    cluster: AksCluster = Field(
        description="The AKS cluster that the stack makes.",
        examples=[{"kind": "aks", "name": "vision-dev", "location": "eastus"}],
    )
    pools: Annotated[tuple[AksPool, ...], AsTuple] = Field(
        min_length=1,
        description="The GPU pools.",
        examples=[[{"name": "t4", "vmSize": "Standard_NC4as_T4_v3", "count": 1}]],
    )
