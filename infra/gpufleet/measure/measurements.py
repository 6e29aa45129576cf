"""The measurements that advice is argued from: tables of the catalogue, or a user's own bench."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gpufleet.catalog import reading
from gpufleet.measure.series import Series, collect, from_row
from gpufleet.measure.workloads import MPS, TIME_SLICING

_PREFIX = "measurements_"
#: Models that stand for real use come before the built-in kernels; a user's own measurement before both.
RANK = {"command": 0, "torch": 1, "driver": 2}


@dataclass(frozen=True)
class Measurement:
    """One measured series with what its numbers depend on. ``gpu`` is the catalogue's id of the model."""

    id: str
    gpu: str
    driver: str
    date: str
    machine: str
    series: Series
    own: bool = False

    @property
    def run(self) -> str:
        """The run that it is from."""
        return self.id.split()[0]

    @property
    def conditions(self) -> str:
        """One line for a reader: where and under what the series was measured."""
        least = min(len(point.totals) for point in self.series.points)
        return (
            f"{self.gpu}, driver {self.driver}, {self.date}, {self.machine}, {self.series.backend}: "
            f"{self.series.conditions}; {least} repetitions or more"
        )


@cache
def measurements() -> tuple[Measurement, ...]:
    """Every series of the catalogue's tables ``measurements_*``."""
    found = []
    for file in reading.files():
        if not file.startswith(_PREFIX):
            continue
        name = file.removeprefix(_PREFIX)
        runs = {row["id"]: row for row in reading.rows(file, f"{name}_runs")}
        found += [_measurement(row, runs[row["run"]]) for row in reading.rows(file, f"{name}_series")]
    return tuple(found)


def _measurement(row: Mapping[str, Any], run: Mapping[str, Any]) -> Measurement:
    return Measurement(row["id"], run["gpu"], run["driver"], row["as_of"], run["host"], from_row(row))


def own_measurements(lines: Iterable[Mapping[str, Any]], gpu: str | None) -> tuple[Measurement, ...]:
    """The series of a user's own bench lines. ``gpu``: the catalogue's id, or None for the name that was read."""
    lines = list(lines)
    conditions = next((line for line in lines if line["kind"] == "conditions"), {})
    state = conditions.get("gpu_state", {})
    found = []
    for one in collect(lines):
        name = gpu or state.get("name") or one.device.get("gpu") or "unknown GPU"
        machine = f"{conditions.get('cpus', 'unknown number of')} CPUs"
        driver, date = str(state.get("driver_version", "unknown")), str(conditions.get("date", "no date"))
        found.append(Measurement(f"own {one.name}", str(name), driver, date, machine, one, own=True))
    return tuple(found)


def _order(one: Measurement) -> tuple[bool, int, int, int]:
    points = one.series.points
    repetitions = min(len(p.totals) for p in points)
    return (not one.own, RANK.get(one.series.backend, 9), -len(points), -repetitions)


def best(found: Sequence[Measurement]) -> list[Measurement]:
    """One measurement for each workload, backend, method and setting: most points, then most repetitions."""
    chosen: dict[tuple[str, ...], Measurement] = {}
    for one in sorted(found, key=_order):
        key = (one.gpu, one.series.workload, one.series.backend, one.series.method, one.series.setting)
        chosen.setdefault(key, one)
    return [one for one in found if one in chosen.values()]


def select(found: Sequence[Measurement], gpu: str | None, workload: str, method: str) -> Measurement | None:
    """The measurement to argue from: default time slice, with the point of one process. ``gpu`` None: any model."""
    fitting = [
        one
        for one in found
        if one.series.workload == workload
        and one.series.method == method
        and (gpu is None or one.gpu == gpu)
        and one.series.setting in ("", "default")
        and one.series.alone
    ]
    return min(fitting, key=_order, default=None)


#: Methods that can be measured without changing a setting, and that a stack can deploy.
METHODS = (TIME_SLICING, MPS)
