"""From JSON lines to series (one workload, backend and method) and to the printed table. Pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.bench import queue_model
from infra.bench.stats import spread

_HEAD = "  n      total   gain  least   most    p50 ms    p99 ms  spread reps"
_KEY = ("workload", "backend", "method", "time_slice", "profile")


@dataclass(frozen=True)
class Measured:
    """One number of processes: medians over the repetitions. Rates per second, times in ms."""

    n: int
    repetitions: int
    total: float
    spread: float  # (largest - smallest) / median of the total over the repetitions
    share_least: float  # slowest process, as a part of one process alone
    share_most: float
    p50_ms: float | None
    p99_ms: float | None
    samples: int  # latencies behind p50 and p99, over all repetitions


@dataclass
class Series:
    workload: str
    backend: str
    method: str
    setting: str
    unit: str
    points: list[Measured]
    memory_mib: float | None = None
    model: queue_model.QueueModel | None = None
    model_error: float | None = None
    device: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.workload, self.backend, self.method, self.setting) if part)

    @property
    def alone(self) -> float | None:
        """Rate of one process alone."""
        return next((p.total for p in self.points if p.n == 1), None)


def collect(rows: Iterable[Mapping[str, Any]]) -> list[Series]:
    """Series in the order of their first point; medians and spread over repetitions, and the fitted model."""
    grouped: dict[tuple[str, ...], dict[int, list[Mapping[str, Any]]]] = {}
    groups: dict[tuple[str, ...], Mapping[str, Any]] = {}
    memory: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        key = tuple(str(row.get(name, "")) for name in _KEY)
        if row["kind"] == "point":
            grouped.setdefault(key, {}).setdefault(int(row["n"]), []).append(row)
        elif row["kind"] == "group":
            groups[key] = row
            if row.get("memory_mib_per_process") is not None:
                memory.setdefault(key, []).append(float(row["memory_mib_per_process"]))
    result = []
    for key, by_n in grouped.items():
        alone = _median([float(r["total"]) for r in by_n.get(1, [])])
        points = [_measured(n, by_n[n], alone) for n in sorted(by_n)]
        series = Series(key[0], key[1], key[2], key[3] or key[4], str(next(iter(by_n.values()))[0]["unit"]), points)
        series.memory_mib = _median(memory.get(key, []))
        series.device = dict(groups.get(key, {}).get("device", {}))
        totals = {p.n: p.total for p in points}
        series.model = queue_model.fit(totals)
        series.model_error = series.model.largest_error(totals) if series.model else None
        result.append(series)
    return result


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _measured(n: int, rows: Sequence[Mapping[str, Any]], alone: float | None) -> Measured:
    totals = [float(r["total"]) for r in rows]
    least = statistics.median(min(r["per_process"]) for r in rows)
    most = statistics.median(max(r["per_process"]) for r in rows)
    p50 = [float(r["p50_ms"]) for r in rows if r["p50_ms"] is not None]
    p99 = [float(r["p99_ms"]) for r in rows if r["p99_ms"] is not None]
    return Measured(
        n=n, repetitions=len(rows), total=statistics.median(totals), spread=spread(totals),
        share_least=least / alone if alone else float("nan"), share_most=most / alone if alone else float("nan"),
        p50_ms=_median(p50), p99_ms=_median(p99), samples=sum(int(r["samples"]) for r in rows),
    )  # fmt: skip


def title(rows: Iterable[Mapping[str, Any]]) -> str:
    """GPU, driver and date of the first conditions line."""
    for row in rows:
        if row["kind"] == "conditions":
            state = row["gpu_state"]
            return f"{state.get('name', 'GPU')}, driver {state.get('driver_version', 'unknown')}, {row['date']}"
    return "GPU sharing"


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def table(series: Sequence[Series], rows: Iterable[Mapping[str, Any]]) -> str:
    """Readable text: one block per series, then what failed or was skipped."""
    rows = list(rows)
    lines = [title(rows)]
    for one in series:
        memory = "" if one.memory_mib is None else f", {one.memory_mib:.0f} MiB per process"
        lines += ["", f"{one.name} ({one.unit}{memory})"]
        lines.append(_HEAD)
        for p in one.points:
            gain = p.total / one.alone if one.alone else None
            lines.append(
                f"{p.n:>3} {p.total:>10.2f} {_number(gain):>6} {_number(p.share_least):>6} {_number(p.share_most):>6} "
                f"{_number(p.p50_ms):>9} {_number(p.p99_ms):>9} {p.spread:>6.1%} {p.repetitions:>4}"
            )
        if one.model:
            lines.append(
                f"    model: GPU {one.model.service * 1e3:.2f} ms, host {one.model.host * 1e3:.2f} ms per step, "
                f"efficiency {one.model.efficiency:.2f} when shared; off by at most {one.model_error:.1%}"
            )
    failed = [row for row in rows if row["kind"] == "failed"]
    skipped = sum(1 for row in rows if row["kind"] == "skipped")
    lines += [""] if failed or skipped else []
    lines += [f"failed: {row['workload']} {row['method']}: {row['reason']}" for row in failed]
    lines += [f"skipped: {skipped} points (time limit)"] if skipped else []
    return "\n".join(lines)
