"""Everything that is special about a cluster that exists, as answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gpufleet.catalog import gpu_model
from gpufleet.parts.hardware import Hardware, shown_memory
from gpufleet.parts.names import POOL_LABEL
from gpufleet.places.base import Made, Nodes, Place
from gpufleet.places.existing.model import ExistingStack, NodePool
from gpufleet.places.existing.plan import ExistingClusterPlan, NodeMarks
from gpufleet.stackfile.cluster import KubeconfigRef
from gpufleet.stackfile.kinds import Kind
from gpufleet.stackfile.repair import UNREAD

if TYPE_CHECKING:
    from gpufleet.findings.finding import Finding
    from gpufleet.fleet.model import FleetPool
    from gpufleet.plan.model import Plan


def hardware_of(pool: NodePool) -> Hardware:
    """One node, by the model that the stack file names."""
    model = gpu_model(pool.gpu)
    sold_as = float(model.memory_gib) if model and model.memory_gib else None
    return Hardware(pool.gpus_per_node, model, shown_memory(model, sold_as))


class ExistingPlace(Place[ExistingStack, NodePool]):
    """Nodes are listed by name, and labelled by the stack, or found by labels that somebody else sets."""

    kind = Kind(
        "existing",
        ExistingStack,
        stand_ins={
            "cluster": {"name": UNREAD, "kubeconfig": {"path": UNREAD}},
            "pools": {"name": UNREAD, "gpu": UNREAD, "gpusPerNode": 1},
        },
        neither={frozenset({"hosts", "nodeSelector"}): {"hosts": {UNREAD: None}}},
    )
    owners = ("host", "operator", "none")
    owner_words: ClassVar[Mapping[str, str]] = {"aks": "AKS installs it"}
    with_toolkit = ("aks",)

    def distribution(self, stack: ExistingStack) -> str:
        return stack.cluster.distribution

    def owners_on(self, stack: ExistingStack) -> tuple[str, ...]:
        """The Ansible roles do not go to nodes of AKS: AKS makes them anew with each image."""
        return ("aks", "operator", "none") if stack.cluster.distribution == "aks" else self.owners

    def hardware(self, pool: NodePool) -> Hardware:
        return hardware_of(pool)

    def nodes(self, pool: NodePool) -> Nodes:
        if pool.node_selector:
            return Nodes((), dict(sorted(pool.node_selector.items())), labelled=False, count=None)
        count = (len(pool.hosts), len(pool.hosts))
        return Nodes(tuple(sorted(pool.hosts)), {POOL_LABEL: pool.name}, labelled=True, count=count)

    def labels(self, pool: NodePool) -> dict[str, str]:
        return dict(pool.node_selector) if pool.node_selector else {**pool.labels, POOL_LABEL: pool.name}

    def mig_restarts_nodes(self, stack: ExistingStack) -> bool:
        return stack.cluster.distribution == "aks"

    def existing_runtime_class(self, stack: ExistingStack) -> bool | None:
        said = stack.cluster.runtime_class
        return said.existing if said else None

    def default_runtime(self, pool: NodePool) -> str:
        """With its driver AKS makes NVIDIA's runtime the default; without a toolkit there is only runc."""
        if pool.driver == "aks":
            return "nvidia-container-runtime"
        return "nvidia" if pool.nvidia_default_runtime and pool.driver != "operator" else "runc"

    def os(self, pool: NodePool, stack: ExistingStack) -> str | None:
        return pool.os

    def sets_time_slice(self, pool: NodePool) -> bool:
        """The Ansible roles do, on hosts that they look after."""
        return bool(pool.hosts) and pool.driver == "host"

    def kubeconfig(self, stack: ExistingStack) -> KubeconfigRef:
        return stack.cluster.kubeconfig

    def cluster_plan(self, stack: ExistingStack) -> ExistingClusterPlan:
        spec = stack.cluster
        return ExistingClusterPlan(
            kind="existing",
            name=spec.name,
            version=spec.version,
            identifier=spec.site or spec.name,
            distribution=spec.distribution,
            kubeconfig=spec.kubeconfig,
            protect=spec.protected,
            protection=spec.protection(),
            existing_namespaces=spec.existing_namespaces,
            runtime_class_stated=spec.runtime_class is not None,
        )

    def pool_resource(self, pool: FleetPool, stack: ExistingStack) -> NodeMarks | None:
        names = pool.nodes.names
        return NodeMarks(nodes=names, labels=dict(pool.labels), taints=pool.taints) if names else None

    def deploy(self, plan: Plan, root: Path, tell: Callable[[tuple[Finding, ...]], None]) -> Made:
        from gpufleet.places.existing.resources import deploy  # Pulumi is needed only here

        return deploy(plan, root, tell)
