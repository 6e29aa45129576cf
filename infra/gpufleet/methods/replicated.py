"""What methods have in common that offer each device several times: the fields, and their part of the plugin's file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from gpufleet.methods.base import GPU, MemoryGib, Method, Shared, Workload


class Replicated(Method):
    """Base of methods with `replicas`; a subclass states how many, or that there may be none."""

    replicas: int | None = Field(description="How many pods share each device.", examples=[4])
    rename_by_default: bool = Field(
        default=False, description="Whether shared devices are offered as nvidia.com/gpu.shared.", examples=[True]
    )
    fail_requests_greater_than_one: bool = Field(
        default=True, description="Whether a pod that asks for more than one share is refused.", examples=[True]
    )
    memory_per_pod_gib: MemoryGib | None = Field(
        default=None, description="What one pod may count on, in GiB.", examples=[3.5]
    )
    workload: Workload | None = Field(
        default=None,
        description="What the pods do; the plan warns where measurements speak against the sharing.",
        examples=["inference"],
    )

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
