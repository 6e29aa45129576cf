"""Which MIG instances fit on a GPU together.

Profiles and how many of each fit come from the catalogue (NVIDIA's MIG guide). Which ones fit together follows from
where each may begin on the GPU's memory slots, which the table's figures give: 7 of a kind begin at slots 0 to 6, 4 at
every second slot, 3 at 0, 2 and 4, 2 at 0 and 4 (NVIDIA/go-nvml, placement tables). Profiles with `+me` hold a media
engine that the GPU has once: each of them fits once, so (inferred) one of all of them does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpufleet.catalog.gpus import GpuModel


@dataclass(frozen=True)
class Placement:
    """Memory slots at which instances of a profile may begin, and how many slots each takes."""

    starts: tuple[int, ...]
    size: int


def placement(model: GpuModel, profile: str) -> Placement | None:
    """Where a profile may stand on a model; None where the table does not say enough to tell."""
    known = model.mig_profile(profile)
    if known is None or model.mig_slices is None:
        return None
    plain = known.split("+", maxsplit=1)[0].split("-", maxsplit=1)[0]
    most = model.mig_profiles.get(plain, model.mig_profiles[known])
    compute = int(plain.split("g.")[0])
    if model.mig_slices == 7:
        if compute == 7:
            return Placement((0,), 8)
        small = {7: Placement(tuple(range(7)), 1), 4: Placement((0, 2, 4, 6), 2), 3: Placement((0, 2, 4), 2)}
        return small.get(most) or (Placement((0, 4), 4) if most == 2 else Placement((0,), 4) if compute == 4 else None)
    if model.mig_slices == 4:
        return {4: Placement((0, 1, 2, 3), 1), 2: Placement((0, 2), 2), 1: Placement((0,), 4)}.get(most)
    if model.mig_slices == 2:
        return {2: Placement((0, 1), 1), 1: Placement((0,), 2)}.get(most)
    return None


def most_of(model: GpuModel, profile: str) -> int | None:
    """Most instances of a profile on one GPU, in either spelling; None: the model has no such profile."""
    known = model.mig_profile(profile)
    return None if known is None else model.mig_profiles[known]


def fits(model: GpuModel, instances: Mapping[str, int]) -> bool | None:
    """Whether these instances fit on one GPU together; None where that cannot be told."""
    wanted: list[Placement] = []
    if sum(count for profile, count in instances.items() if "+me" in profile) > 1:
        return False
    for profile, count in instances.items():
        where = placement(model, profile)
        if where is None:
            return None
        wanted += [where] * count
    wanted.sort(key=lambda p: (-p.size, p.starts))
    slots = 8 if model.mig_slices == 7 else model.mig_slices or 0

    def place(i: int, taken: int) -> bool:
        if i == len(wanted):
            return True
        for start in wanted[i].starts:
            mask = ((1 << wanted[i].size) - 1) << start
            if start + wanted[i].size <= slots and not taken & mask and place(i + 1, taken | mask):
                return True
        return False

    return place(0, 0)
