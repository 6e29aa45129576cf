"""GPU software of the stack (plugin or operator), sharing profiles and teams."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from gpufleet.findings.credentials import in_address
from gpufleet.stackfile.base import AsTuple, DnsLabel, Model, matches, refuse

#: Helm and DaemonSet time limits below this break off slow driver builds half-way (case AZ-31).
MIN_TIMEOUT_SECONDS = 900


#: More than the largest cluster (5,000 nodes) can offer is a slip of the pen.
MOST_DEVICES = 10_000_000


class Images(Model):
    """Where images come from when not from the vendor's registries.

    `pullSecrets` are names of Secrets in the namespaces of the GPU software. With `makePullSecret` the stack makes the
    first of them itself, from the secret `gpufleet:pullSecret` (a registry login as docker writes it, in JSON).
    """

    bare: ClassVar[tuple[str, ...]] = ("registry",)

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
    ) = Field(
        default=None,
        description="The registry that holds copies of all images: host[:port][/path].",
        examples=["registry.example.com/nvidia"],
    )
    pull_secrets: Annotated[tuple[DnsLabel, ...], AsTuple] = Field(
        default=(), description="Names of the Secrets with the registry's login.", examples=[["registry"]]
    )
    make_pull_secret: bool = Field(
        default=False,
        description="Whether the stack makes the first pull secret, from its secret `gpufleet:pullSecret`.",
        examples=[True],
    )

    @model_validator(mode="after")
    def _named(self) -> Images:
        if self.make_pull_secret and not self.pull_secrets:
            keys = "makePullSecret, pullSecrets"
            raise refuse("GF110", "The Secret has no name.", "Name it: `pullSecrets: [registry]`.", keys=keys)
        return self

    @property
    def made_secret(self) -> str | None:
        """The pull secret that the stack makes, or None."""
        return self.pull_secrets[0] if self.make_pull_secret else None

    def mirrored(self, image: str) -> str:
        """An image under the stack's own registry, if it has one: the name after the last slash is kept."""
        return f"{self.registry}/{image.rpartition('/')[2]}" if self.registry else image


#: As NVIDIA names releases of plugin and operator, and tags their images.
Release = Annotated[
    str,
    matches(r"v\d+\.\d+\.\d+([-.][0-9A-Za-z.-]+)?", "Releases look like v26.7.0.", "Write it with its v: `v26.7.0`."),
]


class Chart(Model):
    """Where the operator's chart comes from: a repository (mirror), or a folder or archive on disk."""

    bare: ClassVar[tuple[str, ...]] = ("path",)

    repository: str | None = Field(
        default=None,
        min_length=1,
        description="The address of a Helm repository that holds the chart.",
        examples=["https://charts.example.com/nvidia"],
    )
    path: str | None = Field(
        default=None,
        min_length=1,
        description="The chart as a folder or archive on the machine that runs Pulumi.",
        examples=["charts/gpu-operator.tgz"],
    )

    @model_validator(mode="after")
    def _one_way(self) -> Chart:
        if self.repository is not None and self.path is not None:
            raise refuse("GF110", "A chart comes from one place.", "Keep one.", keys="repository, path")
        if self.repository is not None and in_address(self.repository):
            raise refuse(
                "GF110",
                "A stack file is reviewed and committed; the address carries a password.",
                "Use an OCI repository with `helm registry login` where pulumi runs, or download the chart: path.",
                keys="repository",
            )
        return self


class PluginRoute(Model):
    """NVIDIA's device plugin as gpufleet's own objects, one DaemonSet per sharing profile."""

    kind: Literal["plugin"] = Field(
        description="Which software is installed: the device plugin alone.", examples=["plugin"]
    )
    namespace: DnsLabel = Field(
        default="gpu-plugin", description="The namespace of the GPU software.", examples=["gpu-plugin"]
    )
    version: Release | None = Field(
        default=None,
        description="The release of the device plugin; without it, the one that was tried.",
        examples=["v0.20.0"],
    )
    images: Images = Field(
        default_factory=lambda: Images.model_validate({}),
        description="Where images come from, if not from the vendor.",
        examples=[{"registry": "registry.example.com/nvidia"}],
    )
    hami_chart: Chart = Field(
        default_factory=lambda: Chart.model_validate({}),
        description="Where HAMi's chart comes from, if not from its own repository.",
        examples=[{"path": "charts/hami.tgz"}],
    )


