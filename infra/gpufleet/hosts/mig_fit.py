"""Why MIG instances do not fit on one GPU, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpufleet.catalog.gpus import GpuModel
from gpufleet.catalog.mig_placement import fits, most_of

# Four times 1g.24gb are 96 on a card whose whole profile is called 7g.94gb: names round by up to three percent.
_ROUNDING = 1.03


def why_not(model: GpuModel, instances: Mapping[str, int]) -> str:
    """Why these instances cannot be on one GPU, "" when nothing speaks against it."""
    for profile, count in instances.items():
        most = most_of(model, profile)
        if most is None:
            return f"no profile {profile}"
        if count > most:
            return f"{profile} fits {most} times, wanted {count}"
    together = fits(model, instances)
    if together:
        return ""
    if sum(count for profile, count in instances.items() if "+me" in profile) > 1:
        return "only one instance can have the media engines (+me)"
    known = {model.mig_profile(profile) or profile: count for profile, count in instances.items()}
    memory, whole = sum(n * _memory(p) for p, n in known.items()), max(map(_memory, model.mig_profiles), default=0)
    if memory > whole * _ROUNDING:
        return f"{memory} GB wanted, the GPU has {whole}"
    slices = sum(count * int(profile.split("g")[0]) for profile, count in known.items())
    if slices > (model.mig_slices or slices):
        return f"{slices} compute slices wanted, the GPU has {model.mig_slices}"
    return "there is no place for all of them at once" if together is False else ""


def _memory(profile: str) -> int:
    """Gigabytes in a profile's name, such as 10 of 1g.10gb+me. The names are rounded."""
    match = re.match(r"\d+g\.(\d+)gb", profile)
    return int(match[1]) if match else 0
