"""The standalone route in the cluster: per profile one ConfigMap and one DaemonSet."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from gpufleet.deploy.namespace import privileged_namespace, pull_secret
from gpufleet.methods.mps import MPS_ROOT
from gpufleet.parts.names import MANAGED_BY, PROFILE_LABEL, ROUTE_LABEL
from gpufleet.places.options import InCluster
from gpufleet.routes.plugin import CONFIG_FOLDER, CONFIG_KEY, DaemonSetPlan, PluginPlan

_APP = "gpufleet-device-plugin"
_MPS_APP = "gpufleet-mps-control-daemon"
_SOCKETS = "/var/lib/kubelet/device-plugins"
_CONFIG_MOUNT = {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}
#: Where the plugin's image expects the daemon's pipes and shared memory (device plugin chart 0.20).
_MPS_MOUNTS = ({"name": "mps-root", "mountPath": "/mps"}, {"name": "mps-shm", "mountPath": "/dev/shm"})


class DevicePlugin(pulumi.ComponentResource):
    """NVIDIA's device plugin as the plan describes it; `daemon_sets` by profile."""

    def __init__(
        self,
        plan: PluginPlan,
        cluster: InCluster,
        depends_on: list[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gpufleet:plugin:DevicePlugin", "device-plugin", {}, opts)
        namespace = privileged_namespace(plan.namespace, self, cluster)
        before = [*depends_on, namespace, *pull_secret(plan, namespace, self, cluster)]
        if plan.runtime_class:
            before.append(
                k8s.node.v1.RuntimeClass(
                    f"runtime-class-{plan.runtime_class}",
                    metadata={"name": plan.runtime_class, "labels": MANAGED_BY},
                    handler=plan.runtime_class,
                    opts=pulumi.ResourceOptions.merge(
                        cluster.options(self), pulumi.ResourceOptions(retain_on_delete=plan.keep_runtime_class or None)
                    ),
                )
            )
        self.daemon_sets = {d.profile: self._daemon_set(d, plan, cluster, namespace, before) for d in plan.daemon_sets}
        self.register_outputs({"daemonSets": [d.name for d in plan.daemon_sets]})

    def _daemon_set(
        self,
        plan: DaemonSetPlan,
        route: PluginPlan,
        cluster: InCluster,
        namespace: pulumi.Resource,
        before: list[pulumi.Resource],
    ) -> k8s.apps.v1.DaemonSet:
        labels = {"app.kubernetes.io/name": _APP, PROFILE_LABEL: plan.profile}
        # Its name carries its content, so it is another resource after a change: made before the DaemonSet moves to
        # it, removed after.
        config = k8s.core.v1.ConfigMap(
            plan.config_map.name,
            metadata={
                "name": plan.config_map.name,
                "namespace": route.namespace,
                "labels": {**labels, **MANAGED_BY, ROUTE_LABEL: "plugin"},
            },
            data=plan.config_map.data,
            immutable=True,
            opts=cluster.options(self, depends_on=[namespace]),
        )
        ready = [*before, config]
        if plan.control_daemon:
            mps = {"app.kubernetes.io/name": _MPS_APP, PROFILE_LABEL: plan.profile}
            pod = _pod(plan, route, _mps_container(plan), _mps_init(plan))
            ready.append(_daemon_set(plan.control_daemon, mps, pod, route, cluster.options(self, depends_on=ready)))
        pod = _pod(plan, route, _plugin_container(plan), None)
        return _daemon_set(plan.name, labels, pod, route, cluster.options(self, depends_on=ready))


def _daemon_set(
    name: str, labels: dict[str, str], pod: k8s.core.v1.PodSpecArgs, route: PluginPlan, opts: pulumi.ResourceOptions
) -> k8s.apps.v1.DaemonSet:
    return k8s.apps.v1.DaemonSet(
        name,
        metadata={"name": name, "namespace": route.namespace, "labels": {**labels, **MANAGED_BY}},
        spec=k8s.apps.v1.DaemonSetSpecArgs(
            selector={"matchLabels": labels},
            update_strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
            template={"metadata": {"labels": labels}, "spec": pod},
        ),
        opts=opts,
    )


def _plugin_container(plan: DaemonSetPlan) -> k8s.core.v1.ContainerArgs:
    env = {
        "CONFIG_FILE": f"{CONFIG_FOLDER}/{CONFIG_KEY}",
        # Device access granted behind the runtime's back is lost when the kubelet rewrites cgroups
        # (Azure/AKS#3680); passing device specs needs privilege.
        "PASS_DEVICE_SPECS": "true",
        **plan.env,
    }
    return k8s.core.v1.ContainerArgs(
        name="nvidia-device-plugin",
        image=plan.image,
        env=[{"name": k, "value": v} for k, v in env.items()],
        security_context={"privileged": True},
        volume_mounts=[
            {"name": "sockets", "mountPath": _SOCKETS},
            _CONFIG_MOUNT,
            *(_MPS_MOUNTS if plan.control_daemon else ()),
        ],
    )


def _mps_container(plan: DaemonSetPlan) -> k8s.core.v1.ContainerArgs:
    return k8s.core.v1.ContainerArgs(
        name="mps-control-daemon",
        image=plan.image,
        command=["mps-control-daemon"],
        env=[
            {"name": "CONFIG_FILE", "value": f"{CONFIG_FOLDER}/{CONFIG_KEY}"},
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"},
        ],
        security_context={"privileged": True},
        volume_mounts=[_CONFIG_MOUNT, *_MPS_MOUNTS],
    )


def _mps_init(plan: DaemonSetPlan) -> k8s.core.v1.ContainerArgs:
    """Makes the shared memory that clients and daemon meet in; it must reach the host, hence the propagation."""
    return k8s.core.v1.ContainerArgs(
        name="mps-control-daemon-mounts",
        image=plan.image,
        command=["mps-control-daemon", "mount-shm"],
        security_context={"privileged": True},
        volume_mounts=[{"name": "mps-root", "mountPath": "/mps", "mountPropagation": "Bidirectional"}],
    )


def _pod(
    plan: DaemonSetPlan,
    route: PluginPlan,
    container: k8s.core.v1.ContainerArgs,
    init: k8s.core.v1.ContainerArgs | None,
) -> k8s.core.v1.PodSpecArgs:
    """A pod of the plugin, or with `init` of the MPS control daemon."""
    volumes: list[dict[str, object]] = [{"name": "config", "configMap": {"name": plan.config_map.name}}]
    if init is None:
        volumes.append({"name": "sockets", "hostPath": {"path": _SOCKETS}})
    if plan.control_daemon:
        volumes.append({"name": "mps-root", "hostPath": {"path": MPS_ROOT, "type": "DirectoryOrCreate"}})
        volumes.append({"name": "mps-shm", "hostPath": {"path": f"{MPS_ROOT}/shm"}})
    return k8s.core.v1.PodSpecArgs(
        priority_class_name="system-node-critical",
        runtime_class_name=plan.runtime_class,
        automount_service_account_token=False,
        host_pid=True if plan.control_daemon else None,
        image_pull_secrets=[{"name": s} for s in route.pull_secrets] or None,
        affinity=k8s.core.v1.AffinityArgs(
            node_affinity=k8s.core.v1.NodeAffinityArgs(
                required_during_scheduling_ignored_during_execution=k8s.core.v1.NodeSelectorArgs(
                    node_selector_terms=[dict(term) for term in plan.affinity]
                )
            )
        ),
        tolerations=[dict(t) for t in plan.tolerations],
        init_containers=[init] if init is not None else None,
        containers=[container],
        volumes=volumes,
    )
