"""Azure: GPU sizes, drivers of the AKS node images, Kubernetes versions of AKS, fields of the SDK."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from infra.catalog import tables


class AzureSize(NamedTuple):
    """One exact Azure VM size. None means unknown, never "none"."""

    size: str
    gpus_schedulable: int | None  # devices that the scheduler sees on one node, before MIG or sharing
    cards: float | None  # physical cards behind one node; below 1 for a part of a card
    gpu: str | None  # id of a GpuModel
    memory_gib_per_gpu: float | None  # of one schedulable device, as the size page prints it
    driver_family: str  # cuda, grid, amd; none: AKS installs no driver
    mig: bool | None  # false also where the vendor has no such feature
    nvswitch: bool | None  # true: AKS starts the fabric manager on this size
    arch: str  # amd64, arm64
    status: str  # supported, retiring, unsupported, unverified
    scarce: bool  # capacity is hard to get: a surge node may not come
    source: str
    as_of: str
    note: str | None = None


@cache
def azure_sizes() -> Mapping[str, AzureSize]:
    """Every size of the table by its exact name."""
    return MappingProxyType({row["size"]: AzureSize(**row) for row in tables.rows("azure-sizes", "azure_sizes")})


def azure_size(name: str) -> AzureSize | None:
    """The size of that name in any letter case (Azure ignores it), or None when the table has no such row."""
    sizes = azure_sizes()
    return sizes.get(name) or _sizes_folded().get(name.casefold())


@cache
def _sizes_folded() -> Mapping[str, AzureSize]:
    return MappingProxyType({name.casefold(): size for name, size in azure_sizes().items()})
