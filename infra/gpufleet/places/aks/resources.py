"""The AKS cluster and its agent pools as Pulumi components; they take the plan and decide nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_kubernetes as k8s
from pulumi_azure_native import containerservice as aks
from pulumi_azure_native import resources as azure

from gpufleet.parts.names import POOL_LABEL
from gpufleet.parts.seen import Seen
from gpufleet.places.aks.plan import AgentPoolPlan, AksClusterPlan, SystemPoolPlan
from gpufleet.places.base import Made
from gpufleet.places.last_labels import labels_may_move
from gpufleet.places.look import look
from gpufleet.places.options import (
    CLUSTER_TIMEOUTS,
    IGNORE_POOL_COUNT,
    IGNORE_SYSTEM_POOL_COUNT,
    POOL_TIMEOUTS,
    InCluster,
)

if TYPE_CHECKING:
    from gpufleet.plan.model import Plan, PoolPlan


class Aks(pulumi.ComponentResource):
    """An AKS cluster without GPU pools.

    Outputs: `kubeconfig` (secret), `cluster_id` (ARM id), `resource_group_name`, `subnet_id` (or None).
    """

    def __init__(self, name: str, plan: AksClusterPlan, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aks:Cluster", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.resource_group_name: pulumi.Input[str] = plan.resource_group
        if not plan.resource_group_existing:
            group = azure.ResourceGroup(
                plan.resource_group,
                resource_group_name=plan.resource_group,
                location=plan.location,
                tags=plan.tags or None,
                opts=pulumi.ResourceOptions(parent=self, protect=plan.protect or None),
            )
            self.resource_group_name = group.name
        self.subnet_id = self._subnet(plan, child)
        ignored = list(IGNORE_SYSTEM_POOL_COUNT) if plan.system_pool.max_count else None
        self.cluster = aks.ManagedCluster(
            plan.name,
            resource_name_=plan.name,
            resource_group_name=self.resource_group_name,
            location=plan.location,
            dns_prefix=plan.dns_prefix,
            kubernetes_version=plan.version,
            enable_rbac=True,
            identity=aks.ManagedClusterIdentityArgs(type=aks.ResourceIdentityType.SYSTEM_ASSIGNED),
            sku=aks.ManagedClusterSKUArgs(name="Base", tier=plan.tier),
            auto_upgrade_profile=aks.ManagedClusterAutoUpgradeProfileArgs(upgrade_channel=plan.upgrade_channel),
            agent_pool_profiles=[self._system_pool(plan.system_pool)],
            network_profile=self._network_profile(),
            tags=plan.tags or None,
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=plan.protect or None,
                ignore_changes=ignored,
                custom_timeouts=CLUSTER_TIMEOUTS,
            ),
        )
        self.cluster_id = self.cluster.id
        self.kubeconfig = self._kubeconfig()
        self.register_outputs({"clusterId": self.cluster_id, "kubeconfig": self.kubeconfig})

    def _subnet(self, plan: AksClusterPlan, child: pulumi.ResourceOptions) -> pulumi.Input[str] | None:
        if plan.network is None:
            return None
        if plan.network.subnet_id is not None:
            return plan.network.subnet_id
        from pulumi_azure_native import network  # a large module: only where it is needed

        vnet = network.VirtualNetwork(
            f"vnet-{plan.name}",
            virtual_network_name=f"vnet-{plan.name}",
            resource_group_name=self.resource_group_name,
            location=plan.location,
            address_space=network.AddressSpaceArgs(address_prefixes=[plan.network.vnet_cidr or ""]),
            tags=plan.tags or None,
            opts=child,
        )
        subnet = network.Subnet(
            f"snet-{plan.name}",
            subnet_name=f"snet-{plan.name}",
            virtual_network_name=vnet.name,
            resource_group_name=self.resource_group_name,
            address_prefix=plan.network.subnet_cidr,
            opts=child,
        )
        subnet_id: pulumi.Output[str] = subnet.id
        return subnet_id

    def _system_pool(self, pool: SystemPoolPlan) -> aks.ManagedClusterAgentPoolProfileArgs:
        return aks.ManagedClusterAgentPoolProfileArgs(
            name=pool.name,
            mode=aks.AgentPoolMode.SYSTEM,
            vm_size=pool.vm_size,
            count=pool.count,
            enable_auto_scaling=True if pool.max_count else None,
            min_count=pool.min_count,
            max_count=pool.max_count,
            os_type=aks.OSType.LINUX,
            type=aks.AgentPoolType.VIRTUAL_MACHINE_SCALE_SETS,
            vnet_subnet_id=self.subnet_id,
        )

    def _network_profile(self) -> aks.ContainerServiceNetworkProfileArgs | None:
        if self.subnet_id is None:
            return None
        return aks.ContainerServiceNetworkProfileArgs(
            network_plugin=aks.NetworkPlugin.AZURE, network_plugin_mode=aks.NetworkPluginMode.OVERLAY
        )

    def _kubeconfig(self) -> pulumi.Output[str]:
        answer = aks.list_managed_cluster_user_credentials_output(
            resource_group_name=self.resource_group_name, resource_name=self.cluster.name
        )
        # The answer of an invoke is not secret by itself.
        return pulumi.Output.secret(answer).apply(_first_kubeconfig)


def _first_kubeconfig(answer: Any) -> str:
    return base64.b64decode(answer.kubeconfigs[0].value).decode()


class AgentPools(pulumi.ComponentResource):
    """All GPU pools of a stack; `pools` maps the stack file's names to the resources. They wait for `depends_on`."""

    def __init__(
        self,
        name: str,
        cluster: Aks,
        pools: tuple[PoolPlan, ...],
        depends_on: list[pulumi.Resource] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gpufleet:aks:AgentPools", name, {}, opts)
        self._depends_on = depends_on
        self.pools = {pool.name: self._pool(cluster, pool) for pool in pools}
        self.register_outputs({"names": {n: p.name for n, p in self.pools.items()}})

    def _pool(self, cluster: Aks, pool: PoolPlan) -> aks.AgentPool:
        plan = pool.resource
        if not isinstance(plan, AgentPoolPlan):
            raise TypeError("the plan of an AKS pool holds its agent pool")
        return aks.AgentPool(
            plan.name,
            agent_pool_name=plan.name,
            resource_group_name=cluster.resource_group_name,
            resource_name_=cluster.cluster.name,
            mode=aks.AgentPoolMode.USER,
            type=aks.AgentPoolType.VIRTUAL_MACHINE_SCALE_SETS,
            vm_size=plan.vm_size,
            gpu_instance_profile=plan.gpu_instance_profile,
            gpu_profile=aks.GPUProfileArgs(driver=plan.driver),
            os_type=aks.OSType.LINUX,
            os_sku=plan.os_sku,
            os_disk_size_gb=plan.os_disk_size_gb,
            os_disk_type=plan.os_disk_type,
            count=plan.count,
            enable_auto_scaling=True if plan.max_count else None,
            min_count=plan.min_count,
            max_count=plan.max_count,
            scale_down_mode=plan.scale_down_mode,
            scale_set_priority=aks.ScaleSetPriority.SPOT if plan.spot else None,
            scale_set_eviction_policy=aks.ScaleSetEvictionPolicy.DELETE if plan.spot else None,
            spot_max_price=plan.spot_max_price,
            node_taints=list(pool.taints) or None,
            node_labels=dict(pool.labels),
            max_pods=plan.max_pods,
            availability_zones=list(plan.zones) or None,
            upgrade_settings=aks.AgentPoolUpgradeSettingsArgs(
                max_surge=plan.max_surge, max_unavailable=plan.max_unavailable
            ),
            vnet_subnet_id=cluster.subnet_id,
            tags=plan.tags or None,
            opts=pulumi.ResourceOptions(
                parent=self,
                deleted_with=cluster.cluster,
                depends_on=self._depends_on,
                ignore_changes=list(IGNORE_POOL_COUNT) if plan.max_count else None,
                custom_timeouts=POOL_TIMEOUTS,
            ),
        )


def deploy(plan: Plan) -> Made:
    """Registers the cluster, then its pools: after the software whose keys their labels name, else before it.

    A node of a new pool has its labels from the start. So where the software is installed first, it finds no node that
    lacks the labels which keep parts of it away.
    """
    spec = plan.cluster
    if not isinstance(spec, AksClusterPlan):
        raise TypeError("not a cluster of AKS")
    seen = _seen(spec) if plan.labels_last else None
    made = Aks(spec.name, spec)
    provider = k8s.Provider(
        "cluster",
        kubeconfig=made.kubeconfig,
        cluster_identifier=made.cluster_id,
        enable_server_side_apply=True,
        enable_config_map_mutable=True,
        opts=pulumi.ResourceOptions(parent=made),
    )

    def pools(depends_on: list[pulumi.Resource] | None) -> list[pulumi.Resource]:
        return list(AgentPools(f"{spec.name}-pools", made, plan.pools, depends_on).pools.values())

    def label(ready: list[pulumi.Resource], read: pulumi.Input[Any]) -> list[pulumi.Resource]:
        waits = labels_may_move(plan, seen, _wanted(plan, seen), made.kubeconfig, None, read)
        return pools([*ready, *waits])

    inside = InCluster(provider, made.cluster, spec.protect)
    outputs = {"kubeconfig": made.kubeconfig, "clusterId": made.cluster_id}
    if plan.labels_last:
        return Made(inside, [], outputs, seen, label)
    return Made(inside, pools(None), outputs)


def _seen(spec: AksClusterPlan) -> Seen | None:
    """What is in the cluster; None where it is not there yet, or does not answer."""
    try:
        answer = aks.list_managed_cluster_user_credentials(
            resource_group_name=spec.resource_group, resource_name=spec.name
        )
    except Exception:  # the SDK has no narrower one; where Azure answers nobody, the engine says so
        return None
    found = look(_first_kubeconfig(answer), None)
    return found[1] if found else None


def _wanted(plan: Plan, seen: Seen | None) -> dict[str, Mapping[str, str]]:
    """Node -> the labels that its pool will have; nodes of pools that go keep theirs."""
    pools = {pool.name: pool.labels for pool in plan.pools}
    nodes = seen.nodes if seen else {}
    return {name: pools[pool] for name, labels in nodes.items() if (pool := labels.get(POOL_LABEL)) in pools}
