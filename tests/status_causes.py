"""A cluster that is exactly as a plan says, as the API's JSON, and ways in which one goes wrong at night.

Used against a stand-in (tests/unit/status) and against a real API server (tests/engine). The states are those that
kubelet, node problem detector and GPU Operator show (reference of the catalogue's table node_health).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpufleet.plan.model import Plan

from tests.unit.config.samples import compile_base, told

NODE, NAMESPACE = "n1", "gpu-operator"
Object = dict[str, Any]

SHARED = {
    "pools[0]": {
        "name": "h100", "hosts": {NODE: {}}, "gpu": "H100-NVL", "gpusPerNode": 1, "os": "ubuntu-22.04",
        "driver": "operator", "sharing": "ts",
    },
    "sharing": {"ts": {"strategy": "timeSlicing", "replicas": 4}},
}  # fmt: skip
RENAMED = {**SHARED, "sharing": {"ts": {"strategy": "timeSlicing", "replicas": 4, "renameByDefault": True}}}
CUT = {**SHARED, "sharing": {"ts": {"strategy": "mig", "profile": "1g.12gb"}}}


def plan_of(changes: dict[str, Any]) -> Plan:
    compiled = compile_base("existing-operator", changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


@dataclass
class Made:
    """The objects of a cluster with one node."""

    plan: Plan
    node: Object
    pods: dict[str, Object]
    config_map: Object
    policy: Object
    workloads: list[Object] = field(default_factory=list)

    def kinds(self) -> dict[str, list[Object]]:
        """By kind, as lists."""
        return {
            "nodes": [self.node],
            "pods": [*self.pods.values(), *self.workloads],
            "configmaps": [self.config_map],
            "clusterpolicies": [self.policy],
        }


def container_status(name: str, state: Object, **more: Any) -> Object:
    running = "running" in state
    return {
        "name": name, "image": "i", "imageID": "", "ready": running, "started": running, "restartCount": 0,
        "state": state, **more,
    }  # fmt: skip


RUNS = {"running": {"startedAt": "2026-12-01T00:00:00Z"}}
ENDED = {"startedAt": "2026-12-01T00:00:00Z", "finishedAt": "2026-12-01T00:00:00Z"}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed", **ENDED}}
BEGINS = {"waiting": {"reason": "PodInitializing"}}


def failed(code: int = 1) -> Object:
    return {"terminated": {"exitCode": code, "reason": "Error", **ENDED}}


def pod(name: str, container: str, init: tuple[str, ...] = (), config_map: str | None = None) -> Object:
    """A ready pod of the operator's on the node."""
    volumes = [{"name": "c", "configMap": {"name": config_map}}] if config_map else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "nodeName": NODE,
            "tolerations": [{"operator": "Exists"}],
            "initContainers": [{"name": one, "image": "i"} for one in init],
            "containers": [{"name": container, "image": "i"}],
            "volumes": volumes,
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "initContainerStatuses": [container_status(one, DONE) | {"ready": True} for one in init],
            "containerStatuses": [container_status(container, RUNS)],
        },
    }


def made(changes: dict[str, Any]) -> Made:
    """The cluster as the plan says."""
    plan = plan_of(changes)
    assert plan.operator is not None
    pool, config = plan.pools[0], plan.operator.config_map
    resources = {name: str(count) for name, count in pool.node.resources.items()}
    labels = {**pool.node.labels, "nvidia.com/gpu.present": "true"}
    if plan.operator.mig_config:
        labels["nvidia.com/mig.config.state"] = "success"
    return Made(
        plan,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": labels},
            "spec": {},
            "status": {
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "capacity": dict(resources),
                "allocatable": dict(resources),
            },
        },
        {
            "driver": pod("nvidia-driver-daemonset-x", "nvidia-driver-ctr", ("k8s-driver-manager",)),
            "toolkit": pod("nvidia-container-toolkit-daemonset-x", "nvidia-container-toolkit-ctr",
                           ("driver-validation",)),
            "plugin": pod("nvidia-device-plugin-daemonset-x", "nvidia-device-plugin",
                          ("toolkit-validation", "config-manager-init"), config.name),
            "mig": pod("nvidia-mig-manager-x", "nvidia-mig-manager", ("toolkit-validation",)),
            "validator": pod("nvidia-operator-validator-x", "nvidia-operator-validator",
                             ("driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation")),
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": config.name, "namespace": NAMESPACE, "labels": {"gpufleet.dev/route": "operator"}},
            "data": dict(config.data),
        },
        {
            "apiVersion": "nvidia.com/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "cluster-policy"},
            "spec": {},
            "status": {"state": "ready", "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled"}]},
        },
    )  # fmt: skip


