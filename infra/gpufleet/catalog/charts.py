"""What the values of a Helm chart may be, by chart and release.

A part is a `ChartValue`, or a map of parts by key. Releases that no table holds are unknown: None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from gpufleet.catalog.reading import Row, Tables, kept, table

GPU_OPERATOR = "gpu-operator"
DEVICE_PLUGIN = "nvidia-device-plugin"
FEATURE_DISCOVERY = "node-feature-discovery"
HAMI = "hami"
DRA_DRIVER = "dra-driver-nvidia-gpu"
#: Table files, the charts' own names, and names that they had before.
_FILES = {
    "chart_gpu_operator": GPU_OPERATOR,
    "chart_device_plugin": DEVICE_PLUGIN,
    "chart_node_feature_discovery": FEATURE_DISCOVERY,
    "chart_hami": HAMI,
    "chart_dra_driver": DRA_DRIVER,
}


class ChartValue(NamedTuple):
    """One value: its type (the words stand at the head of the tables), its default, and the only texts it may be."""

    type: str
    default: Any = None
    allowed: tuple[str, ...] = ()


class Refusal(NamedTuple):
    """Values with which a chart refuses to render, or its program to work: `when` all of them are as stated."""

    at: str
    chart: str
    when: Mapping[str, bool | str]
    because: str


#: Every refusal of every chart.
refusals = table("chart_refusals", "chart_refusals", Refusal)


Parts: TypeAlias = Mapping[str, "ChartValue | Parts"]


@dataclass(frozen=True)
class ChartTable:
    """The values of one release of a chart. `subcharts` are the tables of what stands below a key; None: unknown.

    `gone` are values of older releases, with the last one that is known to have had each.
    """

    chart: str
    release: str
    parts: Parts
    subcharts: Mapping[str, ChartTable | None] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)

    def part(self, path: str) -> ChartValue | Parts | None:
        """What stands at a dotted path; None where the chart has nothing there."""
        found: ChartValue | Parts | None = self.parts
        for key in path.split("."):
            if found is None or isinstance(found, ChartValue):
                return None
            found = found.get(key)
        return found

    def has(self, path: str) -> bool:
        """Whether the release takes a value at a dotted path; it may stand below a map that takes any key."""
        head, _, rest = path.partition(".")
        if rest and head in self.subcharts:
            below = self.subcharts[head]
            return below is None or below.has(rest)
        parts: ChartValue | Parts | None = self.parts
        for key in path.split("."):
            if parts is None or isinstance(parts, ChartValue):
                return isinstance(parts, ChartValue) and parts.type in ("map", "any")
            parts = parts.get(key)
        return parts is not None

    def default(self, path: str) -> Any:
        """The chart's default at a dotted path; None where it has none."""
        found = self.part(path)
        return found.default if isinstance(found, ChartValue) else None

    @cached_property
    def paths(self) -> Mapping[str, ChartValue]:
        """Every value by its dotted path."""
        return MappingProxyType(dict(_leaves(self.parts)))


def _leaves(parts: Parts, at: str = "") -> Iterator[tuple[str, ChartValue]]:
    for key, part in parts.items():
        if isinstance(part, ChartValue):
            yield f"{at}{key}", part
        else:
            yield from _leaves(part, f"{at}{key}.")


def chart_table(chart: str, release: str) -> ChartTable | None:
    """The table of one release; a `v` before the number means nothing."""
    return next((t for t in chart_tables(chart) if t.release.lstrip("v") == release.lstrip("v")), None)


def chart_tables(chart: str) -> tuple[ChartTable, ...]:
    """Every table of a chart, the newest release first; by any name that the chart has or had."""
    return _tables().get(chart, ())


def charts() -> tuple[str, ...]:
    """The names of the charts that have tables."""
    return tuple(_FILES.values())


@kept
def _tables(tables: Tables) -> Mapping[str, tuple[ChartTable, ...]]:
    found: dict[str, tuple[ChartTable, ...]] = {}
    rows = {chart: tables.rows(file, file) for file, chart in _FILES.items()}
    for chart, releases in rows.items():
        made = tuple(_table(rows, row) for row in releases)
        found |= dict.fromkeys((chart, *(row["alias"] for row in releases if "alias" in row)), made)
    return MappingProxyType(found)


def _table(rows: Mapping[str, list[Row]], row: Row) -> ChartTable:
    below: dict[str, ChartTable | None] = {}
    for key, other in row.get("subcharts", {}).items():
        known = next((r for r in rows[other["chart"]] if r["release"] == other["release"]), None)
        below[key] = _table(rows, known) if known else None
    parts, gone = _frozen(_parts(rows[row["chart"]], row)), MappingProxyType(row.get("gone", {}))
    return ChartTable(row["chart"], row["release"], parts, MappingProxyType(below), gone)


def _parts(rows: list[Row], row: Row) -> dict[str, Any]:
    """The parts of a row that may be like another one."""
    if "like" not in row:
        return _read(row["values"])
    parts = _parts(rows, next(r for r in rows if r["release"] == row["like"]))
    for path in row.get("without", ()):
        *above, last = path.split(".")
        holder = parts
        for key in above:
            holder = holder[key]
        del holder[last]
    return _joined(parts, _read(row["values"]))


def _read(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _read(v) if isinstance(v, dict) else _value(v) for key, v in values.items()}


def _value(text: str | list[Any]) -> ChartValue:
    if isinstance(text, str):
        return ChartValue(text)
    kind, default, allowed = (*text, ())[:3] if len(text) < 3 else text
    return ChartValue(kind, default, tuple(allowed))


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = {k: _joined(one[k], v) if isinstance(v, dict) and isinstance(one.get(k), dict) else v
            for k, v in other.items()}  # fmt: skip
    return {**one, **both}


def _frozen(parts: dict[str, Any]) -> Parts:
    return MappingProxyType({k: _frozen(v) if isinstance(v, dict) else v for k, v in parts.items()})
