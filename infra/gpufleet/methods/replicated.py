"""What methods have in common that offer each device several times: the fields, and their part of the plugin's file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpufleet.methods.base import GPU, MemoryGib, Method, Shared, Workload


class Replicated(Method):
    """Base of methods with `replicas`; a subclass states how many, or that there may be none."""

    replicas: int | None
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool = True
    memory_per_pod_gib: MemoryGib | None = None
    workload: Workload | None = None

    @property
    def pods_per_device(self) -> int:
        return self.replicas or 1

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"{GPU}.shared" if self.rename_by_default else GPU,)

    def replicated(self, names: Sequence[str]) -> dict[str, Any]:
        """The plugin's words for `replicas` of each resource."""
        return {
            "renameByDefault": self.rename_by_default,
            "failRequestsGreaterThanOne": self.fail_requests_greater_than_one,
            "resources": [{"name": name, "replicas": self.replicas} for name in names],
        }

    def shared(self) -> Shared | None:
        return Shared(self.strategy, self.pods_per_device, self.workload)
