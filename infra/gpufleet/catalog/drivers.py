"""Driver branches, CUDA against driver."""

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from gpufleet.catalog import reading
from gpufleet.catalog.gpus import GpuModel
from gpufleet.catalog.reading import STANDARD, Tables, kept
from gpufleet.catalog.versions import driver_version


class DriverBranch(NamedTuple):
    """One branch of the data-centre driver. None means that no source states it."""

    branch: int
    kind: str | None  # LTS, production, new-feature
    eol: str | None  # month in which support ends or ended, "2028-06"
    kernel_modules: str  # flavours the branch has: proprietary, both, open
    newest_seen: str | None  # highest exact version that a source names; a newer one may exist
    note: str | None
    source: str
    as_of: str


@kept
def driver_branches(tables: Tables) -> Mapping[int, DriverBranch]:
    """Every branch by number, oldest first."""
    return MappingProxyType({
        row["branch"]: DriverBranch(**row) for row in tables.rows("driver_branches", "driver_branches")
    })


def driver_branch(name: str | int, tables: Tables = STANDARD) -> DriverBranch | None:
    """The branch of a number or of a version (`580`, `"580"`, `"580.126.09"`), or None when the table has no such row.

    Raises ValueError when the text is no version.
    """
    return driver_branches(tables).get(driver_version(str(name)).branch)


@kept
def open_by_default_from(tables: Tables) -> int:
    """First branch that installs open modules where the GPU takes both flavours."""
    rows = tables.rows("driver_branches", "flavour_defaults")
    return next(int(row["from_branch"]) for row in rows if row["flavour"] == "open")


def default_flavour(models: Sequence[GpuModel], branch: int, tables: Tables = STANDARD) -> str:
    """The flavour that the GPUs take; where they take both, the one that the branch installs by itself."""
    kinds = {model.modules for model in models} - {"both"}
    if kinds:
        return "open" if "open" in kinds else "proprietary"
    return "open" if branch >= open_by_default_from(tables) else "proprietary"


@cache
def operator_drivers() -> tuple[str, ...]:
    """Versions that the GPU Operator of this catalogue lists for its driver container, newest first."""
    return tuple(row["version"] for row in reading.rows("driver_branches", "operator_drivers"))


@kept
def cuda_min_driver(tables: Tables) -> Mapping[int, str]:
    """CUDA major version -> lowest driver for minor-version compatibility."""
    return MappingProxyType({int(row["cuda"]): row["driver"] for row in tables.rows("cuda", "cuda_min_driver")})


@cache
def cuda_full_driver() -> Mapping[str, str]:
    """CUDA version ("12.4", "12.4 U1") -> the driver released with it, from which on nothing is missing."""
    return MappingProxyType({row["cuda"]: row["driver"] for row in reading.rows("cuda", "cuda_full_driver")})


@cache
def cuda_image_branches() -> Mapping[str, tuple[int, ...]]:
    """CUDA version ("12.4") -> driver branches that its nvidia/cuda base image lets pass though they are older."""
    return MappingProxyType({row["cuda"]: tuple(row["branches"]) for row in reading.rows("cuda", "cuda_images")})


@cache
def cuda_compat_unknown() -> frozenset[str]:
    """GPU models for which no source says whether forward compatibility (cuda-compat) works."""
    return frozenset(row["gpu"] for row in reading.rows("cuda", "cuda_compat"))
