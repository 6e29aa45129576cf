"""GPU software of the stack (plugin or operator), sharing profiles and teams."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from infra.config.base import AsTuple, DnsLabel, Model, matches, refuse

#: Helm and DaemonSet time limits below this break off slow driver builds half-way (case AZ-31).
MIN_TIMEOUT_SECONDS = 900


class Images(Model):
    """Where images come from when not from the vendor's registries."""

    registry: (
        Annotated[
            str,
            matches(
                r"[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*",
                "A registry is host[:port][/path], without scheme.",
                "Write e.g. `registry.example.com/nvidia`.",
            ),
        ]
        | None
    ) = None
    pull_secrets: Annotated[tuple[DnsLabel, ...], AsTuple] = ()


class PluginRoute(Model):
    """NVIDIA's device plugin as gpufleet's own objects, one DaemonSet per sharing profile."""

    kind: Literal["plugin"]
    namespace: DnsLabel = "gpu-plugin"
    version: str | None = None
    images: Images = Field(default_factory=lambda: Images.model_validate({}))


class Chart(Model):
    """Where the operator's chart comes from: a repository (mirror), or a folder or archive on disk."""

    repository: str | None = Field(default=None, min_length=1)
    path: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_way(self) -> Chart:
        if self.repository is not None and self.path is not None:
            raise refuse("GF110", "A chart comes from one place.", "Keep one.", keys="repository, path")
        return self


class OperatorRoute(Model):
    """NVIDIA's GPU Operator as one Helm release. `timeoutSeconds` in seconds."""

    kind: Literal["operator"]
    namespace: DnsLabel = "gpu-operator"
    version: str | None = None
    chart: Chart = Field(default_factory=lambda: Chart.model_validate({}))
    timeout_seconds: int = Field(default=MIN_TIMEOUT_SECONDS, ge=MIN_TIMEOUT_SECONDS, le=7200)
    values: dict[str, Any] = Field(default_factory=dict)
    images: Images = Field(default_factory=lambda: Images.model_validate({}))


Route = Annotated[PluginRoute | OperatorRoute, Field(discriminator="kind")]


class TimeSlicing(Model):
    """Time-slicing: every GPU is offered `replicas` times. No memory or fault isolation.

    `memoryPerPodGib` is what one pod may count on, in GiB; the plan compares it with the GPU's memory.
    Replicas above 48 are refused unless `allowManyReplicas` is set: such counts are nearly always memory slices in
    disguise, and every allocated replica becomes an entry in the container's environment (case NV-04).
    """

    strategy: Literal["timeSlicing"]
    replicas: int = Field(ge=2)
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool = True
    memory_per_pod_gib: float | None = Field(default=None, gt=0)
    allow_many_replicas: bool = False

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


class NoSharing(Model):
    """Whole GPUs: one pod each."""

    strategy: Literal["none"]


SharingProfile = Annotated[TimeSlicing | NoSharing, Field(discriminator="strategy")]

ProfileName = Annotated[
    str,
    matches(
        r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?",
        "Profile names become ConfigMap keys and label values: lower case letters, digits and '-', at most 30.",
        "Write a name such as `notebooks`.",
    ),
]


class Team(Model):
    """A team: its namespace, the pools it uses, its group and its quota in schedulable devices (shares).

    A quota key is `gpu` (the one resource that the team's pools offer) or a full resource name.
    """

    name: DnsLabel
    namespace: DnsLabel
    pools: Annotated[tuple[str, ...], AsTuple] = Field(min_length=1)
    quota: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    group: str | None = Field(default=None, min_length=1)
    role: Literal["admin", "edit", "view"] = "edit"
