"""MIG profiles and the instances that exist: what can be read and what fits."""

from __future__ import annotations

import re
from typing import Any

from . import base

Gpu = dict[str, Any]
# compute slices of the profile, memory slices -> profile id that -lgip shows; by slices of the whole GPU
PROFILE_IDS = {7: {(1, 1): 19, (1, 2): 15, (2, 2): 14, (3, 4): 9, (4, 4): 5, (7, 8): 0},
               4: {(1, 1): 14, (2, 2): 5, (4, 4): 0}}  # fmt: skip


class Impossible(Exception):  # noqa: N818 - the driver's answer
    """The instances do not fit on the GPU."""


def compute_slices(profile: str) -> int:
    """Return the compute slices of a profile name."""
    return int(profile.split("g.", maxsplit=1)[0])


def _gib(profile: str) -> int:
    found = re.search(r"g\.(\d+)gb", profile)
    return int(found.group(1)) if found else 0


def memory_slices(gpu: Gpu, profile: str) -> int:
    """Return the memory slices of a profile: its memory in units of the smallest profile's."""
    unit = min(_gib(name) for name in gpu["mig"]["profiles"])
    return round(_gib(profile) / unit)


def profile_id(gpu: Gpu, profile: str) -> int:
    """Return the number of a profile, as -lgip shows it."""
    names = list(gpu["mig"]["profiles"])
    if "+" in profile or "-" in profile:
        return 20 + names.index(profile)
    ids = PROFILE_IDS.get(gpu["mig"]["slices"], {})
    return ids.get((compute_slices(profile), memory_slices(gpu, profile)), 40 + names.index(profile))


def nvml_facts(gpu: Gpu, profile: str) -> str:
    """Return what NVML says of a profile: compute slices, memory in MiB, index of the profile in the interface."""
    slices, memory = compute_slices(profile), memory_slices(gpu, profile)
    full = memory_slices(gpu, max(gpu["mig"]["profiles"], key=_gib))
    index = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}.get(slices, 0)
    if slices == 1 and "+me" in profile:
        index = 7
    elif slices == 1 and memory == 2:
        index = 9
    return f"{slices} {gpu['memory_mib'] * memory // full} {index}"


def instances(gpu: Gpu) -> list[dict[str, Any]]:
    """Return the GPU instances that exist now."""
    found: list[dict[str, Any]] = base.boot_state()["gpus"].get(str(gpu["index"]), {}).get("instances", [])
    return found


def devices(gpu: Gpu) -> list[dict[str, Any]]:
    """Return the MIG devices: instances that have a compute instance."""
    return [entry for entry in instances(gpu) if entry["compute"]]


def enabled(gpu: Gpu) -> bool:
    """Tell whether MIG mode is on now."""
    return bool(base.lasting_state()["gpus"].get(str(gpu["index"]), {}).get("mig"))


def check_fit(gpu: Gpu, profiles: list[str]) -> None:
    """Raise Impossible when these profiles together do not fit on one GPU."""
    known = gpu["mig"]["profiles"]
    for profile in profiles:
        if profile not in known:
            raise Impossible(f"profile {profile} does not exist on {gpu['name']}")
    if sum(compute_slices(name) for name in profiles) > gpu["mig"]["slices"]:
        raise Impossible("Insufficient Resources")
    total = memory_slices(gpu, max(known, key=_gib))
    if sum(memory_slices(gpu, name) for name in profiles) > total:
        raise Impossible("Insufficient Resources")
    for name in set(profiles):
        if profiles.count(name) > known[name]:
            raise Impossible("Insufficient Resources")
