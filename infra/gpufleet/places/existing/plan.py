"""A cluster that exists and the marks on its nodes, as they will be deployed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.parts.taints import Taint
from gpufleet.places.base import ClusterPlan, PoolResource
from gpufleet.stackfile.cluster import KubeconfigRef


@dataclass(frozen=True, kw_only=True)
class ExistingClusterPlan(ClusterPlan):
    """`identifier` names the cluster for ever (the Kubernetes provider's cluster identifier).

    `existing_namespaces` are used and not owned. `runtime_class_stated`: the stack file says whether it is there.
    """

    identifier: str
    distribution: str
    kubeconfig: KubeconfigRef
    protect: bool
    protection: str
    existing_namespaces: tuple[str, ...] = ()
    runtime_class_stated: bool = False

    def title(self) -> str:
        return f"existing cluster {self.name}"

    def lines(self) -> list[tuple[str, str]]:
        """Only what is out of the ordinary: the stack makes no cluster."""
        return [("protection", self.protection)] if self.protect else []

    def as_dict(self) -> dict[str, Any]:
        found = {k: getattr(self, k) for k in ("kind", "name", "version", "identifier", "distribution", "protect")}
        if self.existing_namespaces:
            found["existing_namespaces"] = list(self.existing_namespaces)
        return {**found, "kubeconfig": self.kubeconfig.model_dump(by_alias=True, exclude_defaults=True)}


@dataclass(frozen=True, kw_only=True)
class NodeMarks(PoolResource):
    """Labels and taints that every listed node of the pool gets."""

    nodes: tuple[str, ...]
    labels: dict[str, str]
    taints: tuple[Taint, ...]

    def at_first(self, last: Sequence[str]) -> dict[str, str]:
        """The labels without those that change last."""
        return {key: value for key, value in self.labels.items() if key not in last}

    def at_last(self, last: Sequence[str]) -> dict[str, str]:
        """The labels that change last."""
        return {key: value for key, value in self.labels.items() if key in last}

    def output(self) -> dict[str, Any]:
        return {"nodes": list(self.nodes)}
