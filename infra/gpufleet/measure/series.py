"""Measured series: one workload, backend and method over numbers of processes. Pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpufleet.measure import queue_model
from gpufleet.measure.stats import middle_spread, spread
from gpufleet.measure.workloads import Sizes, describe

_KEY = ("workload", "backend", "method", "time_slice", "profile")


@dataclass(frozen=True)
class Measured:
    """One number of processes. Rates in steps per second, times in ms; medians over the repetitions."""

    n: int
    totals: tuple[float, ...]  # all processes together, of each repetition
    least: float  # rate of the slowest process
    most: float
    p50_ms: float | None  # median over the repetitions of the percentile over all processes' steps
    p99_ms: float | None
    samples: int  # latencies behind both, over all repetitions

    @property
    def total(self) -> float:
        return statistics.median(self.totals)

    @property
    def spread(self) -> float:
        """(largest - smallest) / median of the totals."""
        return spread(self.totals)

    @property
    def middle_spread(self) -> float:
        """Interquartile range / median of the totals; with fewer than four repetitions the same as ``spread``."""
        return middle_spread(self.totals)


@dataclass(frozen=True)
class Activity:
    """How busy one process alone keeps the GPU, as parts of the time: a kernel runs, a multiprocessor has work, the
    device memory is read or written. DCGM calls them GR_ENGINE_ACTIVE (or GPU_UTIL), SM_ACTIVE and DRAM_ACTIVE."""

    gpu: float
    sm: float | None = None
    dram: float | None = None


@dataclass
class Series:
    workload: str
    backend: str
    method: str
    setting: str  # time-slice length or MIG profile, where one was set
    unit: str
    points: list[Measured]
    memory_mib: float | None = None  # device memory per process with its context, at the largest n
    conditions: str = ""
    model: queue_model.QueueModel | None = None
    device: dict[str, Any] = field(default_factory=dict)
    activity: Activity | None = None

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.workload, self.backend, self.method, self.setting) if part)

    @property
    def alone(self) -> float | None:
        """Rate of one process alone."""
        return next((p.total for p in self.points if p.n == 1), None)

    @property
    def model_error(self) -> float | None:
        """Largest relative error of the model over the points."""
        return self.model.largest_error({p.n: p.total for p in self.points}) if self.model else None

    def fit(self) -> None:
        self.model = queue_model.fit({p.n: p.total for p in self.points})


def collect(rows: Iterable[Mapping[str, Any]]) -> list[Series]:
    """Series from a bench's lines, in the order of their first point, each with its fitted model."""
    found: dict[tuple[str, ...], dict[int, list[Mapping[str, Any]]]] = {}
    groups: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for row in rows:
        key = tuple(str(row.get(name, "")) for name in _KEY)
        if row["kind"] == "point":
            found.setdefault(key, {}).setdefault(int(row["n"]), []).append(row)
        elif row["kind"] == "group" and "neighbour" not in row:
            groups[key] = max(row, groups.get(key, row), key=lambda group: int(group["processes"]))
    return [_series(key, by_n, groups.get(key, {})) for key, by_n in found.items()]


def _series(key: tuple[str, ...], by_n: Mapping[int, list[Mapping[str, Any]]], group: Mapping[str, Any]) -> Series:
    workload, backend, method, time_slice, profile = key
    unit = str(next(iter(by_n.values()))[0]["unit"])
    points = [_measured(n, by_n[n]) for n in sorted(by_n)]
    one = Series(workload, backend, method, time_slice or profile, unit, points)
    one.memory_mib = group.get("memory_mib_per_process")
    one.device = dict(group.get("device", {}))
    one.activity = _activity(by_n.get(1, []))
    known = Sizes.__dataclass_fields__
    sizes = Sizes(**{name: value for name, value in group.get("sizes", {}).items() if name in known})
    one.conditions = describe(workload, backend, sizes)
    one.fit()
    return one


def _activity(rows: Iterable[Mapping[str, Any]]) -> Activity | None:
    """Medians over the repetitions of one process alone."""
    seen = [row["activity"] for row in rows if "gpu" in row.get("activity", {})]

    def middle(name: str) -> float | None:
        known = [float(one[name]) for one in seen if name in one]
        return statistics.median(known) if known else None

    gpu = middle("gpu")
    return None if gpu is None else Activity(gpu, middle("sm"), middle("dram"))


def _measured(n: int, rows: Sequence[Mapping[str, Any]]) -> Measured:
    def middle(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    return Measured(
        n=n,
        totals=tuple(float(row["total"]) for row in rows),
        least=statistics.median(min(row["per_process"]) for row in rows),
        most=statistics.median(max(row["per_process"]) for row in rows),
        p50_ms=middle(row["p50_ms"] for row in rows),
        p99_ms=middle(row["p99_ms"] for row in rows),
        samples=sum(int(row["samples"]) for row in rows),
    )


def from_row(row: Mapping[str, Any]) -> Series:
    """A series as the catalogue holds it. ``total`` and ``spread`` there follow from ``totals``, the repetitions."""
    points = [
        Measured(p["n"], tuple(p["totals"]), p["least"], p["most"], p["p50_ms"], p["p99_ms"], p["samples"])
        for p in row["points"]
    ]
    one = Series(row["workload"], row["backend"], row["method"], row.get("setting", ""), row["unit"], points)
    one.memory_mib, one.conditions = row.get("memory_mib_per_process"), row["conditions"]
    if "activity" in row:
        one.activity = Activity(**row["activity"])
    if "model" in row:
        model = row["model"]
        one.model = queue_model.QueueModel(model["service_ms"] / 1e3, model["host_ms"] / 1e3, model["efficiency"])
    return one