def unready(one: Object, *, init: dict[str, Object] | None = None, main: Object | None = None) -> None:
    """The pod is not ready: its container shows `main`, or the init containers named show other states."""
    status = one["status"]
    status["conditions"] = [{"type": "Ready", "status": "False"}]
    name = one["spec"]["containers"][0]["name"]
    if init is None:
        status["containerStatuses"] = [container_status(name, main or RUNS, ready=False, restartCount=5)]
        return
    status["phase"] = "Pending"
    states, past = [], False
    for old in status["initContainerStatuses"]:
        state = BEGINS if past else init.get(old["name"], DONE)
        past = past or old["name"] in init
        states.append(container_status(old["name"], state) | {"ready": state is DONE})
    status["initContainerStatuses"] = states
    status["containerStatuses"] = [container_status(name, BEGINS)]


def crash_loop(container: str, of: str) -> Object:
    text = f"back-off 5m0s restarting failed container={container} pod={of}_{NAMESPACE}(0-1)"
    return {"waiting": {"reason": "CrashLoopBackOff", "message": text}}


def condition(cluster: Made, kind: str, status: str, reason: str, message: str) -> None:
    one = {"type": kind, "status": status, "reason": reason, "message": message}
    cluster.node["status"]["conditions"].append(one)


def offers(cluster: Made, capacity: dict[str, int], allocatable: dict[str, int] | None = None) -> None:
    cluster.node["status"]["capacity"] = {k: str(v) for k, v in capacity.items()}
    cluster.node["status"]["allocatable"] = {k: str(v) for k, v in (allocatable or capacity).items()}


def cordoned(cluster: Made) -> None:
    cluster.node["spec"] = {
        "unschedulable": True,
        "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
    }


def holders(cluster: Made, count: int, resource: str = "nvidia.com/gpu", **status: Any) -> None:
    """Running pods of users, each with one device."""
    for i in range(count):
        one = pod(f"notebook-{i}", "main")
        one["metadata"]["namespace"] = "default"
        one["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}, "requests": {resource: "1"}}
        one["status"].update(status)
        cluster.workloads.append(one)


def waits_for_toolkit(cluster: Made, *names: str) -> None:
    for name in names:
        unready(cluster.pods[name], init={"toolkit-validation": RUNS})


# --- what goes wrong


def not_ready(c: Made) -> None:
    c.node["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting"}
    ]


def gpu_missing(c: Made) -> None:
    cordoned(c)
    condition(c, "GPUMissing", "True", "GPUMissing", "expected 1 GPU, found 0")


def unknown_gpu_condition(c: Made) -> None:
    condition(c, "SysLogsXIDError", "True", "SysLogsXIDErrorIsNotHealthy", "Xid 79, GPU has fallen off the bus")


def accelerator_not_ready(c: Made) -> None:
    condition(c, "AcceleratedHardwareReady", "False", "NvidiaXID64Error", "row remapping failed")


def unhealthy(c: Made) -> None:
    offers(c, {"nvidia.com/gpu": 4}, {"nvidia.com/gpu": 0})


def driver_crashes(c: Made) -> None:
    offers(c, {})
    unready(c.pods["driver"], main=crash_loop("nvidia-driver-ctr", "nvidia-driver-daemonset-x"))
    unready(c.pods["toolkit"], init={"driver-validation": RUNS})
    waits_for_toolkit(c, "plugin", "mig")
    unready(c.pods["validator"], init={"driver-validation": RUNS})


def driver_image(c: Made) -> None:
    offers(c, {})
    why = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "driver:580-ubuntu22.04"'}
    unready(c.pods["driver"], main={"waiting": why})
    waits_for_toolkit(c, "plugin")


def driver_builds(c: Made) -> None:
    offers(c, {})
    unready(c.pods["driver"], main=RUNS)
    c.pods["driver"]["status"]["containerStatuses"][0]["started"] = False
    waits_for_toolkit(c, "plugin")


def toolkit_fails(c: Made) -> None:
    offers(c, {})
    unready(c.pods["toolkit"], main=crash_loop("nvidia-container-toolkit-ctr", "nvidia-container-toolkit-daemonset-x"))
    waits_for_toolkit(c, "plugin", "mig", "validator")


def validator_fails(c: Made) -> None:
    unready(c.pods["validator"], init={"cuda-validation": failed()})


def plugin_image(c: Made) -> None:
    offers(c, {})
    unready(c.pods["plugin"], main={"waiting": {"reason": "ErrImagePull", "message": "unauthorized"}})
    unready(c.pods["validator"], init={"plugin-validation": failed()})


def plugin_repelled(c: Made) -> None:
    offers(c, {})
    c.node["spec"]["taints"] = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
    for name in ("plugin", "mig", "validator"):
        del c.pods[name]


def plugin_switched_off(c: Made) -> None:
    offers(c, {})
    c.node["metadata"]["labels"]["nvidia.com/gpu.deploy.operands"] = "false"
    c.pods.clear()


def key_is_gone(c: Made) -> None:
    offers(c, {})
    del c.config_map["data"]["ts"]
    unready(c.pods["plugin"], init={"config-manager-init": failed()})


