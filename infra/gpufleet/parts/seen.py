"""What a look at the cluster found before anything is registered. Plain data; `gpufleet.places.look` reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpufleet.parts.names import MANAGED_BY


def ours(labels: Mapping[str, str]) -> bool:
    """Whether labels say that gpufleet made an object."""
    return MANAGED_BY.items() <= labels.items()


@dataclass(frozen=True)
class SeenClass:
    """A RuntimeClass."""

    handler: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SeenConfigMap:
    """A ConfigMap that gpufleet made."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    data: Mapping[str, str]
    immutable: bool = False


@dataclass(frozen=True)
class Seen:
    """Objects of the cluster that matter to what will be registered.

    `nodes` maps names of nodes to their labels, `namespaces` names to labels. `config_maps` are our own, the oldest
    first. `operators` are ClusterPolicies as (name, its Helm release as namespace/name, or nothing), `nfd` the
    DaemonSets of Node Feature Discovery as (namespace/name, its Helm release or nothing). `inside` are quotas and role
    bindings of somebody else, as (kind, namespace, name). None: the user may not list them.
    """

    nodes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    config_maps: tuple[SeenConfigMap, ...] = ()
    runtime_classes: Mapping[str, SeenClass] | None = None
    operators: tuple[tuple[str, str], ...] = ()
    nfd: tuple[tuple[str, str], ...] = ()
    inside: tuple[tuple[str, str, str], ...] = ()

    def named(self, label: str) -> set[str]:
        """The values that a label has on any node."""
        return {labels[label] for labels in self.nodes.values() if label in labels}

    def move(self, wanted: Mapping[str, Mapping[str, str]], keys: Iterable[str]) -> bool:
        """Whether a node carries other values of these labels than are wanted. `wanted` maps nodes to labels."""
        return any(
            self.nodes[node].get(key) != labels.get(key)
            for node, labels in wanted.items()
            if node in self.nodes
            for key in keys
        )
