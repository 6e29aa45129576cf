"""The AKS cluster: resource group, optional network, managed cluster with one inline system pool."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_azure_native import containerservice as aks
from pulumi_azure_native import resources as azure

from gpufleet.deploy.options import CLUSTER_TIMEOUTS, IGNORE_SYSTEM_POOL_COUNT
from gpufleet.stackfile.cluster import AksCluster, SystemPool


@dataclass(frozen=True)
class Network:
    """Ids of what the nodes attach to; None: AKS makes its own."""

    subnet_id: pulumi.Input[str] | None


class Aks(pulumi.ComponentResource):
    """An AKS cluster without GPU pools.

    Outputs: `kubeconfig` (secret), `cluster_id` (ARM id), `resource_group_name`, `subnet_id` (or None).
    """

    def __init__(self, name: str, spec: AksCluster, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aks:Cluster", name, {}, opts)
        group_name = spec.resource_group.name if spec.resource_group else f"rg-{spec.name}"
        child = pulumi.ResourceOptions(parent=self)
        self.resource_group_name: pulumi.Input[str] = group_name
        if not (spec.resource_group and spec.resource_group.existing):
            group = azure.ResourceGroup(
                group_name,
                resource_group_name=group_name,
                location=spec.location,
                tags=spec.tags or None,
                opts=pulumi.ResourceOptions(parent=self, protect=spec.protect or None),
            )
            self.resource_group_name = group.name
        self.subnet_id = self._subnet(spec, child)
        ignored = list(IGNORE_SYSTEM_POOL_COUNT) if spec.system_pool.autoscale else None
        self.cluster = aks.ManagedCluster(
            spec.name,
            resource_name_=spec.name,
            resource_group_name=self.resource_group_name,
            location=spec.location,
            dns_prefix=spec.name.replace("_", "-").replace(".", "-")[:54].rstrip("-"),  # longer ones are refused
            kubernetes_version=spec.version,
            enable_rbac=True,
            identity=aks.ManagedClusterIdentityArgs(type=aks.ResourceIdentityType.SYSTEM_ASSIGNED),
            sku=aks.ManagedClusterSKUArgs(name="Base", tier=spec.tier),
            auto_upgrade_profile=aks.ManagedClusterAutoUpgradeProfileArgs(upgrade_channel=spec.upgrade_channel),
            agent_pool_profiles=[self._system_pool(spec.system_pool)],
            network_profile=self._network_profile(),
            tags=spec.tags or None,
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=spec.protect or None,
                ignore_changes=ignored,
                custom_timeouts=CLUSTER_TIMEOUTS,
            ),
        )
        self.cluster_id = self.cluster.id
        self.kubeconfig = self._kubeconfig()
        self.register_outputs({"clusterId": self.cluster_id, "kubeconfig": self.kubeconfig})

    def _subnet(self, spec: AksCluster, child: pulumi.ResourceOptions) -> pulumi.Input[str] | None:
        if spec.network is None:
            return None
        if spec.network.subnet_id is not None:
            return spec.network.subnet_id
        from pulumi_azure_native import network  # a large module: only where it is needed

        vnet = network.VirtualNetwork(
            f"vnet-{spec.name}",
            virtual_network_name=f"vnet-{spec.name}",
            resource_group_name=self.resource_group_name,
            location=spec.location,
            address_space=network.AddressSpaceArgs(address_prefixes=[spec.network.vnet_cidr or ""]),
            tags=spec.tags or None,
            opts=child,
        )
        subnet = network.Subnet(
            f"snet-{spec.name}",
            subnet_name=f"snet-{spec.name}",
            virtual_network_name=vnet.name,
            resource_group_name=self.resource_group_name,
            address_prefix=spec.network.subnet_cidr,
            opts=child,
        )
        subnet_id: pulumi.Output[str] = subnet.id
        return subnet_id

    def _system_pool(self, pool: SystemPool) -> aks.ManagedClusterAgentPoolProfileArgs:
        scale = pool.autoscale
        return aks.ManagedClusterAgentPoolProfileArgs(
            name=pool.name,
            mode=aks.AgentPoolMode.SYSTEM,
            vm_size=pool.vm_size,
            count=scale.min if scale else (pool.count or 1),
            enable_auto_scaling=True if scale else None,
            min_count=scale.min if scale else None,
            max_count=scale.max if scale else None,
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