def mig_failed(c: Made) -> None:
    offers(c, {"nvidia.com/gpu": 1})
    c.node["metadata"]["labels"]["nvidia.com/mig.config.state"] = "failed"


def mig_at_work(c: Made) -> None:
    offers(c, {})
    labels = c.node["metadata"]["labels"]
    labels |= {"nvidia.com/mig.config.state": "pending", "nvidia.com/gpu.deploy.device-plugin": "paused-for-mig-change"}
    del c.pods["plugin"]


def old_configuration(c: Made) -> None:
    offers(c, {"nvidia.com/gpu": 10})
    c.pods["plugin"]["spec"]["volumes"] = [{"name": "c", "configMap": {"name": "gpufleet-sharing-old"}}]


def pods_above_the_offer(c: Made) -> None:
    holders(c, 9)


def renamed_and_still_held(c: Made) -> None:
    offers(c, {"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 4})
    holders(c, 9)


def no_pool_label(c: Made) -> None:
    del c.node["metadata"]["labels"]["gpufleet.dev/pool"]


def policy_not_ready(c: Made) -> None:
    offers(c, {})
    c.pods.clear()
    error = {"type": "Error", "status": "True", "reason": "ReconcileFailed", "message": "no such runtime class"}
    c.policy["status"] = {"state": "notReady", "conditions": [error]}


#: name -> (stack, what goes wrong, how the first line for the node begins)
CAUSES: dict[str, tuple[dict[str, Any], Callable[[Made], None], str]] = {
    "node-not-ready": (SHARED, not_ready, "the node is not Ready: NodeStatusUnknown: Kubelet stopped posting"),
    "RP-47-gpu-missing": (
        SHARED, gpu_missing, "GPU fault: condition GPUMissing is True: GPUMissing: expected 1 GPU, found 0"),
    "unknown-gpu-condition": (
        SHARED, unknown_gpu_condition,
        "GPU fault: condition SysLogsXIDError is True: SysLogsXIDErrorIsNotHealthy: Xid 79"),
    "accelerator-not-ready": (
        SHARED, accelerator_not_ready, "GPU fault: condition AcceleratedHardwareReady is False: NvidiaXID64Error"),
    "RP-48-unhealthy": (SHARED, unhealthy, "4 of 4 devices of nvidia.com/gpu are unhealthy"),
    "RP-49-driver-crashes": (
        SHARED, driver_crashes,
        "driver pod nvidia-driver-daemonset-x is not ready: CrashLoopBackOff: back-off 5m0s"),
    "driver-image": (SHARED, driver_image, "driver pod nvidia-driver-daemonset-x is not ready: ImagePullBackOff"),
    "driver-builds": (
        SHARED, driver_builds,
        "driver pod nvidia-driver-daemonset-x is not ready: container nvidia-driver-ctr runs and has not passed"),
    "toolkit-fails": (
        SHARED, toolkit_fails, "toolkit pod nvidia-container-toolkit-daemonset-x is not ready: CrashLoopBackOff"),
    "validator-fails": (
        SHARED, validator_fails,
        "validator pod nvidia-operator-validator-x is not ready: init container cuda-validation: Error (exit code 1)"),
    "plugin-image": (
        SHARED, plugin_image, "plugin pod nvidia-device-plugin-daemonset-x is not ready: ErrImagePull: unauthorized"),
    "plugin-repelled": (SHARED, plugin_repelled, "no plugin pod: taint team=x:NoSchedule is not tolerated"),
    "plugin-switched-off": (
        SHARED, plugin_switched_off, "no plugin pod: label nvidia.com/gpu.deploy.operands=false keeps it off the node"),
    "key-is-gone": (
        SHARED, key_is_gone, "label nvidia.com/device-plugin.config names ts, which is no key of ConfigMap"),
    "mig-failed": (CUT, mig_failed, "the MIG manager could not apply layout"),
    "mig-at-work": (CUT, mig_at_work, "the MIG manager has not applied layout"),
    "old-configuration": (
        SHARED, old_configuration, "plugin pod nvidia-device-plugin-daemonset-x still uses gpufleet-sharing-old"),
    "RP-50-pods-above-the-offer": (
        SHARED, pods_above_the_offer, "9 pods hold 9 nvidia.com/gpu, and the pool offers 4 on a node: default/n"),
    "RP-50-renamed-and-still-held": (
        RENAMED, renamed_and_still_held, "9 pods hold nvidia.com/gpu, which the pool no longer offers: default/n"),
    "no-pool-label": (SHARED, no_pool_label, "label gpufleet.dev/pool is missing, declared h100"),
    "policy-not-ready": (
        SHARED, policy_not_ready,
        "no plugin pod: ClusterPolicy cluster-policy is notReady: ReconcileFailed: no such runtime class"),
}  # fmt: skip
