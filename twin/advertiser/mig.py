"""MIG on a node: the layout, which layouts a model can have, and which devices the plugin sees. Pure.

Source: reference A1.5 and A6 (NVIDIA/k8s-device-plugin v0.20.0, internal/rm; go-nvml mock tables); AgentBaker for the
number of instances of an AKS gpuInstanceProfile (reference 3.4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from .plugin_config import ConfigError

GPU = "nvidia.com/gpu"
AKS_INSTANCES = {"MIG1g": 7, "MIG2g": 3, "MIG3g": 2, "MIG4g": 1, "MIG7g": 1}
PROFILE = re.compile(r"([1-9])g\.([1-9]\d*)gb([+-][a-z.]+)?")

Layout = dict[int, tuple[str, ...]]  # GPU -> profiles of its instances; a GPU that is absent has MIG disabled
Table = Mapping[str, int]  # what a model can do: profile -> how many fit on an empty GPU


def parse(text: str) -> Layout:
    """`0=1g.5gb,3g.20gb;1=`: GPU 0 has two instances, GPU 1 has MIG enabled and none. Raises ValueError."""
    out: Layout = {}
    for part in filter(None, text.split(";")):
        index, _, profiles = part.partition("=")
        out[int(index)] = tuple(filter(None, profiles.split(",")))
    return out


def render(layout: Layout) -> str:
    """What `parse` reads."""
    return ";".join(f"{gpu}={','.join(profiles)}" for gpu, profiles in sorted(layout.items()))


def of_aks(profile: str, gpus: int, table: Table) -> Layout:
    """The layout of a node whose pool has a gpuInstanceProfile."""
    name = next((one for one in table if one.startswith(profile.removeprefix("MIG") + ".")), None)
    if profile not in AKS_INSTANCES or name is None:
        return {}
    return dict.fromkeys(range(gpus), (name,) * AKS_INSTANCES[profile])


def every_gpu(gpus: int, instances: Table, table: Table) -> Layout | None:
    """The layout with these instances on each GPU; None where the model cannot have them."""
    profiles = tuple(profile for profile, count in instances.items() for _ in range(count))
    return dict.fromkeys(range(gpus), profiles) if profiles and fits(profiles, table) else None


def fits(profiles: Sequence[str], table: Table) -> bool:
    """Whether one GPU can have all these instances at once.

    An instance takes a power of two of the GPU's memory slots and begins at a multiple of it, and its compute slices
    lie within those of the GPU (placement tables of go-nvml; slices: as many as the largest profile has).
    """
    if any(profiles.count(one) > table.get(one, 0) for one in set(profiles)):
        return False
    unit = min((_size(one)[1] for one in table), default=1)
    slices = max((_size(one)[0] for one in table), default=0)
    wanted = sorted(((round(gb / unit), compute) for compute, gb in map(_size, profiles)), reverse=True)

    @cache
    def place(done: int, taken: int) -> bool:
        if done == len(wanted):
            return True
        size, compute = wanted[done]
        masks = (((1 << size) - 1) << start for start in range(0, slices, size) if start + compute <= slices)
        return any(place(done + 1, taken | mask) for mask in masks if not taken & mask)

    return place(0, 0)


def _size(profile: str) -> tuple[int, int]:
    """Compute slices and GB of a profile's name."""
    found = PROFILE.fullmatch(profile)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def resource(profile: str) -> str:
    """`1g.5gb+me` -> `nvidia.com/mig-1g.5gb.me`. Raises ConfigError for an instance that is no full GPU instance."""
    if "c." in profile:
        raise ConfigError("devices", f"MIG device {profile} does not match any resource patterns")
    return "nvidia.com/mig-" + profile.replace("+", ".")


def devices(gpus: int, layout: Layout, strategy: str) -> dict[str, int]:
    """Resource name -> devices before sharing. Raises ConfigError where the plugin refuses the layout."""
    if strategy == "none" or not layout:
        return {GPU: gpus}
    if empty := [gpu for gpu, profiles in sorted(layout.items()) if not profiles]:
        raise ConfigError("devices", f"device {empty[0]} has an invalid MIG configuration: MIG enabled, no instance")
    profiles = [profile for one in layout.values() for profile in one]
    if strategy == "single":
        if len(layout) != gpus:
            raise ConfigError("devices", "all devices on the node must be configured with the same migEnabled value")
        if len(set(profiles)) > 1:
            raise ConfigError("devices", "more than one MIG device type present on node")
        return {GPU: len(profiles)}
    plain = gpus - len(layout)
    out = {GPU: plain} if plain else {}
    for profile in profiles:
        out[resource(profile)] = out.get(resource(profile), 0) + 1
    return out
