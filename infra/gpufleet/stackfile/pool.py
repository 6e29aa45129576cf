"""What the GPU pools of all kinds of clusters have in common in a stack file."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from gpufleet.stackfile.base import AsTuple, DriverBranch, DriverVersion, LabelKey, LabelValue, Model, refuse

DriverOwner = Literal["aks", "operator", "host", "managed", "none"]

Taints = Annotated[tuple[str, ...], AsTuple]
Labels = dict[LabelKey, LabelValue]


class Pool(Model):
    """A pool: nodes of one kind, with one driver owner and one way of sharing."""

    bare: ClassVar[tuple[str, ...]] = ("name",)

    name: str = Field(description="The name of the pool; teams refer to it.", examples=["t4"])
    driver: str = Field(description="Who installs the NVIDIA driver on the nodes.", examples=["operator"])
    sharing: str | None = Field(
        default=None,
        description="The sharing profile of the pool's GPUs, by its name under `gpufleet:sharing`; none: whole GPUs.",
        examples=["notebooks"],
    )
    taints: Taints = Field(
        default=(), description="Taints of the nodes, each as key=value:Effect.", examples=[["sku=gpu:NoSchedule"]]
    )
    labels: Labels = Field(
        default_factory=dict, description="Further labels of the nodes.", examples=[{"example.com/team": "vision"}]
    )
    driver_branch: DriverBranch | None = Field(
        default=None, description="The driver branch, three digits in quotes.", examples=["580"]
    )
    driver_version: DriverVersion | None = Field(
        default=None, description="The exact driver version, in quotes.", examples=["580.95.05"]
    )

    @model_validator(mode="after")
    def _branch_and_version(self) -> Pool:
        branch, version = self.driver_branch, self.driver_version
        if branch and version and not version.startswith(branch + "."):
            raise refuse(
                "GF110",
                f"Version {version} is not of branch {branch}.",
                "Keep the one you mean.",
                keys="driverBranch, driverVersion",
            )
        return self
