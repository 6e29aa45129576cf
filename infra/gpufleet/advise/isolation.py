"""How far processes that share a GPU are kept apart, as measured: neighbours of another class, and memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gpufleet.advise.measurements import RANK
from gpufleet.advise.request import Request
from gpufleet.bench.beside import Beside, BesideSeries, collect, from_row
from gpufleet.bench.plan import TIME_SLICING
from gpufleet.catalog import reading

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


@dataclass(frozen=True)
class Neighbour:
    """What ``others`` pods of class ``workload`` on the same GPU leave of one pod. Times in ms, medians over the
    repetitions, and the worst of them; ``share`` of the rate without them; ``spread`` of the rates over the
    repetitions. ``keeps``: whether the request's bound still holds."""

    workload: str
    others: int
    share: float
    p99_alone_ms: float | None
    p99_ms: float | None
    p99_worst_ms: float | None
    spread: float
    keeps: bool


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


def neighbours(request: Request, found: Sequence[Company], method: str) -> tuple[list[Neighbour], str]:
    """What was measured beside the request's class under ``method`` on its GPU, and under which conditions."""
    fitting = [
        one
        for one in found
        if (one.gpu, one.series.workload, one.series.method) == (request.gpu.id, request.workload, method)
        and one.series.setting in ("", "default")
    ]
    chosen: dict[str, Company] = {}
    for one in sorted(fitting, key=lambda one: RANK.get(one.series.backend, 9)):
        chosen.setdefault(one.series.neighbour, one)
    result = [_neighbour(request, one.series.neighbour, p) for one in chosen.values() for p in one.series.points]
    return result, "; ".join(dict.fromkeys(one.conditions for one in chosen.values()))


def _neighbour(request: Request, workload: str, point: Beside) -> Neighbour:
    late = request.latency_ms is not None and (point.p99_ms is None or point.p99_ms > request.latency_ms)
    slow = request.slowdown is not None and point.share * request.slowdown < 1
    worst = max(point.p99s_ms, default=None)
    p99 = (point.p99_alone_ms, point.p99_ms, worst)
    return Neighbour(workload, point.n - 1, point.share, *p99, point.spread, not (late or slow))


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
