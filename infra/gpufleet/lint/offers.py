"""What nodes will offer with the given configurations: the part that checks of workloads need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpufleet.device_plugin import NodeLayout, profile_is_valid
from gpufleet.lint.config import Checked
from gpufleet.lint.node import UNKNOWN_PRODUCT
from gpufleet.parts.names import HAMI_CORES, HAMI_MEMORY

PREFIX = "nvidia.com/"
SHARED = ".shared"
#: Names that HAMi adds (chart hami 2.10.0).
HAMI_PERCENTAGE, HAMI_PRIORITY = "nvidia.com/gpumem-percentage", "nvidia.com/priority"
HAMI = frozenset({HAMI_MEMORY, HAMI_PERCENTAGE, HAMI_CORES, HAMI_PRIORITY})


@dataclass(frozen=True)
class Share:
    """How one resource is shared. None means unknown."""

    strategy: str | None = None
    replicas: int | None = None
    refuses_more_than_one: bool | None = None


@dataclass(frozen=True)
class Offers:
    """Resources by name. `certain` if the user described the node, so that it offers nothing else; `planned` if it is
    what the plan of a stack promises."""

    shares: dict[str, Share] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    products: frozenset[str] = frozenset()
    certain: bool = False
    planned: bool = False

    def share(self, resource: str) -> Share | None:
        """How a resource is shared; None if it is not known to be shared."""
        found = self.shares.get(resource)
        return found if found is not None or not resource.endswith(SHARED) else Share()


def offers(checked: Iterable[Checked], node: NodeLayout | None) -> Offers:
    """The offers of all accepted configurations together. If they differ for a resource, the largest factor counts."""
    shares: dict[str, Share] = {}
    capacity: dict[str, int] = {}
    products: set[str] = set()
    certain = False
    for one in checked:
        answer = one.prediction
        if not answer.accepted or answer.capacity is None:
            continue
        certain = certain or node is not None
        capacity |= {k: max(v, capacity.get(k, 0)) for k, v in answer.capacity.items()}
        known_product = one.node is not None and one.node.product != UNKNOWN_PRODUCT
        if known_product and answer.labels and "gpu.product" in answer.labels:
            products.add(answer.labels["gpu.product"])
        for resource, replicas in answer.factors.items():
            known = shares.get(resource)
            if known is None or (known.replicas or 0) < replicas:
                shares[resource] = Share(answer.strategy, replicas, bool(answer.fail_gt1))
    return Offers(shares, capacity, frozenset(products), certain)


def of_plugin(resource: str) -> bool:
    """Whether only NVIDIA's plugin, or HAMi, gives a resource such a name. Networks and KubeVirt have other names."""
    name = resource.removeprefix(PREFIX)
    return resource in HAMI or name in ("gpu", "gpu" + SHARED) or name.startswith("mig-")


def name_is_possible(resource: str) -> bool:
    """Whether NVIDIA's plugin, or a known other one, could give a resource this name."""
    if resource in HAMI:
        return True
    name = resource.removeprefix(PREFIX).removesuffix(SHARED)
    if "+" in name:  # not a character of resource names
        return False
    if name == "gpu":
        return True
    if name.startswith("mig-"):
        profile = name.removeprefix("mig-")
        if "c." in profile:  # a part of an instance's compute slices: no resource of the plugin
            return False
        head, dot, rest = profile.partition("gb")
        return profile_is_valid(profile) or (
            bool(dot) and profile_is_valid(f"{head}gb+{rest.lstrip('.')}" if rest else profile)
        )
    if name.lower() == "gpu" or (name.lower().startswith("mig") and "_" not in name):
        return False  # the plugin writes small letters
    # KubeVirt and vGPU names carry capitals or underscores (GA102GL_A10); network and hook resources other words.
    return name != name.lower() or "_" in name or not (name.startswith(("gpu", "mig", "cuda")) or name.endswith("gpu"))
