"""What nodes and pods really do with a GPU, written from the vendors' sources and not from the product.

It takes what a stack registers (values of charts, labels of nodes, variables of the roles, objects) and says for a pod
whether it gets its GPU. Sources, read 2026-12-03: NVIDIA/gpu-operator v26.7.0, v26.3.0, v25.10.1 and v25.3.4
(controllers/object_controls.go, values.yaml), NVIDIA/k8s-device-plugin v0.20.0, NVIDIA/nvidia-container-toolkit
v1.20.0, containerd 1.7 and 2.1 (default configuration), Azure/AgentBaker (containerd files with and without GPU),
k3s-io/k3s (manifests/runtimes.yaml, pkg/agent/containerd), rancher/rke2-charts (rke2-runtimeclasses), rancher/rke2-docs
(gpu_operators), Project-HAMi/HAMi v2.10.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Runtime classes that are there before any GPU software: name -> handler.
CLASSES_BEFORE = {"k3s": {"nvidia": "nvidia"}, "rke2": {"nvidia": "nvidia"}}
#: They make containerd's file anew at each start, and find the runtime `nvidia` by its program. The drop-in that the
#: toolkit writes below /etc/containerd is not read there.
OWN_FILE = ("k3s", "rke2")
OPERATOR_HOOK = "/usr/local/nvidia/toolkit/nvidia-cdi-hook"
HOST_HOOK = "/usr/bin/nvidia-ctk"
AKS_HANDLER = "nvidia-container-runtime"


@dataclass
class Node:
    """The container runtime of a node."""

    handlers: set[str]
    default: str
    cdi: bool  # resolves CDI devices by itself
    hooks: set[str]
    by_variable: bool = True  # NVIDIA's runtime takes NVIDIA_VISIBLE_DEVICES from unprivileged containers
    cdi_mode: bool = False  # NVIDIA's runtime turns the variable into CDI devices, of which there is only `all`
    broken: str = ""


@dataclass
class Offer:
    """What the device plugin gives to a container."""

    strategy: str  # cdi, variable, nvidia-annotations
    hook: str | None


def _old(version: str) -> bool:
    return tuple(map(int, version[1:].split("."))) < (25, 10)


def cdi_on(version: str, values: dict[str, Any]) -> bool:
    """cdi.enabled as the chart takes it: its default is false up to 25.3 and true from 25.10 on."""
    return bool(values.get("cdi", {}).get("enabled", not _old(version)))


def nri_on(version: str, values: dict[str, Any]) -> bool:
    return bool(values.get("cdi", {}).get("nriPluginEnabled", False)) and version >= "v26.3"


def host(variables: dict[str, Any], containerd: str) -> Node:
    """A host that the roles prepared: toolkit from the packages, runtime `nvidia` beside runc."""
    if variables["gpu_container_toolkit_state"] != "present":
        return bare(containerd)
    default = "nvidia" if variables["gpu_container_toolkit_default_runtime"] else "runc"
    cdi = containerd == "2.1" or bool(variables.get("gpu_container_toolkit_cdi", False))
    return Node({"runc", "nvidia"}, default, cdi, {HOST_HOOK}, variables["gpu_container_toolkit_unprivileged_envvar"])


def bare(containerd: str) -> Node:
    """A node without a toolkit. enable_cdi is false by default in containerd 1.7 and true in 2.x."""
    return Node({"runc"}, "runc", containerd == "2.1", set())


def aks(driver: str) -> Node:
    """With the driver AKS writes its GPU file (handler and default, CDI on), without it the plain one (2.x: CDI on)."""
    if driver == "Install":
        return Node({"runc", AKS_HANDLER}, AKS_HANDLER, True, {HOST_HOOK})
    return Node({"runc"}, "runc", True, set())


def with_operator(
    node: Node, version: str, values: dict[str, Any], labels: dict[str, str], distribution: str
) -> Node:
    """What the operator's toolkit makes of a node, unless it is off there."""
    off = labels.get("nvidia.com/gpu.deploy.container-toolkit") == "false"
    if not values["toolkit"]["enabled"] or off:
        return node
    cdi = cdi_on(version, values) and not _old(version)
    env = {one["name"]: one["value"] for one in values["toolkit"].get("env", [])}
    broken = "containerd stops: a drop-in of a newer version than the root file (NVIDIA/aicr#1688)"
    if nri_on(version, values):
        return Node(node.handlers, node.default, True, node.hooks | {OPERATOR_HOOK}, cdi_mode=True)
    return Node(
        node.handlers | {"nvidia"},
        node.default if cdi or distribution in OWN_FILE else "nvidia",
        node.cdi or cdi,
        node.hooks | {OPERATOR_HOOK},
        cdi_mode=cdi,
        broken=broken if distribution == "aks" and env.get("RUNTIME_CONFIG_SOURCE") != "file" else "",
    )


