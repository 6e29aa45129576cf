"""A made-up method of sharing, in one module: `halves` cuts every GPU in two and brings software of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gpufleet.methods.base import GPU, MemoryBound, Method
from gpufleet.methods.base import method as register
from gpufleet.parts.artifact import ConfigMapPlan, HelmRelease
from pydantic import Field

if TYPE_CHECKING:
    from gpufleet.fleet.model import Fleet, FleetPool


@dataclass(frozen=True, kw_only=True)
class Watcher(HelmRelease):
    """A release with one ConfigMap."""

    settings: ConfigMapPlan

    @property
    def config_maps(self) -> tuple[tuple[ConfigMapPlan, dict[str, str]], ...]:
        return ((self.settings, {}),)


@register
class Halves(Method):
    """Two pods share a GPU; a watcher ends whoever takes more than half of its memory."""

    strategy: Literal["halves"]
    patience_seconds: int = Field(default=30, ge=1)
    memory_per_pod_gib: float | None = None

    plugin_env: ClassVar[dict[str, str]] = {"HALVES": "on"}

    @property
    def pods_per_device(self) -> int:
        return 2

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"{GPU}.shared",)

    def plugin_config(self) -> dict[str, Any]:
        turns = {"renameByDefault": True, "resources": [{"name": GPU, "replicas": 2}]}
        return {"version": "v1", "sharing": {"timeSlicing": turns}}

    def most_for_one(self, device_gib: float) -> MemoryBound:
        return MemoryBound(device_gib / 2, "The watcher ends a pod that takes more than half.")

    def node_labels(self) -> dict[str, str]:
        return {"halves.example.com/watch": "true"}

    @classmethod
    def artifact(cls, fleet: Fleet, pools: Sequence[FleetPool]) -> Watcher:
        settings = ConfigMapPlan("halves-settings", {"pools": ",".join(pool.name for pool in pools)})
        return Watcher(
            id="halves",
            namespace="halves",
            release="halves-watcher",
            chart="halves",
            repository="https://charts.example.com",
            version="1.2.3",
            timeout_seconds=900,
            values={"settings": settings.name},
            title="Watcher of halves",
            words=(f"on pools {', '.join(pool.name for pool in pools)}",),
            component_type="gpufleet:halves:Watcher",
            component_name="halves-watcher",
            chart_env="GPUFLEET_HALVES_CHART",
            tolerations=(),
            profiles=(),  # NVIDIA's plugin serves the pools
            settings=settings,
        )
