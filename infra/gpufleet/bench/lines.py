"""Whether a line has what the readers of a bench's lines need: lines come from files that people cut and merge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gpufleet.bench.plan import OTHER_WORKLOADS
from gpufleet.measure.workloads import WORKLOADS


def is_line(row: Any) -> bool:
    """A line of a bench. Kinds that no reader takes numbers from are accepted as they are."""
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
        return False
    if row["kind"] == "conditions":
        return isinstance(row.get("gpu_state", {}), dict)
    if row["kind"] == "point":
        return _is_known(row.get("workload")) and _is_point(row)
    if row["kind"] == "group":
        return (_is_known(row.get("workload")) or row.get("workload") in OTHER_WORKLOADS) and _is_group(row)
    if row["kind"] == "beside":
        return _is_known(row.get("workload")) and _is_known(row.get("neighbour")) and _is_beside(row)
    if row["kind"] == "memory":
        return _is_memory(row)
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
        and isinstance(row.get("activity", {}), dict)
        and all(_is_number(value) and value <= 1 for value in row.get("activity", {}).values())
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


def _is_beside(row: Mapping[str, Any]) -> bool:
    each, without = row.get("neighbours_beside"), row.get("neighbours_without")
    return (
        isinstance(each, list)
        and isinstance(without, list)
        and row.get("n") == len(each) + 1 == len(without) + 1
        and all(_is_process(one) for one in (row.get("alone"), row.get("beside"), *each, *without))
        and isinstance(row.get("unit"), str)
        and all(isinstance(row.get(name), str) for name in ("backend", "method"))
    )


def _is_process(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and _is_number(one.get("rate"))
        and all(name in one and (one[name] is None or _is_number(one[name])) for name in ("p50_ms", "p99_ms"))
        and isinstance(one.get("samples"), int)
    )


def _is_memory(row: Mapping[str, Any]) -> bool:
    lists = [row.get(name) for name in ("total_mib", "free_mib", "taken_mib", "steps", "refused")]
    extra = [row["asking_more"]] if "asking_more" in row else []
    return (
        all(isinstance(values, list) and len(values) == row.get("n") for values in lists)
        and all(_is_number(value) for values in lists[:4] for value in values or ())
        and all(isinstance(row.get(name), what) for name, what in (("method", str), ("multiprocessors", int)))
        and all(isinstance(one, dict) and isinstance(one.get("started"), bool) for one in (row.get("one_more"), *extra))
        and all(("taken_mib" if one["started"] else "reason") in one for one in (row["one_more"], *extra))
        and all("asked_mib" in one for one in extra)
        and bool(lists[0])
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
