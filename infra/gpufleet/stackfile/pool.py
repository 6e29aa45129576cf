"""What the GPU pools of all kinds of clusters have in common in a stack file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gpufleet.stackfile.base import AsTuple, DriverBranch, DriverVersion, LabelKey, LabelValue, Model, refuse

DriverOwner = Literal["aks", "operator", "host", "managed", "none"]

Taints = Annotated[tuple[str, ...], AsTuple]
Labels = dict[LabelKey, LabelValue]


class Pool(Model):
    """A pool: nodes of one kind, with one driver owner and one way of sharing."""

    name: str
    driver: str
    sharing: str | None = None
    taints: Taints = ()
    labels: Labels = Field(default_factory=dict)
    driver_branch: DriverBranch | None = None
    driver_version: DriverVersion | None = None

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


