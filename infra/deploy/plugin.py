"""The standalone route in the cluster: per profile one ConfigMap and one DaemonSet."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from infra.deploy.namespace import privileged_namespace
from infra.deploy.options import InCluster
from infra.plan.names import MANAGED_BY, PROFILE_LABEL
from infra.plan.plugin_objects import CONFIG_FOLDER, CONFIG_KEY, DaemonSetPlan, PluginPlan

_APP = "gpufleet-device-plugin"
_SOCKETS = "/var/lib/kubelet/device-plugins"


class DevicePlugin(pulumi.ComponentResource):
    """NVIDIA's device plugin as the plan describes it; `daemon_sets` by profile."""

    def __init__(
        self,
        name: str,
        plan: PluginPlan,
        cluster: InCluster,
        depends_on: list[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gpufleet:plugin:DevicePlugin", name, {}, opts)
        namespace = privileged_namespace(plan.namespace, self, cluster)
        before = [*depends_on, namespace]
        if plan.runtime_class:
            before.append(
                k8s.node.v1.RuntimeClass(
                    f"runtime-class-{plan.runtime_class}",
                    metadata={"name": plan.runtime_class, "labels": MANAGED_BY},
                    handler=plan.runtime_class,
                    opts=cluster.options(self),
                )
            )
        self.daemon_sets = {d.profile: self._daemon_set(d, plan, cluster, namespace, before) for d in plan.daemon_sets}
        self.register_outputs({"daemonSets": [d.name for d in plan.daemon_sets]})

    def _daemon_set(
        self,
        plan: DaemonSetPlan,
        route: PluginPlan,
        cluster: InCluster,
        namespace: k8s.core.v1.Namespace,
        before: list[pulumi.Resource],
    ) -> k8s.apps.v1.DaemonSet:
        labels = {"app.kubernetes.io/name": _APP, PROFILE_LABEL: plan.profile}
        # Its name carries its content, so it is another resource after a change: made before the DaemonSet moves to
        # it, removed after.
        config = k8s.core.v1.ConfigMap(
            plan.config_map.name,
            metadata={"name": plan.config_map.name, "namespace": route.namespace, "labels": {**labels, **MANAGED_BY}},
            data=plan.config_map.data,
            immutable=True,
            opts=cluster.options(self, depends_on=[namespace]),
        )
        return k8s.apps.v1.DaemonSet(
            plan.name,
            metadata={"name": plan.name, "namespace": route.namespace, "labels": {**labels, **MANAGED_BY}},
            spec=k8s.apps.v1.DaemonSetSpecArgs(
                selector={"matchLabels": labels},
                update_strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
                template={"metadata": {"labels": labels}, "spec": _pod(plan, route)},
            ),
            opts=cluster.options(self, depends_on=[*before, config]),
        )


def _pod(plan: DaemonSetPlan, route: PluginPlan) -> k8s.core.v1.PodSpecArgs:
    return k8s.core.v1.PodSpecArgs(
        priority_class_name="system-node-critical",
        runtime_class_name=plan.runtime_class,
        automount_service_account_token=False,
        image_pull_secrets=[{"name": s} for s in route.pull_secrets] or None,
        affinity=k8s.core.v1.AffinityArgs(
            node_affinity=k8s.core.v1.NodeAffinityArgs(
                required_during_scheduling_ignored_during_execution=k8s.core.v1.NodeSelectorArgs(
                    node_selector_terms=[dict(term) for term in plan.affinity]
                )
            )
        ),
        tolerations=[dict(t) for t in plan.tolerations],
        containers=[
            k8s.core.v1.ContainerArgs(
                name="nvidia-device-plugin",
                image=plan.image,
                env=[
                    {"name": "CONFIG_FILE", "value": f"{CONFIG_FOLDER}/{CONFIG_KEY}"},
                    # Device access granted behind the runtime's back is lost when the kubelet rewrites cgroups
                    # (Azure/AKS#3680); passing device specs needs privilege.
                    {"name": "PASS_DEVICE_SPECS", "value": "true"},
                ],
                security_context={"privileged": True},
                volume_mounts=[
                    {"name": "sockets", "mountPath": _SOCKETS},
                    {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
                ],
            )
        ],
        volumes=[
            {"name": "sockets", "hostPath": {"path": _SOCKETS}},
            {"name": "config", "configMap": {"name": plan.config_map.name}},
        ],
    )
