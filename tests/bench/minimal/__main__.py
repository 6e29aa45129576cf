"""The resources of the stack aks-dev, as a platform engineer would write them down without gpufleet."""

import base64

import pulumi
import pulumi_kubernetes as k8s
from pulumi_azure_native import containerservice as aks
from pulumi_azure_native import resources as azure

group = azure.ResourceGroup("rg-vision-dev", resource_group_name="rg-vision-dev", location="eastus")
cluster = aks.ManagedCluster(
    "vision-dev",
    resource_name_="vision-dev",
    resource_group_name=group.name,
    location="eastus",
    dns_prefix="vision-dev",
    kubernetes_version="1.36",
    identity=aks.ManagedClusterIdentityArgs(type=aks.ResourceIdentityType.SYSTEM_ASSIGNED),
    agent_pool_profiles=[
        aks.ManagedClusterAgentPoolProfileArgs(name="system", mode="System", vm_size="Standard_D4s_v5", count=1)
    ],
)
pools = [
    aks.AgentPool(
        name,
        agent_pool_name=name,
        resource_group_name=group.name,
        resource_name_=cluster.name,
        mode="User",
        vm_size="Standard_NC4as_T4_v3",
        gpu_profile=aks.GPUProfileArgs(driver="Install"),
        count=1,
        enable_auto_scaling=True,
        min_count=1,
        max_count=most,
        node_labels={"gpufleet.dev/pool": label, **labels},
        node_taints=taints,
        **spot,
    )
    for name, label, most, labels, taints, spot in (
        ("t4357e", "t4", 4, {}, ["sku=gpu:NoSchedule"], {}),
        (
            "t4spot0f21",
            "t4spot",
            8,
            {"kubernetes.azure.com/scalesetpriority": "spot"},
            ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule", "sku=gpu:NoSchedule"],
            {"scale_set_priority": "Spot", "scale_set_eviction_policy": "Delete", "spot_max_price": -1},
        ),
    )
]
answer = aks.list_managed_cluster_user_credentials_output(resource_group_name=group.name, resource_name=cluster.name)
kubeconfig = pulumi.Output.secret(answer).apply(lambda a: base64.b64decode(a.kubeconfigs[0].value).decode())
provider = k8s.Provider("cluster", kubeconfig=kubeconfig, cluster_identifier=cluster.id)
inside = pulumi.ResourceOptions(provider=provider, depends_on=pools)
k8s.core.v1.Namespace("plugin", metadata={"name": "gpu-plugin"}, opts=inside)
k8s.core.v1.ConfigMap(
    "notebooks",
    metadata={"name": "notebooks", "namespace": "gpu-plugin"},
    data={"config.yaml": "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"},
    opts=inside,
)
k8s.apps.v1.DaemonSet(
    "plugin-notebooks",
    metadata={"name": "plugin", "namespace": "gpu-plugin"},
    spec={
        "selector": {"matchLabels": {"app": "plugin"}},
        "template": {
            "metadata": {"labels": {"app": "plugin"}},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {
                        "name": "plugin",
                        "image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
                        "env": [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}],
                        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
                    }
                ],
                "volumes": [{"name": "config", "configMap": {"name": "notebooks"}}],
            },
        },
    },
    opts=inside,
)
k8s.core.v1.Namespace("vision", metadata={"name": "vision"}, opts=inside)
k8s.core.v1.ResourceQuota(
    "vision-gpus",
    metadata={"name": "gpus", "namespace": "vision"},
    spec={"hard": {"requests.nvidia.com/gpu": "16"}},
    opts=inside,
)
