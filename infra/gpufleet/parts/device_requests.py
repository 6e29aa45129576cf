"""How many devices pods hold: sums of requests by node, from pods as the API's JSON. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "nvidia.com/"
#: Names under which NVIDIA's plugin offers devices. Other names of the prefix may be figures that a node never
#: offers (nvidia.com/gpumem of HAMi), so they count only where a node knows them.
_DEVICE = re.compile(r"nvidia\.com/(gpu|mig-[^/]+?)(\.shared)?")
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class GpuPod:
    """A pod on a node that holds devices: `name` with its namespace, resource -> how many."""

    name: str
    node: str
    requests: Mapping[str, int]


def gpu_pod(pod: Mapping[str, Any]) -> GpuPod | None:
    """What a pod holds; None for one without a node or devices, one that has ended, and one that is going."""
    spec, meta = pod.get("spec") or {}, pod.get("metadata") or {}
    node = spec.get("nodeName")
    if not node or meta.get("deletionTimestamp") or (pod.get("status") or {}).get("phase") in _ENDED:
        return None
    requests = pod_requests(spec)
    return GpuPod(f"{meta.get('namespace')}/{meta.get('name')}", node, requests) if requests else None


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Devices that a pod takes, as the scheduler counts them: all containers, or one init container if that is more.

    Init containers that go on running (restartPolicy Always) count beside the containers.
    """
    running: dict[str, int] = {}
    starting: dict[str, int] = {}
    for one in spec.get("initContainers") or ():
        own = _container(one)
        if one.get("restartPolicy") == "Always":
            _add(running, own)
        else:
            starting = {k: max(starting.get(k, 0), running.get(k, 0) + own.get(k, 0)) for k in {*starting, *own}}
    for one in spec.get("containers") or ():
        _add(running, _container(one))
    most = {k: max(running.get(k, 0), starting.get(k, 0)) for k in {*running, *starting}}
    return {k: v for k, v in sorted(most.items()) if v}


def _container(container: Mapping[str, Any]) -> dict[str, int]:
    given = container.get("resources")
    if not given:
        return {}
    both = {**(given.get("limits") or {}), **(given.get("requests") or {})}
    return {k: int(v) for k, v in both.items() if k.startswith(PREFIX) and str(v).isdigit()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        total[name] = total.get(name, 0) + count


@dataclass(frozen=True)
class Excess:
    """Pods of one node that hold more of a resource than it offers; `offered` 0: it does not offer it at all."""

    resource: str
    held: int
    offered: int
    pods: tuple[str, ...]

    def names(self, most: int = 10) -> str:
        """The pods in words."""
        rest = len(self.pods) - most
        return ", ".join(self.pods[:most]) + (f" and {rest} more" if rest > 0 else "")

    def words(self) -> str:
        """What is wrong, in one line."""
        who = "1 pod holds" if len(self.pods) == 1 else f"{len(self.pods)} pods hold"
        if not self.offered:
            return f"{who} {self.resource}, which the pool no longer offers: {self.names()}"
        return f"{who} {self.held} {self.resource}, and the pool offers {self.offered} on a node: {self.names()}"


def excesses(pods: Iterable[GpuPod], offer: Mapping[str, int], known: Iterable[str] = ()) -> list[Excess]:
    """Resources of which the pods of one node hold more than `offer`. `known`: names that the node has shown."""
    held: dict[str, int] = {}
    who: dict[str, list[str]] = {}
    devices = {*offer, *known}
    for pod in pods:
        for name, count in pod.requests.items():
            if name in devices or _DEVICE.fullmatch(name):
                held[name] = held.get(name, 0) + count
                who.setdefault(name, []).append(pod.name)
    return [
        Excess(name, count, offer.get(name, 0), tuple(sorted(who[name])))
        for name, count in sorted(held.items())
        if count > offer.get(name, 0)
    ]
