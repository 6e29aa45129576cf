"""The AKS cluster and its agent pools as Pulumi components; they take the plan and decide nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_kubernetes as k8s
from pulumi_azure_native import containerservice as aks
from pulumi_azure_native import resources as azure

from gpufleet.parts.names import POOL_LABEL
from gpufleet.parts.seen import Seen
from gpufleet.places.aks.access import with_login
from gpufleet.places.aks.cluster_plan import AccessPlan, AksClusterPlan, EntraPlan, ExistingAksPlan, SystemPoolPlan
from gpufleet.places.aks.plan import AgentPoolPlan, Counted, count_to_send
from gpufleet.places.aks.upkeep import CLUSTER_WINDOW, NODES_WINDOW
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
        system = plan.system_pool
        count, recorded = _count(system, PoolAddress(plan.resource_group, plan.name, system.name))
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
            auto_upgrade_profile=aks.ManagedClusterAutoUpgradeProfileArgs(
                upgrade_channel=plan.upgrade_channel, node_os_upgrade_channel=plan.node_os_upgrade_channel
            ),
            aad_profile=_entra(plan.entra),
            disable_local_accounts=True if plan.disable_local_accounts else None,
            agent_pool_profiles=[self._system_pool(plan, count)],
            network_profile=self._network_profile(),
            tags=plan.tags or None,
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=plan.protect or None,
                ignore_changes=list(IGNORE_SYSTEM_POOL_COUNT) if recorded else None,
                custom_timeouts=CLUSTER_TIMEOUTS,
            ),
        )
        self.cluster_id = self.cluster.id
        self._windows(plan, child)
        self.kubeconfig = kubeconfig(self.resource_group_name, self.cluster.name, plan.access)
        self.target = Target(
            plan.resource_group, plan.name, self.resource_group_name, self.cluster.name, self.subnet_id, self.cluster
        )
        self.register_outputs({"clusterId": self.cluster_id, "kubeconfig": self.kubeconfig})

    def _windows(self, plan: AksClusterPlan, child: pulumi.ResourceOptions) -> None:
        """When AKS may upgrade by itself."""
        for name, window in ((CLUSTER_WINDOW, plan.maintenance.cluster), (NODES_WINDOW, plan.maintenance.nodes)):
            if window is None:
                continue
            aks.MaintenanceConfiguration(
                name,
                config_name=name,
                resource_group_name=self.resource_group_name,
                resource_name_=self.cluster.name,
                maintenance_window=aks.MaintenanceWindowArgs(
                    schedule=aks.ScheduleArgs(
                        weekly=aks.WeeklyScheduleArgs(day_of_week=window.day, interval_weeks=window.every_weeks)
                    ),
                    start_time=window.start,
                    duration_hours=window.hours,
                    utc_offset=window.utc_offset,
                ),
                opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(deleted_with=self.cluster)),
            )

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

    def _system_pool(self, plan: AksClusterPlan, count: int) -> aks.ManagedClusterAgentPoolProfileArgs:
        pool = plan.system_pool
        return aks.ManagedClusterAgentPoolProfileArgs(
            name=pool.name,
            mode=aks.AgentPoolMode.SYSTEM,
            vm_size=pool.vm_size,
            count=count,
            enable_auto_scaling=True if pool.max_count else None,
            min_count=pool.min_count,
            max_count=pool.max_count,
            orchestrator_version=plan.version,
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


def _entra(plan: EntraPlan | None) -> aks.ManagedClusterAADProfileArgs | None:
    if plan is None:
        return None
    return aks.ManagedClusterAADProfileArgs(
        managed=True,
        admin_group_object_ids=list(plan.admin_groups) or None,
        enable_azure_rbac=plan.azure_rbac,
        tenant_id=plan.tenant_id,
    )


def kubeconfig(
    resource_group: pulumi.Input[str], cluster: pulumi.Input[str], access: AccessPlan
) -> pulumi.Output[str]:
    """The kubeconfig that the service hands out, secret; kubelogin in it signs in as the plan says."""
    if access.credentials == "admin":
        answer: pulumi.Output[Any] = aks.list_managed_cluster_admin_credentials_output(
            resource_group_name=resource_group, resource_name=cluster
        )
    else:
        answer = aks.list_managed_cluster_user_credentials_output(
            format="exec" if access.login else None, resource_group_name=resource_group, resource_name=cluster
        )
    # The answer of an invoke is not secret by itself.
    text = pulumi.Output.secret(answer).apply(_first_kubeconfig)
    login = access.login
    return text.apply(lambda found: with_login(found, login)) if login else text


def _first_kubeconfig(answer: Any) -> str:
    return base64.b64decode(answer.kubeconfigs[0].value).decode()


@dataclass(frozen=True)
class Target:
    """The cluster that agent pools go into; `cluster` is the resource where the stack makes it.

    `group` and `cluster_name` are known before anything is made, the others follow from resources.
    """

    group: str
    cluster_name: str
    resource_group_name: pulumi.Input[str]
    name: pulumi.Input[str]
    subnet_id: pulumi.Input[str] | None
    cluster: pulumi.Resource | None


@dataclass(frozen=True)
class PoolAddress:
    """Where an agent pool is, or will be."""

    group: str
    cluster: str
    pool: str


def _count(plan: SystemPoolPlan | AgentPoolPlan, where: PoolAddress) -> tuple[int, bool]:
    """(count, whether the engine keeps the recorded one)."""
    if plan.max_count is None:
        return plan.count, False
    return count_to_send(plan.min_count or 0, plan.max_count, counted(where))


def counted(where: PoolAddress) -> Counted | None:
    """The pool as Azure has it now; None where there is none, or it cannot be read."""
    try:
        found = aks.get_agent_pool(
            agent_pool_name=where.pool, resource_group_name=where.group, resource_name=where.cluster
        )
    except Exception as error:
        pulumi.log.debug(f"agent pool {where.pool} was not read: {error}")
        return None
    scaled = bool(found.enable_auto_scaling)
    return Counted(
        int(found.count or 0), found.min_count if scaled else None, found.max_count if scaled else None
    )


class AgentPools(pulumi.ComponentResource):
    """All GPU pools of a stack; `pools` maps the stack file's names to the resources. They wait for `depends_on`."""

    def __init__(
        self,
        name: str,
        target: Target,
        pools: tuple[PoolPlan, ...],
        depends_on: list[pulumi.Resource] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gpufleet:aks:AgentPools", name, {}, opts)
        self._depends_on = depends_on
        self.pools = {pool.name: self._pool(target, pool) for pool in pools}
        self.register_outputs({"names": {n: p.name for n, p in self.pools.items()}})

    def _pool(self, target: Target, pool: PoolPlan) -> aks.AgentPool:
        plan = pool.resource
        if not isinstance(plan, AgentPoolPlan):
            raise TypeError("the plan of an AKS pool holds its agent pool")
        count, recorded = _count(plan, PoolAddress(target.group, target.cluster_name, plan.name))
        return aks.AgentPool(
            plan.name,
            agent_pool_name=plan.name,
            resource_group_name=target.resource_group_name,
            resource_name_=target.name,
            mode=aks.AgentPoolMode.USER,
            type=aks.AgentPoolType.VIRTUAL_MACHINE_SCALE_SETS,
            vm_size=plan.vm_size,
            gpu_instance_profile=plan.gpu_instance_profile,
            gpu_profile=aks.GPUProfileArgs(driver=plan.driver),
            os_type=aks.OSType.LINUX,
            os_sku=plan.os_sku,
            os_disk_size_gb=plan.os_disk_size_gb,
            os_disk_type=plan.os_disk_type,
            count=count,
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
            orchestrator_version=plan.version,
            vnet_subnet_id=target.subnet_id,
            tags=plan.tags or None,
            opts=pulumi.ResourceOptions(
                parent=self,
                deleted_with=target.cluster,
                depends_on=self._depends_on,
                ignore_changes=list(IGNORE_POOL_COUNT) if recorded else None,
                custom_timeouts=POOL_TIMEOUTS,
            ),
        )


def deploy(plan: Plan) -> Made:
    """Registers the cluster, unless it exists, then its pools: after the software whose keys their labels name.

    A node of a new pool has its labels from the start. So where the software is installed first, it finds no node that
    lacks the labels which keep parts of it away. Without such software the pools come first.
    """
    spec = plan.cluster
    if isinstance(spec, ExistingAksPlan):
        return _into_existing(plan, spec)
    if not isinstance(spec, AksClusterPlan):
        raise TypeError("not a cluster of AKS")
    seen = _seen(spec) if plan.labels_last else None
    made = Aks(spec.name, spec)
    outputs = {"kubeconfig": made.kubeconfig, "clusterId": made.cluster_id}
    provider = _provider(made.kubeconfig, made.cluster_id, made)
    inside = InCluster(provider, made.cluster, spec.protect)
    return _with_pools(plan, made.target, inside, outputs, seen)


def _into_existing(plan: Plan, spec: ExistingAksPlan) -> Made:
    """Agent pools in a cluster of somebody else. Its kubeconfig is an output, so nobody looks into it before."""
    found = aks.get_managed_cluster_output(resource_group_name=spec.resource_group, resource_name=spec.name)
    group, name = spec.resource_group, spec.name
    text = kubeconfig(spec.resource_group, spec.name, spec.access)
    inside = InCluster(_provider(text, found.id, None), None, spec.protect)
    target = Target(group, name, group, name, spec.subnet_id, None)
    return _with_pools(plan, target, inside, {"kubeconfig": text, "clusterId": found.id}, None)


def _with_pools(plan: Plan, target: Target, inside: InCluster, outputs: Mapping[str, Any], seen: Seen | None) -> Made:
    """The pools now, or after the software whose keys their labels name."""

    def pools(depends_on: list[pulumi.Resource] | None) -> list[pulumi.Resource]:
        return list(AgentPools(f"{target.cluster_name}-pools", target, plan.pools, depends_on).pools.values())

    def label(ready: list[pulumi.Resource], read: pulumi.Input[Any]) -> list[pulumi.Resource]:
        waits = labels_may_move(plan, seen, _wanted(plan, seen), outputs["kubeconfig"], None, read)
        return pools([*ready, *waits])

    if plan.labels_last:
        return Made(inside, [], outputs, seen, label)
    return Made(inside, pools(None), outputs)


def _provider(
    text: pulumi.Output[str], identifier: pulumi.Input[str], parent: pulumi.Resource | None
) -> k8s.Provider:
    return k8s.Provider(
        "cluster",
        kubeconfig=text,
        cluster_identifier=identifier,
        enable_server_side_apply=True,
        enable_config_map_mutable=True,
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _seen(spec: AksClusterPlan) -> Seen | None:
    """What is in the cluster; None where it is not there yet, or does not answer."""
    try:
        group, name, login = spec.resource_group, spec.name, spec.access.login
        answer: Any
        if spec.access.credentials == "admin":
            answer = aks.list_managed_cluster_admin_credentials(resource_group_name=group, resource_name=name)
        else:
            answer = aks.list_managed_cluster_user_credentials(
                format="exec" if login else None, resource_group_name=group, resource_name=name
            )
        text = _first_kubeconfig(answer)
        found = look(with_login(text, login) if login else text, None, pulumi.log.info)
    except Exception:  # the SDK has no narrower one; where Azure answers nobody, the engine says so
        return None
    return found[1] if found else None


def _wanted(plan: Plan, seen: Seen | None) -> dict[str, Mapping[str, str]]:
    """Node -> the labels that its pool will have; nodes of pools that go keep theirs."""
    pools = {pool.name: pool.labels for pool in plan.pools}
    nodes = seen.nodes if seen else {}
    return {name: pools[pool] for name, labels in nodes.items() if (pool := labels.get(POOL_LABEL)) in pools}
