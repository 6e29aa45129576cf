"""GPU node pools: AKS agent pools, or nodes of an existing cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gpufleet.stackfile.base import (
    AsTuple,
    DriverBranch,
    DriverVersion,
    LabelKey,
    LabelValue,
    Model,
    NodeName,
    Tags,
    matches,
    refuse,
)
from gpufleet.stackfile.cluster import Autoscale
from gpufleet.stackfile.hosts import HostDriver

DriverOwner = Literal["aks", "operator", "host", "managed", "none"]

Taints = Annotated[tuple[str, ...], AsTuple]
Labels = dict[LabelKey, LabelValue]


class _Pool(Model):
    sharing: str | None = None
    taints: Taints = ()
    labels: Labels = Field(default_factory=dict)
    driver_branch: DriverBranch | None = None
    driver_version: DriverVersion | None = None

    @model_validator(mode="after")
    def _branch_and_version(self) -> _Pool:
        branch, version = self.driver_branch, self.driver_version
        if branch and version and not version.startswith(branch + "."):
            raise refuse(
                "GF110",
                f"Version {version} is not of branch {branch}.",
                "Keep the one you mean.",
                keys="driverBranch, driverVersion",
            )
        return self


_NODES = r"\d{1,3}|(100|[1-9]?\d)%"


class AksPool(_Pool):
    """One AKS agent pool with GPUs. `count` or `autoscale` in nodes; `osDiskSizeGb` in GB."""

    name: Annotated[
        str,
        matches(
            r"[a-z][a-z0-9]{0,7}",
            "An AKS pool name has room for 8 characters, lower case letters and digits, beginning with a letter: 4 more"
            " are the pool's generation. Longer names are never cut, because two could become one.",
            "Shorten it to 8 characters or fewer.",
        ),
    ]
    vm_size: str = Field(min_length=1)
    driver: DriverOwner = "aks"
    count: int | None = Field(default=None, ge=0, le=1000)
    autoscale: Autoscale | None = None
    spot: bool = False
    spot_max_price: float | None = None
    os_sku: Literal["Ubuntu", "Ubuntu2204", "AzureLinux", "AzureLinux3"] = "Ubuntu"
    os_disk_size_gb: int | None = Field(default=None, ge=30, le=2048)
    os_disk_type: Literal["Managed", "Ephemeral"] | None = None
    max_pods: int | None = Field(default=None, ge=10, le=250)
    zones: Annotated[tuple[Literal["1", "2", "3"], ...], AsTuple] = ()
    scale_down_mode: Literal["Delete", "Deallocate"] = "Delete"
    max_surge: Annotated[
        str,
        matches(_NODES, "A surge is a number of nodes, or a percentage up to 100.", 'Write "1" or "33%", in quotes.'),
    ] = "0"
    max_unavailable: Annotated[
        str,
        matches(_NODES, "This is a number of nodes, or a percentage up to 100.", 'Write "1" or "10%", in quotes.'),
    ] = "1"
    tags: Tags = Field(default_factory=dict)

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


class Host(Model):
    """One node of an existing cluster; the address is what Ansible connects to."""

    address: (
        Annotated[
            str,
            matches(
                r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*",
                "An address is a host name, an IPv4 or an IPv6 address, without a port.",
                "Write e.g. 10.0.0.11, or gpu01.example.com; hosts.ssh.port holds the port.",
            ),
        ]
        | None
    ) = None


class NodePool(_Pool):
    """GPU nodes of an existing cluster, by host name or by a label selector.

    With `hosts`, gpufleet labels (and taints) the nodes. With `nodeSelector`, labels and taints are somebody else's:
    what is declared here is what the nodes are expected to carry.
    `os` is the hosts' operating system as ID and VERSION_ID of /etc/os-release name it, `architecture` what `uname -m`
    prints; with them, routes to a driver are checked and `gpufleet mirror-list` names exact packages.
    """

    name: Annotated[
        str,
        matches(
            r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?",
            "Pool names are lower case letters, digits and '-', at most 40.",
            "Write a name such as `a100`.",
        ),
    ]
    gpu: str = Field(min_length=1)
    gpus_per_node: int = Field(ge=1, le=16)
    driver: DriverOwner = "host"
    hosts: dict[NodeName, Host | None] = Field(default_factory=dict)
    node_selector: Labels = Field(default_factory=dict)
    nvidia_default_runtime: bool = False
    os: str | None = Field(default=None, min_length=1)
    architecture: Literal["x86_64", "aarch64"] = "x86_64"
    host_driver: HostDriver | None = None

    @model_validator(mode="after")
    def _one_way(self) -> NodePool:
        if bool(self.hosts) == bool(self.node_selector):
            raise refuse(
                "GF110",
                "The nodes of a pool are given in one way.",
                "Give hosts, or nodeSelector.",
                keys="hosts, nodeSelector",
            )
        if self.node_selector and self.labels:
            raise refuse(
                "GF110",
                "Nodes that are found by a selector are labelled by somebody else.",
                "Remove labels, or list the hosts.",
                keys="labels, nodeSelector",
            )
        if self.node_selector and self.host_driver:
            raise refuse(
                "GF110",
                "The roles go to hosts that are listed; nodes that are found by a selector they never see.",
                "Remove hostDriver, or list the hosts.",
                keys="hostDriver, nodeSelector",
            )
        return self


Pool = AksPool | NodePool
POOL_KINDS = {"aks": AksPool, "existing": NodePool}
