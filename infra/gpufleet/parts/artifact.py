"""Artifacts: what will be in the cluster, one frozen object each, made from the fleet.

An artifact carries all that is said of it: its lines in `gpufleet plan`, its JSON, the images that its pods pull, and
what on a node proves it for `gpufleet status`. Its component in `gpufleet.deploy` takes the artifact alone, so nothing
can be deployed that the plan did not print.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from gpufleet.parts.seen import Seen


@dataclass(frozen=True)
class Image:
    """A container image: where it comes from, and the name under which the stack pulls it."""

    source: str
    pulled_as: str


@dataclass(frozen=True)
class Images:
    """Images of an artifact, and in words those that no table states."""

    known: tuple[Image, ...] = ()
    unknown: tuple[str, ...] = ()


NO_IMAGES = Images()


@dataclass(frozen=True)
class Chart:
    """A Helm chart: a name in `repository`, or a path when `repository` is None."""

    name: str
    version: str
    repository: str | None


@dataclass(frozen=True)
class Serving:
    """The plugin pods that serve a pool: where they run, the ConfigMap that they read, the taints that they stand."""

    namespace: str
    config_map: str | None
    tolerations: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class ConfigMapPlan:
    """A ConfigMap whose name carries the hash of its data."""

    name: str
    data: dict[str, str]


@dataclass(frozen=True)
class KeepingConfigMap(ConfigMapPlan):
    """One that also holds what labels of nodes still name, until they have moved.

    `kept` are these names. Its own name does not depend on them, so that they can go later without a new rollout.
    `frozen`: it is there and immutable, so it stays so.
    """

    kept: tuple[str, ...]
    frozen: bool


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """Base of all artifacts: what one part of the software puts into the cluster.

    `id` is its key in the plan (`plugin`, `operator`, a method's name); `namespace` the one that it makes;
    `pull_secrets` are Secrets there with the logins of registries, `pull_secret` the one of them that the stack makes.
    """

    id: str
    namespace: str
    pull_secret: str | None = None
    pull_secrets: tuple[str, ...] = ()

    #: Whether labels of nodes name what it brings, so that it comes before they change.
    before_labels: ClassVar[bool] = False

    def given(self, seen: Seen) -> Artifact:
        """The artifact as it has to be in a cluster in which this was seen."""
        return self

    def lines(self) -> list[str]:
        """What `gpufleet plan` prints."""
        raise NotImplementedError

    def secret_lines(self) -> list[str]:
        """The line about the pull secret that is made, if one is."""
        return [f"  makes the Secret {self.pull_secret} from gpufleet:pullSecret"] if self.pull_secret else []

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; images and charts have their own place in the plan."""
        content = asdict(self)
        content.pop("id")
        content.pop("images", None)
        return content

    def serves(self, profile: str) -> Serving | None:
        """The plugin pods that serve the pools of a sharing profile, or None where others do."""
        return None

    def chart_used(self) -> Chart | None:
        """The Helm chart that it is installed from, if any."""
        return None

    @property
    def images_pulled(self) -> Images:
        """The images that its pods pull."""
        return getattr(self, "images", NO_IMAGES)

    def component(self) -> str:
        """`module:class` of the Pulumi component that deploys it."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HelmRelease(Artifact):
    """A Helm release. `chart` is a name in `repository`, or a path when `repository` is None; timeout in seconds.

    `title` says what it is, `words` further lines of the plan. `component_type` and `component_name` are its names in
    Pulumi's state. `chart_env` names a variable with a folder or archive, for runners that cannot reach the chart.
    `profiles` are the sharing profiles whose pools it serves (None: all), `tolerations` those of its plugin's pods.
    """

    release: str
    chart: str
    repository: str | None
    version: str
    timeout_seconds: int
    values: dict[str, Any]
    title: str
    words: tuple[str, ...]
    component_type: str
    component_name: str
    chart_env: str
    tolerations: tuple[Mapping[str, str], ...]
    profiles: tuple[str, ...] | None = None
    images: Images = NO_IMAGES

    @property
    def config_maps(self) -> tuple[tuple[ConfigMapPlan, dict[str, str]], ...]:
        """ConfigMaps that are made before the release, each with its labels beside the common ones."""
        return ()

    @property
    def reads(self) -> str | None:
        """Name of the ConfigMap that the plugin's pods read, if it is one of the stack's."""
        return None

    def lines(self) -> list[str]:
        chart = f"chart {self.chart}" + (f" of {self.repository}" if self.repository else " on disk")
        head = f"{self.title} {self.version}, namespace {self.namespace}, release {self.release}:"
        return [head, f"  {chart}", *self.secret_lines(), *(f"  {word}" for word in self.words)]

    def as_dict(self) -> dict[str, Any]:
        content = super().as_dict()
        for key in _NOT_DEPLOYED:
            content.pop(key)
        return content

    def serves(self, profile: str) -> Serving | None:
        if self.profiles is not None and profile not in self.profiles:
            return None
        return Serving(self.namespace, self.reads, self.tolerations)

    def chart_used(self) -> Chart | None:
        return Chart(self.chart, self.version, self.repository)

    def component(self) -> str:
        return "gpufleet.deploy.release:HelmSoftware"


#: Fields of a release that say how it is shown and looked for; the values hold what is deployed.
_NOT_DEPLOYED = ("title", "words", "component_type", "component_name", "chart_env", "tolerations", "profiles")
