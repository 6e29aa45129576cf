"""What the clusters of all kinds have in common in a stack file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from gpufleet.stackfile.base import KubernetesVersion, Model, refuse

#: What the cluster is for; the plan warns of sharing that does not suit it.
Environment = Literal["dev", "staging", "production"]
#: Whether the engine refuses to delete or replace the cluster, where `protect` says nothing.
PROTECTED: dict[Environment | None, bool] = {"production": True, "staging": True, "dev": False, None: False}


class Cluster(Model):
    """The section `cluster` of every kind."""

    kind: str
    name: str
    version: KubernetesVersion | None = None
    environment: Environment | None = None
    protect: bool | None = None

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

    min: int = Field(ge=0, le=1000)
    max: int = Field(ge=1, le=1000)

    @model_validator(mode="after")
    def _ordered(self) -> Autoscale:
        if self.min > self.max:
            raise refuse("GF110", f"min {self.min} is above max {self.max}.", "Make min at most max.", keys="min, max")
        return self


class KubeconfigRef(Model):
    """Where the kubeconfig is: a file on the machine that runs `pulumi`, or the secret `gpufleet:kubeconfig`.

    A context alone is one of the file that kubectl uses there.
    """

    path: str | None = Field(default=None, min_length=1)
    secret: bool = False
    context: str | None = Field(default=None, min_length=1)

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
