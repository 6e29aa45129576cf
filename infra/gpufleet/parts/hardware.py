"""The hardware of a pool's nodes, as the catalogue knows it."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.catalog import AzureSize, GpuModel


@dataclass(frozen=True)
class Hardware:
    """One node of a pool; None is unknown. Memory in GiB per schedulable GPU; `size` is set where a cloud sells it."""

    gpus: int | None
    model: GpuModel | None
    memory_gib: float | None
    size: AzureSize | None = None


UNKNOWN = Hardware(None, None, None)


def shown_memory(model: GpuModel | None, sold_as: float | None) -> float | None:
    """What the driver shows where it is known: less than what the card is sold as (a T4 of 16 GB shows 15 GiB)."""
    if model is not None and model.memory_mib is not None:
        return model.memory_mib / 1024
    return sold_as
