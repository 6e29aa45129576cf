"""A method of sharing: what a stack file says of it, and every answer that the rest of the product needs from it.

One module per method. A new one is a subclass with its own `strategy`, registered with `@method`. Nothing else has to
know of it: the stack file takes it, the plan predicts and prints it, the components deploy it, `status` looks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import Field

from gpufleet.parts.hardware import Hardware
from gpufleet.stackfile.base import Model
from gpufleet.stackfile.kinds import add_method

if TYPE_CHECKING:
    from gpufleet.fleet.model import Fleet, FleetPool
    from gpufleet.parts.artifact import Artifact

GPU = "nvidia.com/gpu"

#: The plugin itself sets no bound; more devices than this the kubelet could not list in one message.
Replicas = Annotated[int, Field(ge=2, le=16384)]
MemoryGib = Annotated[float, Field(gt=0, le=4096)]
#: What the pods do; the plan warns where measurements speak against the sharing (docs/decision-tree.md).
Workload = Literal["training", "inference", "notebooks", "batch"]


@dataclass(frozen=True)
class MemoryBound:
    """The most that one pod can have, in GiB, why, and what else to lower; None where it depends on what it gets."""

    gib: float | None
    why: str = ""
    or_lower: str = ""


@dataclass(frozen=True)
class Shared:
    """A device that several pods use at the same time: by which method, how many pods, and what they do."""

    method: str
    pods: int
    workload: str | None


class Method(Model):
    """Base of all methods. The defaults describe NVIDIA's plugin with whole GPUs and one pod each."""

    strategy: str = Field(description="The method of sharing.", examples=["timeSlicing"])

    #: The method brings a device plugin of its own, so NVIDIA's stays away; such a method takes all pools of a stack.
    own_plugin: ClassVar[bool] = False
    #: An MPS control daemon runs on the nodes, beside the plugin.
    control_daemon: ClassVar[bool] = False
    #: Further environment of the standalone plugin.
    plugin_env: ClassVar[Mapping[str, str]] = {}
    #: Pods ask for vGPUs, each with memory and cores of a card, in HAMi's words.
    vgpus: ClassVar[bool] = False
    #: What a team's quota may count beside the resources: its name, and the key of a ResourceQuota that counts it.
    counted: ClassVar[Mapping[str, str]] = {}
    #: Whether what was measured of memory on shared GPUs holds: nothing bounds what one pod takes.
    memory_unbounded: ClassVar[bool] = False

    @property
    def pods_per_device(self) -> int:
        """How many pods take part in one device (a GPU or a MIG instance)."""
        return 1

    @property
    def resources(self) -> tuple[str, ...]:
        """What pods ask for, sorted."""
        return (GPU,)

    @property
    def mig_strategy(self) -> Literal["none", "single", "mixed"]:
        """The plugin's word for how it offers MIG instances."""
        return "none"

    @property
    def promised_gib(self) -> float | None:
        """GiB that the stack file promises to each pod, or None."""
        return getattr(self, "memory_per_pod_gib", None)

    @property
    def memory_scale(self) -> float:
        """How much of its memory a GPU is offered as: 1.0 is what it has."""
        return 1.0

    @property
    def for_the_release(self) -> tuple[Any, ...]:
        """What one release has once: pools that share a release must agree on it."""
        return ()

    def plugin_config(self) -> dict[str, Any]:
        """The content of the plugin's configuration file (API version v1)."""
        return {"version": "v1"}

    def layout(self, hardware: Hardware) -> dict[str, int] | None:
        """MIG instances of each GPU: profile -> count; empty without MIG, None where it cannot be told."""
        return {}

    def device_memory_gib(self, hardware: Hardware) -> float | None:
        """GiB of the smallest device that pods share."""
        return hardware.memory_gib

    def memory_for_each(self, hardware: Hardware) -> dict[str, float]:
        """GiB of one pod's part, by the resource that it asks for; empty where that is not known."""
        memory = self.device_memory_gib(hardware)
        return dict.fromkeys(self.resources, round(memory / self.pods_per_device, 2)) if memory else {}

    def asks_beside(self, hardware: Hardware) -> dict[str, int | None]:
        """What a pod asks for beside its device, to get its part of it; None where the number is its own choice."""
        return {}

    def most_for_one(self, device_gib: float) -> MemoryBound:
        """What one pod can have of a device's memory."""
        return MemoryBound(device_gib, "The device that it shares has no more.")

    def offers(self, gpus: int, predicted: dict[str, int]) -> dict[str, int]:
        """What a node offers; `predicted` is what NVIDIA's plugin would make of the configuration."""
        return predicted

    def node_labels(self) -> dict[str, str]:
        """Labels by which the method's own software finds its nodes."""
        return {}

    def shared(self) -> Shared | None:
        """How a device is shared where pods take turns or run at once; None where they do not."""
        return None

    @classmethod
    def artifact(cls, fleet: Fleet, pools: Sequence[FleetPool]) -> Artifact | None:
        """The method's own software for the pools that use it, or None."""
        return None


M = TypeVar("M", bound=type[Method])


def method(cls: M) -> M:
    """Registers a method under the one word of its `strategy`."""
    (word,) = get_args(cls.__pydantic_fields__["strategy"].annotation)
    add_method(word, cls)
    return cls