class OperatorRoute(Model):
    """NVIDIA's GPU Operator as one Helm release. `timeoutSeconds` in seconds.

    `nfd: existing` says that the cluster runs Node Feature Discovery already; the release then brings none.
    """

    kind: Literal["operator"] = Field(
        description="Which software is installed: the GPU Operator.", examples=["operator"]
    )
    namespace: DnsLabel = Field(
        default="gpu-operator", description="The namespace of the GPU software.", examples=["gpu-operator"]
    )
    version: Release | None = Field(
        default=None,
        description="The release of the GPU Operator; without it, the one that was tried.",
        examples=["v26.7.0"],
    )
    chart: Chart = Field(
        default_factory=lambda: Chart.model_validate({}),
        description="Where the operator's chart comes from, if not from NVIDIA's repository.",
        examples=[{"path": "charts/gpu-operator.tgz"}],
    )
    timeout_seconds: int = Field(
        default=MIN_TIMEOUT_SECONDS,
        ge=MIN_TIMEOUT_SECONDS,
        le=7200,
        description="How long Helm waits for the release, in seconds.",
        examples=[1800],
    )
    values: dict[str, Any] = Field(
        default_factory=dict,
        description="Further values of the operator's chart; the plan's own come on top.",
        examples=[{"dcgmExporter": {"enabled": False}}],
    )
    nfd: Literal["install", "existing"] = Field(
        default="install",
        description="Whether the release brings Node Feature Discovery, or the cluster runs it already.",
        examples=["existing"],
    )
    hami_chart: Chart = Field(
        default_factory=lambda: Chart.model_validate({}),
        description="Where HAMi's chart comes from, if not from its own repository.",
        examples=[{"path": "charts/hami.tgz"}],
    )
    images: Images = Field(
        default_factory=lambda: Images.model_validate({}),
        description="Where images come from, if not from the vendor.",
        examples=[{"registry": "registry.example.com/nvidia"}],
    )


Route = Annotated[PluginRoute | OperatorRoute, Field(discriminator="kind")]


ImageReference = Annotated[
    str,
    Field(max_length=512),
    matches(
        r"[A-Za-z0-9]+([._:/-]+[A-Za-z0-9_]+)*(@sha256:[0-9a-f]{64})?",
        "An image is registry/name:tag, without blanks.",
        "Write e.g. `nvidia/cuda:12.8.1-base-ubuntu24.04`.",
    ),
]


class Team(Model):
    """A team: its namespace, the pools it uses, its group and its quota in schedulable devices (shares).

    A quota key is `gpu` (the one resource that the team's pools offer) or a full resource name.
    `images` are those that the team runs: their CUDA versions are compared with the drivers of its pools. `cudaCompat`
    says that they carry the package cuda-compat (forward compatibility, on data-centre GPUs).
    """

    bare: ClassVar[tuple[str, ...]] = ("name", "namespace")

    name: DnsLabel = Field(description="The name of the team.", examples=["vision"])
    namespace: DnsLabel = Field(description="The namespace that the stack makes for the team.", examples=["vision"])
    pools: Annotated[tuple[str, ...], AsTuple] = Field(
        min_length=1, description="The pools that the team uses, by name.", examples=[["t4"]]
    )
    quota: dict[str, Annotated[int, Field(ge=0, le=MOST_DEVICES)]] = Field(
        default_factory=dict,
        description="How many devices the team may hold, by resource; gpu is the one that its pools offer.",
        examples=[{"gpu": 4}],
    )
    group: str | None = Field(
        default=None,
        min_length=1,
        description="The group of users that gets the team's role in the namespace.",
        examples=["vision-team"],
    )
    role: Literal["admin", "edit", "view"] = Field(
        default="edit", description="What the group may do in the namespace.", examples=["edit"]
    )
    images: Annotated[tuple[ImageReference, ...], AsTuple] = Field(
        default=(),
        description="Images that the team runs; their CUDA versions are compared with the drivers.",
        examples=[["nvidia/cuda:12.8.1-base-ubuntu24.04"]],
    )
    cuda_compat: bool = Field(
        default=False, description="Whether these images carry the package cuda-compat.", examples=[True]
    )
