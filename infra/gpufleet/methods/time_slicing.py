"""Time-slicing: pods take turns on a GPU."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from gpufleet.methods.base import GPU, Replicas, method
from gpufleet.methods.replicated import Replicated
from gpufleet.stackfile.base import refuse


@method
class TimeSlicing(Replicated):
    """Time-slicing: every GPU is offered `replicas` times. No memory or fault isolation.

    `memoryPerPodGib` is what one pod may count on, in GiB; the plan compares it with the GPU's memory.
    Replicas above 48 are refused unless `allowManyReplicas` is set: such counts are nearly always memory slices in
    disguise, and every allocated replica becomes an entry in the container's environment (case NV-04).
    `timeSlice` is the length of a turn; only hosts prepared by the Ansible roles can set it.
    """

    strategy: Literal["timeSlicing"] = Field(
        description="Time-slicing: pods take turns on a GPU.", examples=["timeSlicing"]
    )
    replicas: Replicas = Field(description="How many pods share each GPU.", examples=[4])
    allow_many_replicas: bool = Field(
        default=False, description="Whether more than 48 replicas are meant.", examples=[True]
    )
    time_slice: Literal["default", "short", "medium", "long"] | None = Field(
        default=None, description="The length of a turn; only on hosts that the roles prepare.", examples=["short"]
    )

    memory_unbounded: ClassVar[bool] = True

    @model_validator(mode="after")
    def _ceiling(self) -> TimeSlicing:
        if self.replicas > 48 and not self.allow_many_replicas:
            raise refuse(
                "GF110",
                f"{self.replicas} pods would share one GPU; more than 48 is refused unless it is meant.",
                "Lower replicas, or set allowManyReplicas: true.",
                keys="replicas, allowManyReplicas",
            )
        return self

    def plugin_config(self) -> dict[str, Any]:
        return {"version": "v1", "sharing": {"timeSlicing": self.replicated([GPU])}}
