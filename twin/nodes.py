"""Simulated nodes: Node objects that kwok keeps alive. What GPUs a node has is in annotations only.

A node starts without ``nvidia.com/gpu``: as on real machines, that comes when a device plugin runs on it; the
advertiser reads the annotations and plays that part. Hosts that the Ansible roles have prepared (driver owner `host`)
have a driver and, where the pool shares by MIG, their GPUs are cut; the operator's hosts have neither.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from twin.advertiser import mig, offer
from twin.errors import TwinError

GPUS, MODEL, STACK = "twin.gpufleet.dev/gpus", "twin.gpufleet.dev/gpu-model", "twin.gpufleet.dev/stack"
DRIVER, MIG = "twin.gpufleet.dev/driver", "twin.gpufleet.dev/mig"
KUBELET = "v1.36.3"
# How many nodes a pool gets that only says by which labels its nodes are known.
NODES_PER_SELECTOR = 2


@dataclass(frozen=True)
class Node:
    """A node to simulate. Taints as ``key=value:Effect`` or ``key:Effect``; ``address`` is its internal address.

    ``facts``: further annotations about the hardware; None where one is to be absent.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[str] = ()
    gpus: int = 0
    model: str = ""
    address: str = ""
    stack: str = ""
    facts: Mapping[str, str | None] = field(default_factory=dict)


def taint(text: str) -> dict[str, str]:
    """Return the taint object for ``key=value:Effect`` or ``key:Effect``. Raises TwinError for other text."""
    left, separator, effect = text.rpartition(":")
    key, equals, value = left.partition("=")
    if not (separator and key and effect in ("NoSchedule", "PreferNoSchedule", "NoExecute")):
        raise TwinError(f"not a taint: {text!r}; write key=value:NoSchedule or key:NoExecute")
    return {"key": key, "effect": effect, **({"value": value} if equals else {})}


def manifest(node: Node) -> dict[str, Any]:
    """Return the Node object, as a kubelet would register it. Pure."""
    annotations = {"kwok.x-k8s.io/node": "fake"}
    if node.gpus:
        annotations |= {GPUS: str(node.gpus), MODEL: node.model}
    if node.stack:
        annotations[STACK] = node.stack
    annotations |= {key: value for key, value in node.facts.items() if value is not None}
    size = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    addresses = [{"type": "Hostname", "address": node.name}]
    if node.address:
        addresses.insert(0, {"type": "InternalIP", "address": node.address})
    usual = {"kubernetes.io/hostname": node.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "annotations": annotations, "labels": usual | dict(node.labels)},
        "spec": {"taints": [taint(text) for text in node.taints]} if node.taints else {},
        "status": {
            "capacity": size,
            "allocatable": size,
            "addresses": addresses,
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": KUBELET,
                "kubeProxyVersion": KUBELET,
                "containerRuntimeVersion": "containerd://2.2.1",
                "kernelVersion": "6.8.0-twin",
                "osImage": "Ubuntu 24.04 LTS",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
            },
        },
    }


def read_config(path: Path) -> dict[str, Any]:
    """Return the ``gpufleet:`` keys of a stack file, over those of the file that it ``extends``. Raises TwinError."""
    try:
        document = yaml.safe_load(path.read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise TwinError(f"{path}: {error}") from error
    config = document.get("config") or {}
    base = document.get("extends") or config.get("gpufleet:extends")
    own = {key.removeprefix("gpufleet:"): value for key, value in config.items() if key.startswith("gpufleet:")}
    return _over(read_config(path.parent / base), own) if isinstance(base, str) else own


def _over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in own.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _over(merged[key], value) if both else value
    return merged


def declared(config: Mapping[str, Any], stack: str) -> list[Node]:
    """Return the nodes that a stack file of an existing cluster takes for granted; none for other clusters. Pure.

    Only what exists before `pulumi up` is simulated. Hosts named one by one get labels and taints from the stack; nodes
    known by a selector have theirs already. Raises TwinError for pools that are not laid out as pools are.
    """
    try:
        return _declared(config, stack)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TwinError(
            f"the pools of stack {stack} cannot be read; what is wrong: gpufleet plan -s {stack}"
        ) from error


def _declared(config: Mapping[str, Any], stack: str) -> list[Node]:
    if (config.get("cluster") or {}).get("kind") != "existing":
        return []
    found = []
    for pool in config.get("pools") or []:
        known: Iterable[tuple[str, Mapping[str, Any]]] = [
            (name, value or {}) for name, value in (pool.get("hosts") or {}).items()
        ]
        labels = pool.get("nodeSelector") or {}
        taints = (pool.get("taints") or ()) if labels else ()
        if labels and not known:
            known = [(f"{pool['name']}-{index}", {}) for index in range(1, NODES_PER_SELECTOR + 1)]
        for name, host in known:
            gpus, model = int(pool.get("gpusPerNode") or 1), str(pool.get("gpu") or "")
            address, facts = str(host.get("address") or ""), prepared(pool, config.get("sharing") or {}, gpus, model)
            found.append(Node(name, labels, taints, gpus, model, address, stack, facts))
    return found


def prepared(pool: Mapping[str, Any], sharing: Mapping[str, Any], gpus: int, model: str) -> dict[str, str | None]:
    """Return the annotations that say what the hosts of a pool bring: a driver, and cut GPUs. Pure.

    A layout that the model cannot have is not made: the roles refuse it. Who cuts the operator's hosts is its MIG
    manager, so what stands there is left alone.
    """
    owner = pool.get("driver") or "host"
    if owner != "host":
        return {DRIVER: "none"}
    profile, table = sharing.get(pool.get("sharing") or ""), offer.product(model).get("mig") or {}
    wanted: Mapping[str, int] = {}
    if isinstance(profile, Mapping) and profile.get("strategy") == "mig":
        one = profile.get("profile")
        wanted = {one: table.get(one, 0)} if one else profile.get("instances") or {}
    layout = mig.every_gpu(gpus, wanted, table)
    return {DRIVER: None, MIG: mig.render(layout) if layout else None}


def contexts(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the kubeconfig contexts that a stack file names. Pure."""
    context = ((config.get("cluster") or {}).get("kubeconfig") or {}).get("context")
    return (str(context),) if context else ()


def apply(core: client.CoreV1Api, nodes: Iterable[Node]) -> None:
    """Create the nodes; one that exists gets its annotations only, since labels and taints are others' by then."""
    for node in nodes:
        wanted = manifest(node)
        try:
            core.create_node(wanted)
        except client.ApiException as error:
            if error.status != 409:
                raise
            annotations = wanted["metadata"]["annotations"] | dict(node.facts)
            core.patch_node(node.name, {"metadata": {"annotations": annotations}})


def remove(core: client.CoreV1Api, names: Iterable[str]) -> None:
    """Remove nodes and, as their collector would a minute later, the pods on them."""
    for name in names:
        with contextlib.suppress(client.ApiException):
            core.delete_node(name)
        on_it = core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={name}").items
        for pod in on_it:
            with contextlib.suppress(client.ApiException):
                core.delete_namespaced_pod(pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0)


def reconcile(core: client.CoreV1Api, stack: str, nodes: Sequence[Node]) -> None:
    """Make the stack's simulated nodes those given: new ones come, ones no longer declared go."""
    apply(core, nodes)
    names = {node.name for node in nodes}
    there = [
        item.metadata.name for item in core.list_node().items if (item.metadata.annotations or {}).get(STACK) == stack
    ]
    remove(core, [name for name in there if name not in names])
