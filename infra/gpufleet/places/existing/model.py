"""A cluster that exists, and its GPU nodes, as the stack file states them."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

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

    existing: bool = Field(description="Whether the RuntimeClass is there already.", examples=[True])


class ExistingCluster(Cluster):
    """A cluster that exists already; the stack owns only what it puts into it.

    `site` names the cluster for ever (the Kubernetes provider's cluster identifier): with it, a changed kubeconfig
    never replaces what is deployed. `runtimeClass` and `existingNamespaces` say what is there already: the stack uses
    it and never deletes it.
    """

    kind: Literal["existing"] = Field(description="The stack uses a cluster that exists.", examples=["existing"])
    name: DnsLabel = Field(description="The name of the cluster, as messages and resources call it.", examples=["lab"])
    site: DnsLabel | None = Field(
        default=None,
        description="A name that the cluster keeps for ever; with it a changed kubeconfig replaces nothing.",
        examples=["lab"],
    )
    kubeconfig: KubeconfigRef = Field(description="Where the kubeconfig is.", examples=[{"path": "~/.kube/config"}])
    distribution: Distribution = Field(default="kubeadm", description="The Kubernetes distribution.", examples=["k3s"])
    runtime_class: RuntimeClassRef | None = Field(
        default=None,
        description="Whether the RuntimeClass of NVIDIA's runtime is there already; without it, gpufleet looks.",
        examples=[{"existing": True}],
    )
    existing_namespaces: Annotated[tuple[DnsLabel, ...], AsTuple] = Field(
        default=(),
        description="Namespaces that are there already; the stack uses them and never removes them.",
        examples=[["vision"]],
    )


def _four_numbers(text: str) -> str:
    """Digits and points alone are an IPv4 address; no host name ends in a number (RFC 1123)."""
    if re.fullmatch(r"[\d.]+", text):
        try:
            IPv4Address(text)
        except ValueError:
            why, hint = "An IPv4 address has four numbers from 0 to 255.", "Write e.g. 10.0.0.11."
            raise refuse("GF106", why, hint) from None
    return text


class Host(Model):
    """One node of an existing cluster; the address is what Ansible connects to."""

    bare: ClassVar[tuple[str, ...]] = ("address",)

    address: (
        Annotated[
            str,
            matches(
                r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*",
                "An address is a host name, an IPv4 or an IPv6 address, without a port.",
                "Write e.g. 10.0.0.11, or gpu01.example.com; hosts.ssh.port holds the port.",
            ),
            AfterValidator(_four_numbers),
        ]
        | None
    ) = Field(
        default=None,
        description="The address that Ansible connects to; without it, the node's name.",
        examples=["10.0.0.11"],
    )


class NodePool(Pool):
    """GPU nodes of an existing cluster, by host name or by a label selector.

    With `hosts`, gpufleet labels (and taints) the nodes. With `nodeSelector`, labels and taints are somebody else's:
    what is declared here is what the nodes are expected to carry.
    `os` is the hosts' operating system as ID and VERSION_ID of /etc/os-release name it, `architecture` what `uname -m`
    prints; with them, routes to a driver are checked and `gpufleet mirror-list` names exact packages.
    """

    shown: ClassVar[tuple[str, ...]] = ("hosts",)

    name: Annotated[
        str,
        matches(
            r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?",
            "Pool names are lower case letters, digits and '-', at most 40.",
            "Write a name such as `a100`.",
        ),
    ] = Field(description="The name of the pool; teams refer to it.", examples=["a100"])
    gpu: str = Field(min_length=1, description="The GPU of the nodes, as `gpufleet catalog` names it.", examples=["T4"])
    gpus_per_node: int = Field(ge=1, le=16, description="How many GPUs each node has.", examples=[8])
    driver: DriverOwner = Field(
        default="host", description="Who installs the NVIDIA driver on the nodes.", examples=["host"]
    )
    hosts: dict[NodeName, Host | None] = Field(
        default_factory=dict,
        description="The nodes by name, each with its address.",
        examples=[{"gpu01": {"address": "10.0.0.11"}}],
    )
    node_selector: Labels = Field(
        default_factory=dict,
        description="Labels that choose the nodes; instead of hosts.",
        examples=[{"example.com/gpu": "a100"}],
    )
    nvidia_default_runtime: bool = Field(
        default=False, description="Whether `nvidia` is the default container runtime of the nodes.", examples=[True]
    )
    os: str | None = Field(
        default=None,
        min_length=1,
        description="The operating system as ID and VERSION_ID of /etc/os-release.",
        examples=["ubuntu 24.04"],
    )
    architecture: Literal["x86_64", "aarch64"] = Field(
        default="x86_64", description="The architecture that `uname -m` prints.", examples=["x86_64"]
    )
    host_driver: HostDriver | None = Field(
        default=None,
        description="How the roles bring the driver onto the hosts.",
        examples=[{"method": "cuda_repo", "flavour": "open"}],
    )

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

    cluster: ExistingCluster = Field(
        description="The cluster that exists.",
        examples=[{"kind": "existing", "name": "lab", "kubeconfig": {"path": "~/.kube/config"}}],
    )
    pools: Annotated[tuple[NodePool, ...], AsTuple] = Field(
        min_length=1,
        description="The GPU pools.",
        examples=[[{"name": "a100", "hosts": {"gpu01": {}}, "gpu": "T4", "gpusPerNode": 8}]],
    )
    hosts: Hosts = Field(
        default_factory=lambda: Hosts.model_validate({}),
        description="What holds for all hosts of the stack.",
        examples=[{"ssh": {"user": "ubuntu"}}],
    )

    @model_validator(mode="before")
    @classmethod
    def _driver_of_the_distribution(cls, data: Any) -> Any:
        """On AKS the node image brings the driver, where a pool names no owner."""
        cluster, pools = (data.get("cluster"), data.get("pools")) if isinstance(data, dict) else (None, None)
        if not isinstance(cluster, dict) or cluster.get("distribution") != "aks" or not isinstance(pools, list):
            return data
        return {**data, "pools": [{"driver": "aks", **pool} if isinstance(pool, dict) else pool for pool in pools]}
