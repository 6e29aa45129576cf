"""What the clusters of all kinds have in common in a stack file."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from gpufleet.stackfile.base import KubernetesVersion, Model, refuse

#: What the cluster is for; the plan warns of sharing that does not suit it.
Environment = Literal["dev", "staging", "production"]
#: Whether the engine refuses to delete or replace the cluster, where `protect` says nothing.
PROTECTED: dict[Environment | None, bool] = {"production": True, "staging": True, "dev": False, None: False}


class Cluster(Model):
    """The section `cluster` of every kind."""

    bare: ClassVar[tuple[str, ...]] = ("name",)

    kind: str = Field(
        description="Which kind of cluster this is: aks makes one, existing takes one on.", examples=["aks"]
    )
    name: str = Field(description="The name of the cluster.", examples=["vision-dev"])
    version: KubernetesVersion | None = Field(
        default=None,
        description="The Kubernetes version, in quotes; with AKS a minor version follows its newest patch.",
        examples=["1.36"],
    )
    environment: Environment | None = Field(
        default=None,
        description="What the cluster is for; the plan warns of sharing that does not suit it.",
        examples=["dev"],
    )
    protect: bool | None = Field(
        default=None, description="Whether Pulumi refuses to delete the cluster and its pools.", examples=[True]
    )

    @property
    def protected(self) -> bool:
        """`protect`, or what the environment asks for."""
        return PROTECTED[self.environment] if self.protect is None else self.protect

    def protection(self) -> str:
        """Whether the cluster is protected, why, and how to change it."""
        if self.protect is not None:
            return f"{'protected' if self.protect else 'not protected'} (protect: {str(self.protect).lower()})"
        why = f"environment {self.environment}" if self.environment else "no environment is stated"
        lift = "protect: false and `pulumi up` lift it" if self.protected else "protect: true protects it"
        return f"{'protected' if self.protected else 'not protected'} ({why}; {lift})"


class Autoscale(Model):
    """Bounds of the cluster autoscaler, in nodes."""

    min: int = Field(ge=0, le=1000, description="The fewest nodes that it keeps.", examples=[1])
    max: int = Field(ge=1, le=1000, description="The most nodes that it makes, not below min.", examples=[4])

    @model_validator(mode="after")
    def _ordered(self) -> Autoscale:
        if self.min > self.max:
            raise refuse("GF110", f"min {self.min} is above max {self.max}.", "Make min at most max.", keys="min, max")
        return self


class KubeconfigRef(Model):
    """Where the kubeconfig is: a file on the machine that runs `pulumi`, or the secret `gpufleet:kubeconfig`.

    A context alone is one of the file that kubectl uses there.
    """

    bare: ClassVar[tuple[str, ...]] = ("path",)

    path: str | None = Field(
        default=None,
        min_length=1,
        description="The kubeconfig file; a relative path starts at the project's folder.",
        examples=["~/.kube/config"],
    )
    secret: bool = Field(
        default=False,
        description="Whether the kubeconfig is the secret `gpufleet:kubeconfig` of the Pulumi stack.",
        examples=[True],
    )
    context: str | None = Field(
        default=None,
        min_length=1,
        description="The context of the kubeconfig; alone, one of the file that kubectl uses.",
        examples=["lab-admin"],
    )

    @model_validator(mode="after")
    def _one_way(self) -> KubeconfigRef:
        if self.path is not None and self.secret:
            raise refuse("GF110", "The kubeconfig comes from one place.", "Keep one.", keys="path, secret")
        if self.path is None and self.context is None and not self.secret:
            raise refuse(
                "GF110",
                "Nothing says where the kubeconfig is.",
                "Give path, or secret: true, or the context of the file that kubectl uses.",
                keys="path, secret",
            )
        return self
