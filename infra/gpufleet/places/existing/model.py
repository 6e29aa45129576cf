"""A cluster that exists, and its GPU nodes, as the stack file states them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from gpufleet.stackfile.base import AsTuple, DnsLabel, Model, NodeName, matches, refuse
from gpufleet.stackfile.cluster import Cluster, KubeconfigRef
from gpufleet.stackfile.hosts import HostDriver, Hosts
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.pool import DriverOwner, Labels, Pool

if TYPE_CHECKING:
    from gpufleet.fleet.model import Fleet, FleetPool

Distribution = Literal["kubeadm", "k3s", "rke2", "microk8s", "aks"]


class RuntimeClassRef(Model):
    """The RuntimeClass of NVIDIA's runtime: there already, or made by the stack (`existing: false`)."""

    existing: bool


class ExistingCluster(Cluster):
    """A cluster that exists already; the stack owns only what it puts into it.

    `site` names the cluster for ever (the Kubernetes provider's cluster identifier): with it, a changed kubeconfig
    never replaces what is deployed. `runtimeClass` and `existingNamespaces` say what is there already: the stack uses
    it and never deletes it.
    """

    kind: Literal["existing"]
    name: DnsLabel
    site: DnsLabel | None = None
    kubeconfig: KubeconfigRef
    distribution: Distribution = "kubeadm"
    runtime_class: RuntimeClassRef | None = None
    existing_namespaces: Annotated[tuple[DnsLabel, ...], AsTuple] = ()


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


class NodePool(Pool):
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


def node_pool(pool: FleetPool) -> NodePool:
    """The pool as the stack file states it, in code that is there for existing clusters alone.

    Raises:
        TypeError: it is on another kind of cluster.
    """
    if not isinstance(pool.spec, NodePool):
        raise TypeError("not a pool of an existing cluster")
    return pool.spec


def existing_stack(fleet: Fleet) -> ExistingStack:
    """The stack file, in code that is there for existing clusters alone.

    Raises:
        TypeError: it is on another kind of cluster.
    """
    if not isinstance(fleet.stack, ExistingStack):
        raise TypeError("not a stack on an existing cluster")
    return fleet.stack


class ExistingStack(Stack):
    """A stack on a cluster that exists."""

    cluster: ExistingCluster
    pools: Annotated[tuple[NodePool, ...], AsTuple] = Field(min_length=1)
    hosts: Hosts = Field(default_factory=lambda: Hosts.model_validate({}))

    @model_validator(mode="before")
    @classmethod
    def _driver_of_the_distribution(cls, data: Any) -> Any:
        """On AKS the node image brings the driver, where a pool names no owner."""
        cluster, pools = (data.get("cluster"), data.get("pools")) if isinstance(data, dict) else (None, None)
        if not isinstance(cluster, dict) or cluster.get("distribution") != "aks" or not isinstance(pools, list):
            return data
        return {**data, "pools": [{"driver": "aks", **pool} if isinstance(pool, dict) else pool for pool in pools]}
