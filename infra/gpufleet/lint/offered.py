"""Whether nodes can offer a resource that quotas and queues count."""

from __future__ import annotations

from collections.abc import Iterable

from gpufleet.lint.config import Checked
from gpufleet.lint.offers import HAMI, PREFIX, SHARED, Offers, name_is_possible

GPU = "nvidia.com/gpu"
#: Resources of Volcano's device plugin for parts of GPUs (Project-HAMi/volcano-vgpu-device-plugin).
VOLCANO = ("volcano.sh/vgpu-", "volcano.sh/gpu-")


def is_gpu(resource: str) -> bool:
    """Whether a resource is a GPU of NVIDIA's, or a part of one."""
    name = resource.removeprefix(PREFIX)
    own = resource.startswith(PREFIX) and (name in ("gpu", "gpu" + SHARED) or name.startswith("mig-"))
    return own or resource in HAMI or resource.startswith(VOLCANO)


def is_meant_as_gpu(resource: str) -> bool:
    """The same, with names that no plugin could give."""
    return is_gpu(resource) or (resource.startswith(PREFIX) and not name_is_possible(resource))


def offered_names(checked: Iterable[Checked], offers: Offers, *, stack: bool) -> tuple[str, ...]:
    """What the nodes certainly offer, of the names that a configuration decides; nothing where nobody can tell.

    Of nodes that nobody described, the configurations tell whether whole GPUs keep their name.
    """
    if offers.certain or (stack and offers.capacity):
        return tuple(offers.capacity)
    found = {name for one in checked if one.prediction.accepted for name in one.prediction.capacity or ()}
    return tuple(sorted(found & {GPU, GPU + SHARED}))


def never(resource: str, offered: tuple[str, ...], *, certain: bool) -> bool:
    """Whether no node offers a resource. Only of nodes that are described, other names than the GPU's can be judged."""
    if resource.startswith(PREFIX) and not name_is_possible(resource):
        return True
    if not offered or resource in offered or resource in HAMI or not resource.startswith(PREFIX):
        return False
    return is_gpu(resource) and (certain or resource in (GPU, GPU + SHARED))
