"""A cluster that exists and the marks on its nodes, as they will be deployed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpufleet.parts.taints import Taint
from gpufleet.places.base import ClusterPlan, PoolResource
from gpufleet.stackfile.cluster import KubeconfigRef


@dataclass(frozen=True, kw_only=True)
class ExistingClusterPlan(ClusterPlan):
    """`identifier` names the cluster for ever (the Kubernetes provider's cluster identifier)."""

    identifier: str
    distribution: str
    kubeconfig: KubeconfigRef
    protect: bool
    protection: str

    def title(self) -> str:
        return f"existing cluster {self.name}"

    def lines(self) -> list[tuple[str, str]]:
        """Only what is out of the ordinary: the stack makes no cluster."""
        return [("protection", self.protection)] if self.protect else []

    def as_dict(self) -> dict[str, Any]:
        found = {k: getattr(self, k) for k in ("kind", "name", "version", "identifier", "distribution", "protect")}
        return {**found, "kubeconfig": self.kubeconfig.model_dump(by_alias=True, exclude_defaults=True)}


@dataclass(frozen=True, kw_only=True)
class NodeMarks(PoolResource):
    """Labels and taints that every listed node of the pool gets."""

    nodes: tuple[str, ...]
    labels: dict[str, str]
    taints: tuple[Taint, ...]

    def output(self) -> dict[str, Any]:
        return {"nodes": list(self.nodes)}