def operator_offer(version: str, values: dict[str, Any]) -> Offer:
    """DEVICE_LIST_STRATEGY and the hook's path, one for all nodes of the release."""
    if not cdi_on(version, values):
        return Offer("variable", None)
    if _old(version):
        return Offer("nvidia-annotations", None)
    return Offer("cdi", OPERATOR_HOOK if values["toolkit"]["enabled"] else HOST_HOOK)


def classes(
    distribution: str, values: dict[str, Any] | None, version: str, made: str | None
) -> tuple[dict[str, str], list[str]]:
    """Runtime classes in the end, name -> handler, and what went wrong with them."""
    found, wrong = dict(CLASSES_BEFORE.get(distribution, {})), []
    if made is not None:
        if made in found:
            wrong.append(f"RuntimeClass {made} exists: AlreadyExists (pulumi-kubernetes 4.29 and later)")
        found[made] = made
    if values is not None:
        name = values["operator"]["runtimeClass"]
        if nri_on(version, values):
            wrong += [f"the operator deletes the distribution's RuntimeClass {name}"] if name in found else []
            found.pop(name, None)
        else:
            found[name] = name
    return found, wrong


def refused(values: dict[str, Any]) -> str | None:
    """The chart's own refusals about the container runtime."""
    cdi = values.get("cdi", {})
    if cdi.get("nriPluginEnabled") and (not cdi.get("enabled", True) or not values["toolkit"]["enabled"]):
        return "the chart refuses nriPluginEnabled without CDI or without the toolkit"
    return None


def runs(node: Node, runtime_class: str | None, known: dict[str, str]) -> tuple[str | None, str]:
    """(why a pod does not start, handler)."""
    if node.broken:
        return node.broken, ""
    if runtime_class is not None and runtime_class not in known:
        return f"RuntimeClass {runtime_class} is not there", ""
    handler = node.default if runtime_class is None else known[runtime_class]
    return (None, handler) if handler in node.handlers else (f"no runtime for {handler} is configured", handler)


def gets_gpu(node: Node, offer: Offer, runtime_class: str | None, known: dict[str, str]) -> str | None:
    """None where a pod with this class gets its GPU on this node; otherwise what happens."""
    why, handler = runs(node, runtime_class, known)
    if why:
        return why
    if offer.strategy == "cdi":
        if not node.cdi:
            return "the container starts without a GPU: the runtime resolves no CDI devices"
        return None if offer.hook in node.hooks else f"createContainer hook error: {offer.hook} is not there"
    if handler == "runc":
        return "the container starts without a GPU: runc knows neither the variable nor NVIDIA's annotations"
    if offer.strategy == "variable" and node.cdi_mode:
        return "unresolvable CDI devices management.nvidia.com/gpu=GPU-..."
    if offer.strategy == "variable" and not node.by_variable:
        return "the container starts without a GPU: the variable is ignored"
    return None


def sees_gpus(node: Node, runtime_class: str | None, known: dict[str, str]) -> str | None:
    """Whether a plugin's own pod, which takes all GPUs by NVIDIA_VISIBLE_DEVICES=all and is privileged, finds NVML."""
    why, handler = runs(node, runtime_class, known)
    return why or ("the plugin finds no NVML" if handler == "runc" else None)
