"""Objects as the API's JSON -> what `status` keeps of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from gpufleet.catalog import operands
from gpufleet.parts.device_requests import PREFIX, GpuPod, gpu_pod
from gpufleet.status.observed import Condition, ObservedNode, OperandPod, Policy

Object = Mapping[str, Any]

#: Conditions of the kubelet itself; only Ready is kept of them.
_OF_KUBELET = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
#: Reasons of a container that has not begun, and says nothing.
_BEGINS = (None, "", "ContainerCreating", "PodInitializing")
#: Containers with the plugin's image that register nothing.
_BESIDE = ("feature-discovery", "config-manager", "mps-control-daemon")
_POD_OF_MESSAGE = re.compile(r" pod=\S+$")


class SeenPod(NamedTuple):
    """What is kept of a pod: its part in the GPU software, and the devices that it holds."""

    operand: OperandPod | None
    holder: GpuPod | None


def read_node(node: Object) -> ObservedNode:
    """One node."""
    meta, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    conditions = tuple(
        Condition(c["type"], c.get("status", ""), c.get("reason") or "", c.get("message") or "")
        for c in status.get("conditions") or ()
        if c["type"] not in _OF_KUBELET
    )
    return ObservedNode(
        name=meta["name"],
        ready=any(c.type == "Ready" and c.status == "True" for c in conditions),
        labels=dict(meta.get("labels") or {}),
        taints=tuple((t["key"], t.get("value") or "", t["effect"]) for t in spec.get("taints") or ()),
        cordoned=bool(spec.get("unschedulable")),
        allocatable=_devices(status.get("allocatable")),
        capacity=_devices(status.get("capacity")),
        conditions=conditions,
    )


def _devices(resources: Mapping[str, str] | None) -> dict[str, int]:
    return {k: int(v) if v.isdigit() else 0 for k, v in (resources or {}).items() if k.startswith(PREFIX)}


def read_pod(pod: Object) -> SeenPod | None:
    """A pod of the GPU software, or one that holds devices; None for all others."""
    operand = _operand(pod.get("spec") or {}) or _by_name(pod["metadata"]["name"])
    found = _operand_pod(pod, operand) if operand else None
    holder = gpu_pod(pod)
    return SeenPod(found, holder) if found or holder else None


def read_keys(config_map: Object) -> frozenset[str]:
    """The keys of a ConfigMap."""
    return frozenset({**(config_map.get("data") or {}), **(config_map.get("binaryData") or {})})


def read_policy(policy: Object) -> Policy:
    """A ClusterPolicy."""
    status = policy.get("status") or {}
    error: Object = next(
        (c for c in status.get("conditions") or () if c.get("type") == "Error" and c.get("status") == "True"), {}
    )
    state = status.get("state") or ""
    return Policy(policy["metadata"]["name"], state, error.get("reason") or "", error.get("message") or "")


@cache
def _by_container() -> dict[str, str]:
    return {name: row.id for row in operands().values() for name in row.containers}


@cache
def _daemon_sets() -> tuple[tuple[str, str], ...]:
    return tuple((f"{name}-", row.id) for row in operands().values() for name in row.daemon_sets)


def _by_name(pod: str) -> str | None:
    """Pods of the operator whose containers have other names; a DaemonSet's pods begin with its name."""
    return next((operand for prefix, operand in _daemon_sets() if pod.startswith(prefix)), None)


def _operand(spec: Object) -> str | None:
    """By the name of a container; plugins of others also by their image."""
    by_container = _by_container()
    for one in spec.get("containers") or ():
        name = one["name"]
        if name in by_container:
            return by_container[name]
        named = name.startswith(("nvidia-device-plugin", "device-plugin"))
        if (named or "k8s-device-plugin" in one.get("image", "")) and not any(word in name for word in _BESIDE):
            return "plugin"
    return None


def _operand_pod(pod: Object, operand: str) -> OperandPod:
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    going = meta.get("deletionTimestamp") is not None
    ready = not going and any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
    trouble = None if ready else _Trouble("being deleted", waits=True) if going else _trouble(spec, status)
    maps = (v["configMap"].get("name") for v in spec.get("volumes") or () if v.get("configMap"))
    return OperandPod(
        name=meta["name"],
        namespace=meta["namespace"],
        node=spec.get("nodeName") or _meant_for(spec),
        ready=ready,
        operand=operand,
        config_maps=tuple(name for name in maps if name and name != "kube-root-ca.crt"),
        trouble=trouble.text if trouble else None,
        waits=trouble is None or trouble.waits,
        init=trouble.init if trouble else None,
    )


def _meant_for(spec: Object) -> str:
    """The node that a DaemonSet made a pod for which is not there yet; "" where it says none."""
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


class _Trouble(NamedTuple):
    text: str
    waits: bool = False
    init: str | None = None


def _trouble(spec: Object, status: Object) -> _Trouble | None:
    """Why a pod is not ready: the first container that fails or is waited for; init containers come first."""
    beside = {c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    for one in status.get("initContainerStatuses") or ():
        if found := _of_init(one, one["name"] in beside):
            return found
    for one in status.get("containerStatuses") or ():
        if found := _of_container(one):
            return found
    phase = status.get("phase")
    if phase == "Failed":
        return _Trouble(": ".join(filter(None, ("phase Failed", status.get("reason"), status.get("message")))))
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return _Trouble(f"it cannot be scheduled: {condition.get('message') or condition.get('reason')}")
    return None if phase in ("Running", "Succeeded") else _Trouble(f"phase {phase}", waits=True)


def _of_init(one: Object, beside: bool) -> _Trouble | None:
    name, state = one["name"], one.get("state") or {}
    failure = _failure(one)
    if failure:
        return _Trouble(f"init container {name}: {failure}", init=name)
    if "running" in state and not beside:
        return _Trouble(f"it waits in its init container {name}", waits=True, init=name)
    return None


def _of_container(one: Object) -> _Trouble | None:
    state = one.get("state") or {}
    if failure := _failure(one):
        return _Trouble(failure)
    message = (state.get("waiting") or {}).get("message")
    if message:
        return _Trouble(str(message), waits=True)
    if "running" in state and not one.get("ready") and not one.get("started", True):
        return _Trouble(f"container {one['name']} runs and has not passed its startup probe yet", waits=True)
    return None


def _failure(one: Object) -> str | None:
    """What has gone wrong in a container, in the kubelet's words; None where nothing has."""
    state, last = one.get("state") or {}, (one.get("lastState") or {}).get("terminated") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting.get("reason") not in _BEGINS:
        parts = [waiting["reason"], _POD_OF_MESSAGE.sub("", waiting.get("message") or "")]
        if last.get("exitCode"):
            parts.append(f"last {_end(last)}")
        return ": ".join(part for part in parts if part)
    for end in (ended, last):
        if end.get("exitCode") and not one.get("ready"):
            return _end(end)
    return None


def _end(ended: Object) -> str:
    return f"{ended.get('reason') or 'Error'} (exit code {ended['exitCode']}) {ended.get('message') or ''}".strip()
