"""Whether a line has what the readers of a bench's lines need: lines come from files that people cut and merge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from infra.bench.plan import WORKLOADS


def is_line(row: Any) -> bool:
    """A line of a bench. Kinds that no reader takes numbers from are accepted as they are."""
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
        return False
    if row["kind"] == "conditions":
        return isinstance(row.get("gpu_state", {}), dict)
    if row["kind"] == "point":
        return _is_known(row.get("workload")) and _is_point(row)
    if row["kind"] == "group":
        return _is_known(row.get("workload")) and _is_group(row)
    return row["kind"] != "failed" or all(name in row for name in ("workload", "method", "reason"))


def _is_known(workload: Any) -> bool:
    return isinstance(workload, str) and workload in WORKLOADS


def _is_point(row: Mapping[str, Any]) -> bool:
    each = row.get("per_process")
    return (
        isinstance(each, list)
        and bool(each)
        and row.get("n") == len(each)
        and all(_is_number(value) for value in (row.get("total"), *each))
        and isinstance(row.get("unit"), str)
        and all(name in row and (row[name] is None or _is_number(row[name])) for name in ("p50_ms", "p99_ms"))
        and isinstance(row.get("samples"), int)
    )


def _is_group(row: Mapping[str, Any]) -> bool:
    sizes, memory = row.get("sizes", {}), row.get("memory_mib_per_process")
    return (
        isinstance(row.get("processes"), int)
        and isinstance(row.get("device", {}), dict)
        and isinstance(sizes, dict)
        and all(_is_number(value) for value in sizes.values())
        and (memory is None or _is_number(memory))
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
