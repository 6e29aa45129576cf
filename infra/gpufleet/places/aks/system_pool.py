"""The system pool of an AKS cluster, as the stack file states it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from gpufleet.stackfile.base import Model, matches, refuse
from gpufleet.stackfile.cluster import Autoscale


class SystemPool(Model):
    """The one pool inside the cluster resource; it carries the cluster's own services, never GPUs."""

    bare: ClassVar[tuple[str, ...]] = ("vmSize",)

    name: Annotated[
        str,
        matches(
            r"[a-z][a-z0-9]{0,11}",
            "AKS pool names are lower case letters and digits, at most 12, beginning with a letter.",
            "Write a name such as `system`.",
        ),
    ] = Field(default="system", description="The name of the system pool.", examples=["system"])
    vm_size: str = Field(
        default="Standard_D4s_v5", description="The Azure size of its nodes.", examples=["Standard_D4s_v5"]
    )
    count: int | None = Field(
        default=None, ge=1, le=1000, description="How many nodes it has, without autoscaler.", examples=[2]
    )
    autoscale: Autoscale | None = Field(
        default=None, description="Bounds of its autoscaler, in nodes.", examples=[{"min": 1, "max": 3}]
    )

    @model_validator(mode="after")
    def _one_size(self) -> SystemPool:
        if self.count is not None and self.autoscale is not None:
            raise refuse("GF110", "A pool has a fixed size or an autoscaler.", "Keep one.", keys="count, autoscale")
        if self.autoscale is not None and self.autoscale.min == 0:
            raise refuse("GF110", "A system pool cannot be empty.", "Set min to 1 or more.", keys="autoscale.min")
        return self
