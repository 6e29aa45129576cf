"""How far processes that share a GPU are kept apart, as measured: neighbours of another class, and memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from gpufleet.catalog import reading
from gpufleet.measure.beside import BesideSeries, collect, from_row
from gpufleet.measure.workloads import TIME_SLICING

_PREFIX = "isolation_"


@dataclass(frozen=True)
class Company:
    """One measured series of a class beside another, with what its numbers depend on."""

    gpu: str
    driver: str
    date: str
    series: BesideSeries

    @property
    def conditions(self) -> str:
        return f"{self.gpu}, driver {self.driver}, {self.date}, {self.series.backend}"


def _rows(part: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each row of the tables `*_part`, with the row of the run that it is from."""
    for file in reading.files():
        if file.startswith(_PREFIX):
            name, content = f"{file.removeprefix(_PREFIX)}_isolation", reading.load(file)
            runs = {row["id"]: row for row in content[f"{name}_runs"]}
            yield from ((row, runs[row["run"]]) for row in content.get(f"{name}_{part}", []))


@cache
def companies() -> tuple[Company, ...]:
    """Every measured pair of classes of the catalogue's tables ``isolation_*``."""
    return tuple(Company(run["gpu"], run["driver"], row["as_of"], from_row(row)) for row, run in _rows("neighbours"))


def own_companies(lines: Iterable[Mapping[str, Any]], gpu: str) -> tuple[Company, ...]:
    """The pairs in a user's own bench lines, as measured on ``gpu``."""
    lines = list(lines)
    conditions = next((line for line in lines if line["kind"] == "conditions"), {})
    driver = str(conditions.get("gpu_state", {}).get("driver_version", "unknown"))
    return tuple(Company(gpu, driver, str(conditions.get("date", "no date")), one) for one in collect(lines))


def memory_rows(method: str | None = None) -> list[dict[str, Any]]:
    """The rows of the memory probe, each with its ``gpu`` and ``driver``."""
    return [
        {**row, "gpu": run["gpu"], "driver": run["driver"]}
        for row, run in _rows("memory")
        if method in (None, row["method"])
    ]


def unbounded_memory() -> str:
    """One sentence: what time-slicing was measured to leave unbounded."""
    shared = [row for row in memory_rows(TIME_SLICING) if row["n"] > 1]
    if not shared:
        return "Nothing bounds what a pod takes."
    row = min(shared, key=lambda row: abs(row["n"] - 4))
    first, whole = max(row["taken_mib"]) / 1024, row["total_mib"][0] / 1024
    where = f"{row['gpu']}, driver {row['driver']}, {row['as_of']}"
    return (
        f"Nothing bounds what a pod takes: of {row['n']} processes one took {first:.0f} of {whole:.0f} GiB, then every "
        f"process was refused more and another could not start, while those that ran went on ({where})."
    )
