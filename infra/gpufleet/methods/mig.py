"""MIG: GPUs that are cut into instances, who cuts them, and under which names the instances are offered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from gpufleet.catalog.mig_placement import most_of
from gpufleet.methods.base import GPU, MemoryBound, Replicas, Shared, method
from gpufleet.methods.replicated import Replicated
from gpufleet.parts.hardware import Hardware
from gpufleet.stackfile.base import matches, refuse

MigProfileName = Annotated[
    str,
    matches(
        r"[1-9]g\.[1-9][0-9]{0,2}gb([+-][a-z.]+)?",
        "MIG profiles look like 1g.10gb, or 1g.10gb+me.",
        "Use a name of the GPU's MIG table (docs/mig.md).",
    ),
]


@method
class Mig(Replicated):
    """MIG: GPUs are cut into instances with memory and fault isolation.

    `profile` cuts every GPU into as many instances of one kind as fit; `instances` gives the instances of each GPU.
    `naming` is the plugin's MIG strategy: `single` offers instances as nvidia.com/gpu, `mixed` under their own names.
    `replicas` offers each instance several times (time-slicing within it).
    """

    strategy: Literal["mig"] = Field(description="MIG: the GPU is cut into instances.", examples=["mig"])
    profile: MigProfileName | None = Field(
        default=None,
        description="The kind of instance that every GPU is cut into, as many as fit.",
        examples=["1g.10gb"],
    )
    instances: dict[MigProfileName, Annotated[int, Field(ge=1, le=7)]] = Field(
        default_factory=dict,
        description="The instances of each GPU: kind and number.",
        examples=[{"1g.10gb": 3, "4g.40gb": 1}],
    )
    naming: Literal["single", "mixed"] | None = Field(
        default=None,
        description="How instances are offered: single as nvidia.com/gpu, mixed under their own names.",
        examples=["mixed"],
    )
    replicas: Replicas | None = Field(default=None, description="How many pods share each instance.", examples=[4])

    plugin_env: ClassVar[Mapping[str, str]] = {"NVIDIA_MIG_MONITOR_DEVICES": "all"}
    memory_unbounded: ClassVar[bool] = True

    @model_validator(mode="after")
    def _layout(self) -> Mig:
        if (self.profile is None) == (not self.instances):
            raise refuse(
                "GF110", "The layout is given in one way.", "Give profile, or instances.", keys="profile, instances"
            )
        if len(self.instances) > 1 and self.naming == "single":
            raise refuse(
                "GF110",
                "Under `single` the plugin refuses a node with more than one kind of instance.",
                "Leave naming out, or set it to mixed.",
                keys="instances, naming",
            )
        if self.rename_by_default and self.replicas is None:
            raise refuse(
                "GF110", "Only shared instances are renamed.", "Set replicas.", keys="renameByDefault, replicas"
            )
        return self

    @property
    def mig_strategy(self) -> Literal["single", "mixed"]:
        """`single` where there is one kind of instance and nothing else is asked for."""
        return self.naming or ("mixed" if len(self.instances) > 1 else "single")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of instances, in the order of the stack file."""
        return (self.profile,) if self.profile else tuple(self.instances)

    @property
    def resources(self) -> tuple[str, ...]:
        """Media extensions are written `.me` in resource names."""
        if self.mig_strategy == "single":
            return (GPU + self._suffix,)
        return tuple(sorted(self._resource(kind) for kind in self.kinds))

    @property
    def _suffix(self) -> str:
        return ".shared" if self.rename_by_default else ""

    def _resource(self, kind: str) -> str:
        return f"nvidia.com/mig-{kind.replace('+', '.')}{self._suffix}"

    def plugin_config(self) -> dict[str, Any]:
        content: dict[str, Any] = {"version": "v1", "flags": {"migStrategy": self.mig_strategy}}
        if self.replicas is not None:
            names = [name.removesuffix(".shared") for name in self.resources]
            content["sharing"] = {"timeSlicing": self.replicated(names)}
        return content

    def layout(self, hardware: Hardware) -> dict[str, int] | None:
        model = hardware.model
        if model is None or not model.mig_profiles:
            return None
        wanted = {self.profile: most_of(model, self.profile) or 0} if self.profile else dict(self.instances)
        if any(most_of(model, p) is None or n < 1 for p, n in wanted.items()):
            return None
        return dict(sorted(wanted.items()))

    def device_memory_gib(self, hardware: Hardware) -> float | None:
        return min(memory_per_instance_gib(kind) for kind in self.kinds)

    def memory_for_each(self, hardware: Hardware) -> dict[str, float]:
        if len(self.resources) == 1:
            return super().memory_for_each(hardware)
        gib = {self._resource(kind): memory_per_instance_gib(kind) for kind in self.kinds}
        return {name: round(gib[name] / self.pods_per_device, 2) for name in self.resources}

    def most_for_one(self, device_gib: float) -> MemoryBound:
        return MemoryBound(None) if len(self.instances) > 1 else super().most_for_one(device_gib)

    def shared(self) -> Shared | None:
        return None if self.replicas is None else Shared("timeSlicing", self.replicas, self.workload)


def layout_name(instances: Mapping[str, int]) -> str:
    """`2x1g.10gb_1x3g.40gb`: a name for a MIG configuration that is a label value as well."""
    return "_".join(f"{count}x{profile.replace('+', '.')}" for profile, count in sorted(instances.items()))


def memory_per_instance_gib(profile: str) -> float:
    """GiB of one instance by its name: 10 for 1g.10gb."""
    return float(profile.split(".")[1].split("gb", maxsplit=1)[0])
