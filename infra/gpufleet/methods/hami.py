"""HAMi: memory and cores of a GPU in parts, with its own scheduler and device plugin instead of NVIDIA's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from gpufleet.catalog import component, components_of, distribution
from gpufleet.methods.base import GPU, MemoryGib, Method, method
from gpufleet.parts.artifact import HelmRelease, Image, Images
from gpufleet.parts.chart_values import set_value
from gpufleet.parts.hardware import Hardware
from gpufleet.parts.names import HAMI_CORES, HAMI_COUNTED, HAMI_MEMORY
from gpufleet.parts.taints import tolerations
from gpufleet.stackfile.model import Stack

if TYPE_CHECKING:
    from gpufleet.fleet.model import Fleet, FleetPool

#: More pods than this on one GPU are a slip of the pen.
MOST_SPLITS = 100
#: The chart's node selector; without the label its plugin runs nowhere (case NV-22).
NODE_LABEL = {"gpu": "on"}


@method
class Hami(Method):
    """HAMi: pods ask for memory (MiB) and cores (percent) of a GPU, enforced by a library inside the container.

    `splitCount` is how many pods a GPU takes at most. HAMi brings its own plugin and scheduler.
    """

    strategy: Literal["hami"] = Field(
        description="HAMi: pods ask for parts of a GPU's memory and cores.", examples=["hami"]
    )
    split_count: int = Field(
        default=10, ge=2, le=MOST_SPLITS, description="How many pods a GPU takes at most.", examples=[10]
    )
    memory_scaling: float = Field(
        default=1.0,
        gt=0,
        le=4,
        description="How much memory is offered for each GPU, as a multiple of what it has.",
        examples=[1.0],
    )
    memory_per_pod_gib: MemoryGib | None = Field(
        default=None, description="What one pod may count on, in GiB.", examples=[3.5]
    )

    own_plugin: ClassVar[bool] = True
    vgpus: ClassVar[bool] = True
    counted: ClassVar[Mapping[str, str]] = HAMI_COUNTED

    @property
    def pods_per_device(self) -> int:
        return self.split_count

    @property
    def memory_scale(self) -> float:
        return self.memory_scaling

    @property
    def for_the_release(self) -> tuple[Any, ...]:
        return (self.split_count, self.memory_scaling)

    def offers(self, gpus: int, predicted: dict[str, int]) -> dict[str, int]:
        """Its plugin registers the same name, so many times per GPU."""
        return {GPU: gpus * self.split_count}

    def memory_for_each(self, hardware: Hardware) -> dict[str, float]:
        mib = self._memory_mib(hardware)
        return {GPU: round(mib / 1024, 2)} if mib else {}

    def asks_beside(self, hardware: Hardware) -> dict[str, int | None]:
        """Without memory a pod would take the whole card."""
        return {HAMI_MEMORY: self._memory_mib(hardware)}

    def _memory_mib(self, hardware: Hardware) -> int | None:
        """What the stack file promises, else an equal share of what the card is offered as."""
        if self.memory_per_pod_gib is not None:
            return max(1, int(self.memory_per_pod_gib * 1024))
        gib = hardware.memory_gib
        return int(gib * 1024 * self.memory_scaling) // self.split_count if gib else None

    def node_labels(self) -> dict[str, str]:
        return dict(NODE_LABEL)

    @classmethod
    def artifact(cls, fleet: Fleet, pools: Sequence[FleetPool]) -> HelmRelease:
        """The Helm release; the settings are those of the first pool, a rule holds that all agree."""
        spec = pools[0].method
        if not isinstance(spec, Hami):
            raise TypeError("not a pool under HAMi")
        known, chart = component("hami"), fleet.stack.stack.hami_chart
        runtime = next((pool.runtime_class for pool in pools if pool.runtime_class), None)
        tolerated = tuple(t.as_dict() for t in tolerations({t for pool in pools for t in pool.taints}))
        selector = ", ".join(f"{k}={v}" for k, v in NODE_LABEL.items())
        return HelmRelease(
            id="hami",
            namespace="hami-system",
            pull_secret=fleet.stack.stack.images.made_secret,
            pull_secrets=fleet.stack.stack.images.pull_secrets,
            release="hami",
            chart=chart.path or known.chart or "hami",
            repository=None if chart.path else chart.repository or known.repository,
            version=known.version,
            timeout_seconds=900,
            values=_values(fleet, spec, runtime, tolerated),
            title="HAMi",
            words=(
                f"each GPU for {spec.split_count} pods, memory times {spec.memory_scaling:g}, on nodes with {selector}"
                + (f", runtime class {runtime}" if runtime else ""),
                f"pods ask for {HAMI_MEMORY} in MiB, without it for a whole GPU; {HAMI_CORES} in percent bounds"
                " computing",
            ),
            component_type="gpufleet:hami:Scheduler",
            component_name="hami-scheduler",
            chart_env="GPUFLEET_HAMI_CHART",
            tolerations=tolerated,
            profiles=tuple(sorted({pool.profile.name for pool in pools if pool.profile})),
            images=_images(fleet.stack),
        )


def _values(fleet: Fleet, spec: Hami, runtime: str | None, tolerated: tuple[dict[str, str], ...]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "devicePlugin": {
            "deviceSplitCount": spec.split_count,
            "deviceMemoryScaling": spec.memory_scaling,
            "nvidiaNodeSelector": dict(NODE_LABEL),
            "tolerations": list(tolerated),
        },
    }
    if runtime:
        values["devicePlugin"]["runtimeClassName"] = runtime
    if fleet.release is not None and fleet.release.toolkit:
        values["devicePlugin"]["gpuOperatorToolkitReady"] = {"enabled": True}  # it starts after the operator's toolkit
    known = distribution(fleet.distribution)
    if known is not None and known.webhook_selector_owner is not None:
        # The distribution's own controller would fight the chart over the namespace selector of its webhook.
        values["scheduler"] = {"admissionWebhook": {"manageNamespaceSelector": False}}
    images = fleet.stack.stack.images
    if images.pull_secrets:
        values["global"] = {"imagePullSecrets": list(images.pull_secrets)}
    if images.registry:
        for row in components_of("hami"):
            own = images.mirrored(row.image.rpartition(":")[0] if row.image else str(row.image_path))
            registry, _, repository = own.rpartition("/")
            set_value(values, f"{row.section}.registry", registry)
            set_value(values, f"{row.section}.repository", repository)
    return values


def _images(stack: Stack) -> Images:
    """HAMi runs all parts of its chart."""
    known: list[Image] = []
    unknown: list[str] = []
    exact = stack.cluster.version
    for row in components_of("hami"):
        source = row.image
        if source is None and exact is not None and exact.count(".") == 2:
            source = f"{row.image_path}:v{exact}"
        if source is None:
            unknown.append(f"image {row.image_path}: {row.note}")
        else:
            known.append(Image(source, stack.stack.images.mirrored(source)))
    return Images(tuple(known), tuple(unknown))
