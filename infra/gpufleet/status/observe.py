"""Reading a cluster: nodes, and the device plugin's pods. The only place here with I/O."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpufleet.parts.names import PROFILE_LABEL, ROUTE_LABEL
from gpufleet.places import PLACES
from gpufleet.stackfile.kubeconfig import kubeconfig_file
from gpufleet.stackfile.model import Stack

REQUEST_SECONDS = 20


class ObservationError(Exception):
    """The cluster cannot be read; the text says why and what to do, without secrets."""


@dataclass(frozen=True)
class ObservedNode:
    """One node. `allocatable` holds nvidia.com/* resources only; taints are (key, value, effect)."""

    name: str
    ready: bool
    labels: dict[str, str]
    taints: tuple[tuple[str, str, str], ...]
    allocatable: dict[str, int]


@dataclass(frozen=True)
class PluginPod:
    """A pod of the device plugin, whoever made it. `trouble` is why it is not ready, in the kubelet's words."""

    name: str
    namespace: str
    node: str
    ready: bool
    profile: str | None
    config_maps: tuple[str, ...]
    trouble: str | None = None
    owner: str | None = None


@dataclass(frozen=True)
class Observed:
    """The parts of a cluster that the plan speaks about.

    `config_maps` are those of sharing texts, as (namespace, name); None where the user may not list them.
    """

    nodes: dict[str, ObservedNode] = field(default_factory=dict)
    pods: tuple[PluginPod, ...] = ()
    config_maps: frozenset[tuple[str, str]] | None = None


def load_kubeconfig(name: str, stack: Stack, option: Path | None, root: Path) -> tuple[dict[str, Any], str | None]:
    """The kubeconfig as data, and the context to use.

    Order: the option, the environment, the stack file; else the secret or output of the Pulumi stack.

    Raises:
        ObservationError: none of them gives one.
    """
    ref = PLACES[stack.cluster.kind].kubeconfig(stack)
    context = ref.context if ref else None
    path = option or kubeconfig_file(ref, root, os.environ)
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ObservationError(f"the kubeconfig {path} cannot be read: {reason}") from None
    else:
        text = _from_pulumi(name, stack, root)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError:
        data = None
    if not isinstance(data, dict) or "clusters" not in data:
        raise ObservationError("the kubeconfig is not one: it has no `clusters`")
    return data, context


def _from_pulumi(name: str, stack: Stack, root: Path) -> str:
    if PLACES[stack.cluster.kind].kubeconfig(stack) is not None:
        words = ["config", "get", "gpufleet:kubeconfig"]
    else:
        words = ["stack", "output", "kubeconfig", "--show-secrets"]
    command = shutil.which("pulumi")
    if command is None:
        raise ObservationError(
            "the kubeconfig is in the Pulumi stack, and `pulumi` is not on PATH; or give --kubeconfig FILE"
        )
    done = subprocess.run(
        [command, *words, "--stack", name, "--non-interactive"], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ObservationError(f"pulumi gives no kubeconfig of stack {name}: {last}; or use --kubeconfig FILE")
    return done.stdout


class Cluster:
    """A connection; `observe` may be called again and again."""

    def __init__(self, kubeconfig: dict[str, Any], context: str | None) -> None:
        from kubernetes import client, config

        try:
            self._api = client.CoreV1Api(config.new_client_from_config_dict(kubeconfig, context=context))
        except Exception as error:  # the library raises many kinds; its text names the missing entry
            raise ObservationError(f"the kubeconfig cannot be used: {error}") from None

    def observe(self) -> Observed:
        """One reading.

        Raises:
            ObservationError: the API server does not answer, or refuses.
        """
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            nodes = self._api.list_node(_request_timeout=REQUEST_SECONDS)
            pods = self._api.list_pod_for_all_namespaces(_request_timeout=REQUEST_SECONDS)
            maps = self._config_maps()
        except ApiException as error:
            raise ObservationError(f"the API server refuses to answer: {error.status} {error.reason}") from None
        except (HTTPError, OSError) as error:
            raise ObservationError(f"the API server does not answer: {type(error).__name__}") from None
        return Observed(
            nodes={n.metadata.name: _node(n) for n in nodes.items},
            pods=tuple(sorted((_pod(p) for p in pods.items if _is_plugin(p)), key=lambda p: (p.node, p.name))),
            config_maps=maps,
        )

    def _config_maps(self) -> frozenset[tuple[str, str]] | None:
        from kubernetes.client.exceptions import ApiException

        try:
            found = self._api.list_config_map_for_all_namespaces(
                label_selector=ROUTE_LABEL, _request_timeout=REQUEST_SECONDS
            )
        except ApiException as error:
            if error.status == 403:
                return None
            raise
        return frozenset((m.metadata.namespace, m.metadata.name) for m in found.items)


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _node(node: Any) -> ObservedNode:
    conditions = {c.type: c.status for c in node.status.conditions or ()}
    return ObservedNode(
        name=node.metadata.name,
        ready=conditions.get("Ready") == "True",
        labels=dict(node.metadata.labels or {}),
        taints=tuple((t.key, t.value or "", t.effect) for t in node.spec.taints or ()),
        allocatable={k: _count(v) for k, v in (node.status.allocatable or {}).items() if k.startswith("nvidia.com/")},
    )


#: Containers with the plugin's image that register nothing.
_BESIDE = ("feature-discovery", "config-manager", "mps-control-daemon")


def _is_plugin(pod: Any) -> bool:
    """A container named like the plugin's, or with its image, that is not one of those beside it."""
    return any(
        c.name.startswith(("nvidia-device-plugin", "device-plugin")) or "k8s-device-plugin" in c.image
        for c in pod.spec.containers
        if not any(word in c.name for word in _BESIDE)
    )


def _trouble(pod: Any) -> str | None:
    for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        waiting = status.state.waiting if status.state else None
        if waiting and waiting.reason not in (None, "ContainerCreating", "PodInitializing"):
            return f"{waiting.reason}: {waiting.message}" if waiting.message else str(waiting.reason)
        ended = status.last_state.terminated if status.last_state else None
        if ended and ended.exit_code and not status.ready:
            return f"{ended.reason or 'Error'} (exit code {ended.exit_code}) {ended.message or ''}".strip()
    if pod.status.phase not in ("Running", "Succeeded"):
        return f"phase {pod.status.phase}"
    return None


def _pod(pod: Any) -> PluginPod:
    conditions = {c.type: c.status for c in pod.status.conditions or ()}
    maps = [v.config_map.name for v in pod.spec.volumes or () if v.config_map is not None]
    owners = pod.metadata.owner_references or []
    ready = conditions.get("Ready") == "True" and pod.metadata.deletion_timestamp is None
    return PluginPod(
        name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        node=pod.spec.node_name or "",
        ready=ready,
        profile=(pod.metadata.labels or {}).get(PROFILE_LABEL),
        config_maps=tuple(m for m in maps if m != "kube-root-ca.crt"),
        trouble=None if ready else ("being deleted" if pod.metadata.deletion_timestamp else _trouble(pod)),
        owner=owners[0].name if owners else None,
    )
