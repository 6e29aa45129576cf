"""Operating systems for which the GPU Operator has driver images. Table: operator_systems.yaml."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from gpufleet.catalog import reading
from gpufleet.catalog.versions import fields


class OperatorSystem(NamedTuple):
    """A system that NVIDIA lists. `precompiled` are branches with an image per kernel."""

    os: str
    precompiled: tuple[int, ...]
    source: str
    as_of: str


@cache
def operator_systems() -> Mapping[str, OperatorSystem]:
    """Every listed system by name (`ubuntu-24.04`)."""
    return MappingProxyType({
        row["os"]: OperatorSystem(**{**row, "precompiled": tuple(row["precompiled"])})
        for row in reading.rows("operator_systems", "operator_systems")
    })


def driver_images(os: str) -> str:
    """Who publishes driver images for a system: nvidia, partner, or none. A family that no table has counts as none.

    A listed family has images by NVIDIA for the systems that it lists, and, where tags carry the major number alone,
    for all of these (rocky-9.6 is served by the image of rocky9).
    """
    if os in operator_systems():
        return "nvidia"
    rows = _family(os)
    if any(row["images"] == "partner" for row in rows):
        return "partner"
    major = {_major(known) for known in operator_systems()}
    by_major = any(row["tag"] == "major" for row in rows)
    return "nvidia" if by_major and _major(os) in major else "none"


def driver_image_system(os: str, operator: str) -> str | None:
    """The end of a driver image's tag on a system (`ubuntu24.04`, `rocky9`); None where no table states it.

    `operator` is the operator's version, such as v26.7.0; of one that is no number, the newest form.
    """
    family, _, version = os.rpartition("-")
    release, numbers = fields(operator), fields(version)
    fitting = [
        row
        for row in _family(os)
        if row["images"] == "nvidia"
        and (row["first"] is None or not release or release >= fields(row["first"]))
        and (row["os_first"] is None or numbers >= fields(row["os_first"]))
    ]
    if not fitting or not numbers:
        return None
    return f"{family}{numbers[0] if fitting[-1]['tag'] == 'major' else version}"


def _family(os: str) -> list[reading.Row]:
    family = os.rpartition("-")[0]
    return [row for row in reading.rows("operator_systems", "operator_system_tags") if row["family"] == family]


def _major(os: str) -> tuple[str, int]:
    family, _, version = os.rpartition("-")
    numbers = fields(version)
    return family, numbers[0] if numbers else -1
