"""Everything that is special about AKS, as answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gpufleet.catalog import aks_node_driver, azure_size, gpu_model
from gpufleet.catalog.azure import aks_node_os
from gpufleet.catalog.cuda import KnownDriver
from gpufleet.parts.hardware import UNKNOWN, Hardware, shown_memory
from gpufleet.parts.names import POOL_LABEL
from gpufleet.parts.taints import Taint
from gpufleet.places.aks.cluster_plan import AksClusterPlan, ExistingAksPlan, cluster_plan
from gpufleet.places.aks.model import AksPool, AksStack
from gpufleet.places.aks.plan import AgentPoolPlan, agent_pool_plan
from gpufleet.places.base import Made, Nodes, Place
from gpufleet.stackfile.cluster import Autoscale
from gpufleet.stackfile.kinds import Kind
from gpufleet.stackfile.repair import UNREAD

if TYPE_CHECKING:
    from gpufleet.findings.finding import Finding
    from gpufleet.fleet.model import FleetPool
    from gpufleet.plan.model import Plan

#: AKS labels and taints every spot pool with this key (learn.microsoft.com, AKS spot node pools; case AZ-09).
SPOT_KEY = "kubernetes.azure.com/scalesetpriority"
SPOT_TAINT = Taint(SPOT_KEY, "spot", "NoSchedule")


class AksPlace(Place[AksStack, AksPool]):
    """AKS: the node image brings driver and toolkit, with NVIDIA's runtime as the default, or neither."""

    kind = Kind(
        "aks",
        AksStack,
        marks=frozenset({"vmSize"}),
        stand_ins={
            "cluster": {"name": UNREAD, "location": UNREAD},
            "cluster.existing": {"name": UNREAD, "resourceGroup": UNREAD},
            "pools": {"name": UNREAD, "vmSize": UNREAD},
        },
    )
    owners = ("aks", "operator", "managed", "none")
    owner_words: ClassVar[Mapping[str, str]] = {"aks": "AKS installs it", "managed": "AKS manages it"}
    with_toolkit = ("aks",)
    #: AKS documentation: use-labels.
    reserved_labels = ("kubernetes.azure.com/", "kubernetes.io/")
    #: Azure/karpenter-provider-azure#1830, 2026-08-05.
    reserved_taints = ("kubernetes.azure.com/",)
    restated_taints = (SPOT_KEY,)
    owner_of_nodes = "AKS"
    extra = "azure"

    def distribution(self, stack: AksStack) -> str:
        return "aks"

    def hardware(self, pool: AksPool) -> Hardware:
        size = azure_size(pool.vm_size)
        if size is None:
            return UNKNOWN
        model = gpu_model(size.gpu) if size.gpu else None
        return Hardware(size.gpus_schedulable, model, shown_memory(model, size.memory_gib_per_gpu), size)

    def nodes(self, pool: AksPool) -> Nodes:
        fixed = 1 if pool.count is None else pool.count
        count = (pool.autoscale.min, pool.autoscale.max) if pool.autoscale else (fixed, fixed)
        return Nodes((), {POOL_LABEL: pool.name}, labelled=True, count=count)

    def labels(self, pool: AksPool) -> dict[str, str]:
        return {**pool.labels, POOL_LABEL: pool.name, **({SPOT_KEY: "spot"} if pool.spot else {})}

    def added_taints(self, pool: AksPool) -> tuple[Taint, ...]:
        return (SPOT_TAINT,) if pool.spot else ()

    def mig_restarts_nodes(self, stack: AksStack) -> bool:
        """In a cloud it may (NVIDIA/cloud-native-docs, gpu-operator-mig); an A100 of AKS does (Azure/AgentBaker)."""
        return True

    def default_runtime(self, pool: AksPool) -> str:
        """AKS makes NVIDIA's the default only where it installs the driver (Azure/AgentBaker)."""
        return "nvidia-container-runtime" if pool.driver == "aks" else "runc"

    def own_driver(self, pool: AksPool, hardware: Hardware) -> KnownDriver | None:
        row = aks_node_driver(hardware.size) if pool.driver == "aks" and hardware.size is not None else None
        if row is None:
            return None
        words = f"driver {row.version} (AKS node images of {row.as_of[:7]})"
        return KnownDriver(row.version, row.version, False, words)

    def os(self, pool: AksPool, stack: AksStack) -> str | None:
        return aks_node_os(pool.os_sku, pool.version or stack.cluster.version)

    def autoscale(self, pool: AksPool) -> Autoscale | None:
        return pool.autoscale

    def cluster_plan(self, stack: AksStack) -> AksClusterPlan | ExistingAksPlan:
        return cluster_plan(stack.cluster, stack.pools)

    def pool_resource(self, pool: FleetPool, stack: AksStack) -> AgentPoolPlan:
        return agent_pool_plan(pool, stack.cluster)

    def deploy(self, plan: Plan, root: Path, tell: Callable[[tuple[Finding, ...]], None]) -> Made:
        from gpufleet.places.aks.resources import deploy  # Pulumi is needed only here

        return deploy(plan)
