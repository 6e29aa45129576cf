"""A bench's lines as rows of a catalogue table. Pure functions.

Tables: ``*_runs`` (GPU, driver and machine of one run), ``*_series`` (points of one workload, backend and method),
and where they were measured ``*_neighbours`` and ``*_memory``. A run begins at each ``conditions`` line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from gpufleet.bench import memory
from gpufleet.measure import beside
from gpufleet.measure.series import Measured, Series, collect
from gpufleet.measure.stats import short

Row = dict[str, Any]
_WIDTH = 118


def to_tables(lines: Iterable[Mapping[str, Any]], name: str, gpu: str) -> dict[str, list[Row]]:
    """Tables ``NAME_runs``, ``NAME_series`` and so on, empty ones left out; ``gpu``: the catalogue's id of a model."""
    runs: list[list[Mapping[str, Any]]] = []
    for line in lines:
        if line["kind"] == "conditions":
            runs.append([])
        if runs:
            runs[-1].append(line)
    tables: dict[str, list[Row]] = {f"{name}_{part}": [] for part in ("runs", "series", "neighbours", "memory")}
    for number, run in enumerate(runs, 1):
        run_id = f"{name}-{number}"
        origin = str(run[0].get("date", "unknown")), f"{name}_runs"
        tables[f"{name}_runs"].append(_run_row(run_id, gpu, run))
        tables[f"{name}_series"] += [_series_row(run_id, one, *origin) for one in collect(run)]
        tables[f"{name}_neighbours"] += [beside.row(run_id, one, *origin) for one in beside.collect(run)]
        tables[f"{name}_memory"] += [memory.row(run_id, line, *origin) for line in run if line["kind"] == "memory"]
    return {key: rows for key, rows in tables.items() if rows}


def _run_row(run_id: str, gpu: str, run: list[Mapping[str, Any]]) -> Row:
    conditions = run[0]
    state = conditions.get("gpu_state", {})
    torch = next((line["device"]["torch"] for line in run if "torch" in line.get("device", {})), None)
    kernel = ".".join(str(conditions.get("kernel", "unknown")).split("-")[0].split(".")[:2])
    row = {
        "id": run_id,
        "gpu": gpu,
        "driver": state.get("driver_version"),
        "memory": state.get("memory.total"),
        "compute_mode": state.get("compute_mode"),
        "mig_mode": state.get("mig.mode.current"),
        "time_slice": state.get("time_slice"),
        "persistence_mode": state.get("persistence_mode"),
        "power_limit": state.get("power.limit"),
        "host": f"{conditions.get('cpus', '?')} CPUs ({conditions.get('machine', 'unknown')}), Linux {kernel}",
        "python": conditions.get("python"),
        "torch": torch,
    }
    known = {key: value for key, value in row.items() if value is not None}
    return {**known, "source": "BENCH", "as_of": conditions.get("date", "unknown")}


def _series_row(run_id: str, one: Series, date: str, source: str) -> Row:
    words = [run_id, one.workload, one.backend, one.method, one.setting]
    row: Row = {
        "id": " ".join(word for word in words if word),
        "run": run_id,
        "workload": one.workload,
        "backend": one.backend,
        "method": one.method,
        "conditions": one.conditions,
        "unit": one.unit,
        "points": [_point(p) for p in one.points],
    }
    if one.setting:
        row["setting"] = one.setting
    if one.memory_mib is not None:
        row["memory_mib_per_process"] = round(one.memory_mib)
    if one.activity is not None:
        row["activity"] = {name: value for name, value in asdict(one.activity).items() if value is not None}
    if one.model and one.model_error is not None:
        row["model"] = {
            "service_ms": round(one.model.service * 1e3, 3),
            "host_ms": round(one.model.host * 1e3, 3),
            "efficiency": round(one.model.efficiency, 3),
            "largest_error": round(one.model_error, 3),
        }
    return {**row, "source": source, "as_of": date}


def _point(p: Measured) -> Row:
    return {
        "n": p.n,
        "total": short(p.total),
        "spread": round(p.spread, 3),
        "least": short(p.least),
        "most": short(p.most),
        "p50_ms": short(p.p50_ms),
        "p99_ms": short(p.p99_ms),
        "samples": p.samples,
        "totals": [short(value) for value in p.totals],
    }


def as_yaml(tables: Mapping[str, list[Row]]) -> str:
    """The tables as YAML: one line per field, a point on one or two lines."""
    lines = []
    for name, rows in tables.items():
        lines.append(f"{name}:")
        for row in rows:
            for number, (key, value) in enumerate(row.items()):
                start = "  - " if number == 0 else "    "
                if key == "points":
                    lines.append(f"{start}points:")
                    lines += [line for point in value for line in _wrap(f"      - {_flow(point)}")]
                else:
                    lines += _wrap(f"{start}{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)  # JSON texts, numbers, lists and null are YAML


def _wrap(line: str) -> list[str]:
    """The line of a point is divided before lists of repetitions where it is too long."""
    if len(line) <= _WIDTH or not line.startswith("      - {"):
        return [line]
    lines: list[str] = []
    for part in re.split(r", (?=\w+: \[)", line):
        if lines and len(f"{lines[-1]}, {part}") > _WIDTH:
            lines[-1] += ","
            lines.append(f"         {part}")
        else:
            lines = [*lines[:-1], f"{lines[-1]}, {part}"] if lines else [part]
    return lines
