"""The printed table of a bench. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpufleet.measure.series import Series

_HEAD = "  n      total   gain  least   most    p50 ms    p99 ms  spread reps"


def title(rows: Iterable[Mapping[str, Any]]) -> str:
    """GPU, driver and date of the first conditions line."""
    for row in rows:
        if row["kind"] == "conditions":
            state = row.get("gpu_state", {})
            date = row.get("date", "no date")
            return f"{state.get('name', 'GPU')}, driver {state.get('driver_version', 'unknown')}, {date}"
    return "GPU sharing"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def table(series: Sequence[Series], rows: Iterable[Mapping[str, Any]], heading: str | None = None) -> str:
    """Readable text: one block per series, then what failed or was skipped among the bench's lines ``rows``.

    ``gain`` is the total, ``least`` and ``most`` are the slowest and fastest process, all as parts of one process
    alone; ``spread`` is (largest - smallest) / median of the total over the repetitions.
    """
    rows = list(rows)
    lines = [heading or title(rows)]
    for one in series:
        memory = "" if one.memory_mib is None else f", {one.memory_mib:.0f} MiB per process"
        lines += ["", f"{one.name} ({one.unit}{memory})", f"    {one.conditions}", _HEAD]
        for p in one.points:
            gain, least, most = (value / one.alone if one.alone else None for value in (p.total, p.least, p.most))
            lines.append(
                f"{p.n:>3} {p.total:>10.2f} {_number(gain):>6} {_number(least):>6} {_number(most):>6} "
                f"{_number(p.p50_ms):>9} {_number(p.p99_ms):>9} {p.spread:>6.1%} {len(p.totals):>4}"
            )
        if one.activity:
            a = one.activity
            more = "".join(
                f", {what} {part:.0%}" for what, part in (("SMs", a.sm), ("memory", a.dram)) if part is not None
            )
            lines.append(f"    alone: the GPU works {a.gpu:.0%} of the time{more}")
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
