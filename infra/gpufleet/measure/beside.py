"""One process beside neighbours of another class: lines as series, printed text, catalogue rows. Pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.measure.stats import short, spread
from gpufleet.measure.workloads import Sizes, describe

_KEY = ("workload", "neighbour", "backend", "method", "time_slice", "profile")


@dataclass(frozen=True)
class Beside:
    """One number of processes: one of the workload, n - 1 neighbours. Each tuple holds a value per repetition."""

    n: int
    alone: tuple[float, ...]  # its rate without the neighbours, in the same processes and under the same limits
    beside: tuple[float, ...]  # its rate with them
    neighbours: tuple[float, ...]  # all neighbours together, as part of what they do without it
    p50_ms: float | None  # median over the repetitions
    p99s_ms: tuple[float, ...]
    p99_alone_ms: float | None
    samples: int  # latencies with neighbours, over all repetitions

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple(b / a if a else 0.0 for a, b in zip(self.alone, self.beside, strict=True))

    @property
    def share(self) -> float:
        """Median of what it keeps of its rate."""
        return statistics.median(self.shares)

    @property
    def kept_by_neighbours(self) -> float:
        return statistics.median(self.neighbours)

    @property
    def p99_ms(self) -> float | None:
        """Median over the repetitions, as in the other tables."""
        return statistics.median(self.p99s_ms) if self.p99s_ms else None

    @property
    def spread(self) -> float:
        """(largest - smallest) / median of the rates beside neighbours."""
        return spread(self.beside)


@dataclass(frozen=True)
class BesideSeries:
    workload: str
    neighbour: str
    backend: str
    method: str
    setting: str
    unit: str
    conditions: str
    neighbour_conditions: str
    points: tuple[Beside, ...]


def collect(rows: Iterable[Mapping[str, Any]]) -> list[BesideSeries]:
    """The series of a bench's lines, in their order."""
    found: dict[tuple[str, ...], dict[int, list[Mapping[str, Any]]]] = {}
    sizes: dict[tuple[str, ...], Sizes] = {}
    for row in rows:
        key = tuple(str(row.get(name, "")) for name in _KEY)
        if row["kind"] == "beside":
            found.setdefault(key, {}).setdefault(int(row["n"]), []).append(row)
        elif row["kind"] == "group":
            known = Sizes.__dataclass_fields__
            sizes[key] = Sizes(**{name: value for name, value in row.get("sizes", {}).items() if name in known})
    return [_series(key, by_n, sizes.get(key, Sizes())) for key, by_n in found.items()]


def _series(key: tuple[str, ...], by_n: Mapping[int, list[Mapping[str, Any]]], sizes: Sizes) -> BesideSeries:
    workload, neighbour, backend, method, time_slice, profile = key
    unit = str(next(iter(by_n.values()))[0]["unit"])
    about, other = describe(workload, backend, sizes), describe(neighbour, backend, sizes)
    points = tuple(_point(n, by_n[n]) for n in sorted(by_n))
    return BesideSeries(workload, neighbour, backend, method, time_slice or profile, unit, about, other, points)


def _point(n: int, rows: Sequence[Mapping[str, Any]]) -> Beside:
    def together(row: Mapping[str, Any], key: str) -> float:
        return sum(float(one["rate"]) for one in row[key])

    def middle(which: str, name: str) -> float | None:
        known = [row[which][name] for row in rows if row[which][name] is not None]
        return statistics.median(known) if known else None

    return Beside(
        n=n,
        alone=tuple(float(row["alone"]["rate"]) for row in rows),
        beside=tuple(float(row["beside"]["rate"]) for row in rows),
        neighbours=tuple(
            together(row, "neighbours_beside") / (together(row, "neighbours_without") or 1.0) for row in rows
        ),
        p50_ms=middle("beside", "p50_ms"),
        p99s_ms=tuple(row["beside"]["p99_ms"] for row in rows if row["beside"]["p99_ms"] is not None),
        p99_alone_ms=middle("alone", "p99_ms"),
        samples=sum(int(row["beside"]["samples"]) for row in rows),
    )


def text(series: Sequence[BesideSeries]) -> str:
    """A block per series for a reader; empty without series."""
    lines = []
    for one in series:
        words = (one.backend, one.method, one.setting)
        lines += ["", f"{one.workload} beside {one.neighbour}: {' '.join(word for word in words if word)} ({one.unit})"]
        lines.append(" others      alone     beside   keeps  p99 alone       p99  others keep  spread")
        for p in one.points:
            alone, beside = statistics.median(p.alone), statistics.median(p.beside)
            p99 = " ".join(f"{'-' if v is None else format(v, '.2f'):>9}" for v in (p.p99_alone_ms, p.p99_ms))
            lines.append(
                f"{p.n - 1:>7} {alone:>10.2f} {beside:>10.2f} {p.share:>7.0%}  {p99} {p.kept_by_neighbours:>12.0%} "
                f"{p.spread:>7.1%}"
            )
    return "\n".join(lines)


def row(run_id: str, one: BesideSeries, date: str, source: str) -> dict[str, Any]:
    """A row of the catalogue."""
    words = (run_id, one.workload, "beside", one.neighbour, one.backend, one.method, one.setting)
    content: dict[str, Any] = {
        "id": " ".join(word for word in words if word), "run": run_id, "workload": one.workload,
        "neighbour": one.neighbour, "backend": one.backend, "method": one.method, "conditions": one.conditions,
        "neighbour_conditions": one.neighbour_conditions, "unit": one.unit,
        "points": [
            {
                "n": p.n, "p50_ms": short(p.p50_ms), "p99_alone_ms": short(p.p99_alone_ms), "samples": p.samples,
                "alone": [short(v) for v in p.alone], "beside": [short(v) for v in p.beside],
                "neighbours": [short(v) for v in p.neighbours], "p99s_ms": [short(v) for v in p.p99s_ms],
            }
            for p in one.points
        ],
    }  # fmt: skip
    if one.setting:
        content["setting"] = one.setting
    return {**content, "source": source, "as_of": date}


def from_row(content: Mapping[str, Any]) -> BesideSeries:
    """A series as the catalogue holds it."""
    points = tuple(
        Beside(
            p["n"], tuple(p["alone"]), tuple(p["beside"]), tuple(p["neighbours"]), p["p50_ms"], tuple(p["p99s_ms"]),
            p["p99_alone_ms"], p["samples"],
        )
        for p in content["points"]
    )  # fmt: skip
    names = ("workload", "neighbour", "backend", "method", "unit", "conditions", "neighbour_conditions")
    return BesideSeries(**{name: content[name] for name in names}, setting=content.get("setting", ""), points=points)
