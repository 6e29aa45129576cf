"""GPU pools of an AKS cluster, one AgentPool resource each; none is ever declared inside the cluster."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import containerservice as aks

from gpufleet.deploy.aks import Aks
from gpufleet.deploy.options import IGNORE_POOL_COUNT, POOL_TIMEOUTS
from gpufleet.plan.pool_names import spot_max_price
from gpufleet.plan.pool_plan import PoolPlan
from gpufleet.stackfile.pools import AksPool


class AgentPools(pulumi.ComponentResource):
    """All GPU pools of a stack; `pools` maps the stack file's names to the resources."""

    def __init__(
        self,
        name: str,
        cluster: Aks,
        pools: tuple[tuple[AksPool, PoolPlan], ...],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gpufleet:aks:AgentPools", name, {}, opts)
        self.pools = {spec.name: self._pool(cluster, spec, plan) for spec, plan in pools}
        self.register_outputs({"names": {n: p.name for n, p in self.pools.items()}})

    def _pool(self, cluster: Aks, spec: AksPool, plan: PoolPlan) -> aks.AgentPool:
        name = plan.azure_name
        if name is None or plan.aks_driver is None:
            raise ValueError("the plan of an AKS pool names pool and driver")
        scale, spot = spec.autoscale, spec.spot
        return aks.AgentPool(
            name,
            agent_pool_name=name,
            resource_group_name=cluster.resource_group_name,
            resource_name_=cluster.cluster.name,
            mode=aks.AgentPoolMode.USER,
            type=aks.AgentPoolType.VIRTUAL_MACHINE_SCALE_SETS,
            vm_size=spec.vm_size,
            gpu_instance_profile=plan.gpu_instance_profile,
            gpu_profile=aks.GPUProfileArgs(driver=plan.aks_driver),
            os_type=aks.OSType.LINUX,
            os_sku=spec.os_sku,
            os_disk_size_gb=spec.os_disk_size_gb,
            os_disk_type=spec.os_disk_type,
            count=scale.min if scale else (1 if spec.count is None else spec.count),
            enable_auto_scaling=True if scale else None,
            min_count=scale.min if scale else None,
            max_count=scale.max if scale else None,
            scale_down_mode=spec.scale_down_mode,
            scale_set_priority=aks.ScaleSetPriority.SPOT if spot else None,
            scale_set_eviction_policy=aks.ScaleSetEvictionPolicy.DELETE if spot else None,
            spot_max_price=spot_max_price(spec),
            node_taints=list(plan.taints) or None,
            node_labels=plan.labels,
            max_pods=spec.max_pods,
            availability_zones=list(spec.zones) or None,
            upgrade_settings=aks.AgentPoolUpgradeSettingsArgs(
                max_surge=spec.max_surge, max_unavailable=spec.max_unavailable
            ),
            vnet_subnet_id=cluster.subnet_id,
            tags=spec.tags or None,
            opts=pulumi.ResourceOptions(
                parent=self,
                deleted_with=cluster.cluster,
                ignore_changes=list(IGNORE_POOL_COUNT) if scale else None,
                custom_timeouts=POOL_TIMEOUTS,
            ),
        )
