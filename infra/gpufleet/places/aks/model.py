"""An AKS cluster, made by the stack or there already, and its GPU pools, as the stack file states them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from gpufleet.places.aks.access import Credentials, Entra, Login
from gpufleet.places.aks.network import Network
from gpufleet.places.aks.system_pool import SystemPool
from gpufleet.places.aks.upkeep import Maintenance, NodeOsChannel, UpgradeChannel, node_os_channel
from gpufleet.stackfile.base import AsTuple, KubernetesVersion, Model, Tags, matches, refuse
from gpufleet.stackfile.cluster import Autoscale, Cluster
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.pool import DriverOwner, Pool
from gpufleet.stackfile.repair import UNREAD

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


class ResourceGroup(Model):
    """The resource group, made by the stack unless `existing`."""

    bare: ClassVar[tuple[str, ...]] = ("name",)

    name: ResourceGroupName = Field(description="The name of the resource group.", examples=["vision-dev"])
    existing: bool = Field(default=False, description="Whether the resource group exists already.", examples=[True])


class ExistingAks(Model):
    """An AKS cluster that is there; the stack makes agent pools in it and nothing else of the cluster."""

    name: ClusterName = Field(description="The name of the cluster.", examples=["corp-aks"])
    resource_group: ResourceGroupName = Field(description="The resource group that it is in.", examples=["rg-corp"])


#: What whoever makes a cluster decides.
_MAKERS_KEYS = (
    "resource_group",
    "system_pool",
    "upgrade_channel",
    "node_os_upgrade_channel",
    "maintenance",
    "tier",
    "entra",
    "disable_local_accounts",
    "tags",
)


def _two_forms(schema: dict[str, Any]) -> None:
    """In the JSON Schema: `name` and `location` belong to a cluster that is made."""
    made = [key for key in schema["required"] if key != "kind"]
    schema["required"] = ["kind"]
    schema["anyOf"] = [{"required": made}, {"required": ["existing"]}]


class AksCluster(Cluster):
    """An AKS cluster owned by this stack, or with `existing` one that is there, for agent pools alone."""

    model_config = ConfigDict(json_schema_extra=_two_forms)

    kind: Literal["aks"] = Field(description="A cluster on AKS.", examples=["aks"])
    name: ClusterName = Field(description="The name of the AKS cluster.", examples=["vision-dev"])
    location: (
        Annotated[
            str,
            matches(r"[a-z0-9]+", "Azure regions are lower case without blanks.", "Write a region such as `eastus`."),
        ]
        | None
    ) = Field(description="The Azure region.", examples=["eastus"])
    existing: ExistingAks | None = Field(
        default=None,
        description="The cluster is there already: the stack makes agent pools in it and leaves the rest alone.",
        examples=[{"name": "corp-aks", "resourceGroup": "rg-corp"}],
    )
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
    upgrade_channel: UpgradeChannel = Field(
        default="none", description="Which Kubernetes versions AKS moves to by itself.", examples=["patch"]
    )
    node_os_upgrade_channel: NodeOsChannel | None = Field(
        default=None,
        description="How AKS updates the nodes' system. Without it: None with `upgradeChannel: none`, else NodeImage.",
        examples=["NodeImage"],
    )
    maintenance: Maintenance = Field(
        default_factory=lambda: Maintenance.model_validate({}),
        description="When AKS may upgrade by itself.",
        examples=[{"nodes": {"day": "Sunday", "start": "02:00", "hours": 6}}],
    )
    tier: Literal["Free", "Standard", "Premium"] = Field(
        default="Free", description="The price tier of the control plane.", examples=["Standard"]
    )
    entra: Entra | None = Field(
        default=None,
        description="People sign in with Microsoft Entra, managed by AKS.",
        examples=[{"adminGroups": ["6d0c1e2f-0a3b-4c5d-8e9f-112233445566"]}],
    )
    disable_local_accounts: bool = Field(
        default=False,
        description="Nobody gets in by a certificate of AKS: sign-in is with Entra alone.",
        examples=[True],
    )
    credentials: Credentials = Field(
        default="user",
        description="The kubeconfig that `pulumi` asks AKS for: that of a user, or of the local administrator.",
        examples=["user"],
    )
    login: Login = Field(
        default="azurecli",
        description="How kubelogin signs in on the machine that runs `pulumi`, where the cluster has Entra.",
        examples=["workloadidentity"],
    )
    tags: Tags = Field(
        default_factory=dict, description="Azure tags of the cluster.", examples=[{"costCentre": "vision"}]
    )

    @model_validator(mode="before")
    @classmethod
    def _named_once(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("existing"), dict):
            return {"name": UNREAD, "location": None, **data}
        return data

    @model_validator(mode="after")
    def _one_form(self) -> AksCluster:
        if self.existing is None:
            if self.location is None:
                raise refuse("GF104", "A cluster that is made has a region.", "Write a region such as `eastus`.")
            return self
        own = [key for key in _MAKERS_KEYS if key in self.model_fields_set]
        own += ["name"] if self.name not in (UNREAD, self.existing.name) else []
        own += ["location"] if self.location is not None else []
        own += ["network"] if self.network and self.network.vnet_cidr else []
        if own:
            raise refuse(
                "GF110",
                "With `existing`, whoever made the cluster decides this; the stack only adds agent pools to it.",
                "Remove these keys; name and resource group stand in `existing`, a subnet in network.subnetId.",
                keys=", ".join(to_camel(key) for key in own),
            )
        return self

    @model_validator(mode="after")
    def _channel(self) -> AksCluster:
        if self.upgrade_channel in ("patch", "stable", "rapid") and self.version and self.version.count(".") == 2:
            raise refuse(
                "GF110",
                "The channel moves the patch version; an exact one here would move it back at the next `pulumi up`.",
                f'Write version: "{self.version.rpartition(".")[0]}".',
                keys="version, upgradeChannel",
            )
        if self.upgrade_channel == "node-image" and self.os_channel != "NodeImage":
            raise refuse(
                "GF110",
                "With upgradeChannel node-image, Azure takes no other channel for the nodes than NodeImage.",
                "Remove nodeOsUpgradeChannel, or set upgradeChannel: none.",
                keys="upgradeChannel, nodeOsUpgradeChannel",
            )
        return self

    @model_validator(mode="after")
    def _a_way_in(self) -> AksCluster:
        if self.disable_local_accounts and self.entra is None:
            raise refuse(
                "GF110",
                "Without local accounts people sign in with Entra alone, and it is not on.",
                "Add entra with adminGroups, or remove disableLocalAccounts.",
                keys="disableLocalAccounts, entra",
            )
        if self.disable_local_accounts and self.credentials == "admin":
            raise refuse(
                "GF110",
                "The administrator's kubeconfig is a local account, and these are disabled.",
                "Remove credentials: kubelogin signs in as `login` says.",
                keys="disableLocalAccounts, credentials",
            )
        return self

    @property
    def os_channel(self) -> NodeOsChannel:
        """The node OS channel that is sent."""
        return node_os_channel(self.node_os_upgrade_channel, self.upgrade_channel)


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
    version: KubernetesVersion | None = Field(
        default=None,
        description="The pool's Kubernetes version, where it is not that of the cluster.",
        examples=["1.35"],
    )
    max_surge: (
        Annotated[
            str,
            matches(
                _NODES, "A surge is a number of nodes, or a percentage up to 100.", 'Write "1" or "33%", in quotes.'
            ),
        ]
        | None
    ) = Field(
        default=None, description="How many nodes an upgrade adds: a number or a percentage, in quotes.", examples=["1"]
    )
    max_unavailable: (
        Annotated[
            str,
            matches(_NODES, "This is a number of nodes, or a percentage up to 100.", 'Write "1" or "10%", in quotes.'),
        ]
        | None
    ) = Field(
        default=None,
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
        surge, unavailable = self.upgrade_settings
        if is_zero(surge) and is_zero(unavailable):
            raise refuse(
                "GF110",
                "With both at 0 an upgrade could replace no node.",
                "Set maxUnavailable to 1 or more.",
                keys="maxSurge, maxUnavailable",
            )
        if not is_zero(surge) and not is_zero(unavailable):
            raise refuse(
                "GF110",
                "An upgrade adds nodes or takes some away, not both: AKS refuses two numbers above 0.",
                "Keep one; the other is then 0.",
                keys="maxSurge, maxUnavailable",
            )
        return self

    @property
    def upgrade_settings(self) -> tuple[str, str]:
        """(maxSurge, maxUnavailable) as sent: where one is stated the other is 0, and without both a node at a time
        goes away before its successor comes, since extra nodes of a GPU size may not be had."""
        if self.max_surge is None and self.max_unavailable is None:
            return "0", "1"
        if self.max_surge is not None and self.max_unavailable is not None:
            return self.max_surge, self.max_unavailable
        if self.max_surge is not None:
            return self.max_surge, ("1" if is_zero(self.max_surge) else "0")
        return "0", self.max_unavailable or "1"


def is_zero(nodes: str) -> bool:
    """Whether a number of nodes, or a percentage, is none."""
    return nodes.rstrip("%").strip("0") == ""


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
    """A stack on AKS."""

    cluster: AksCluster = Field(
        description="The AKS cluster.", examples=[{"kind": "aks", "name": "vision-dev", "location": "eastus"}]
    )
    pools: Annotated[tuple[AksPool, ...], AsTuple] = Field(
        min_length=1,
        description="The GPU pools.",
        examples=[[{"name": "t4", "vmSize": "Standard_NC4as_T4_v3", "count": 1}]],
    )
