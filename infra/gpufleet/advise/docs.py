"""The measured tables and the decision tree as the docs hold them; ``make docs`` writes them.

A block stands between ``<!-- generated NAME -->`` and ``<!-- end NAME -->``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from gpufleet.advise.tree import drawing
from gpufleet.measure.interpolate import leave_one_out
from gpufleet.measure.isolation import companies, memory_rows
from gpufleet.measure.measurements import Measurement, best, measurements
from gpufleet.measure.predict import laws, predict, profiled
from gpufleet.measure.workloads import (
    COPY,
    DECODER,
    GRAPH,
    INFERENCE,
    MPS,
    MPS_UNLIMITED,
    NOTEBOOK,
    TIME_SLICING,
    TRAINING,
)

_METHODS = {TIME_SLICING: "time-slicing", MPS: "MPS, limits 1/n", MPS_UNLIMITED: "MPS without limits"}
_SATURATING = (TRAINING, COPY)
_HEAD = (
    "| processes | all together, one alone = 1 | slowest process, alone = 1 | times n | p50 ms | p99 ms | spread |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


def _chosen(backend: str | None = None) -> list[Measurement]:
    return [one for one in best(measurements()) if backend in (None, one.series.backend) and one.series.alone]


def _table(one: Measurement) -> Iterator[str]:
    series = one.series
    alone = series.alone or 1.0
    memory = "" if series.memory_mib is None else f", {series.memory_mib:.0f} MiB per process"
    yield f"**{series.method}** ({one.id}; {len(series.points[0].totals)} repetitions{memory})\n"
    yield _HEAD
    for p in series.points:
        share = p.least / alone
        latency = " | ".join("-" if v is None else f"{v:.4g}" for v in (p.p50_ms, p.p99_ms))
        yield f"| {p.n} | {p.total / alone:.2f} | {share:.2f} | {share * p.n:.2f} | {latency} | {p.spread:.1%} |"


def workload_tables(workload: str) -> str:
    """Markdown tables of one class, as measured with PyTorch, one per method."""
    parts = []
    for one in _chosen("torch"):
        if one.series.workload == workload:
            parts.append("\n".join(_table(one)))
    return "\n\n".join(parts)


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def saturating() -> str:
    """n times the slowest process's share, over all shared points of each saturating series."""
    lines = ["| series | method | n x slowest share, n from 2 on | all together |", "| --- | --- | --- | --- |"]
    for one in _chosen():
        series = one.series
        if series.workload in _SATURATING and series.alone:
            shared = [p for p in series.points if p.n > 1]
            worst = _range([p.least * p.n / series.alone for p in shared])
            total = _range([p.total / series.alone for p in shared])
            lines.append(f"| {series.workload}, {series.backend} | {series.method} | {worst} | {total} |")
    return "\n".join(lines)


def small_inference() -> str:
    """Gain of the series that leave the GPU idle for a part of the time, at each measured number of processes."""
    counts = (1, 2, 3, 4, 5, 6, 7, 8)
    lines = [f"| series | method | {' | '.join(map(str, counts))} |", "| --- | --- |" + " --- |" * len(counts)]
    for one in _chosen():
        series = one.series
        if series.workload in (INFERENCE, GRAPH, DECODER) and series.alone:
            gains = {p.n: f"{p.total / series.alone:.2f}" for p in series.points}
            cells = " | ".join(gains.get(n, "") for n in counts)
            lines.append(f"| {series.workload}, {series.backend} | {series.method} | {cells} |")
    return "\n".join(lines)


def common_rule() -> str:
    """Change of the total against one process alone, at the numbers of the common rule."""
    counts = (2, 4, 6, 8)
    lines = ["| class | method | 2 | 4 | 6 | 8 |", "| --- | --- | --- | --- | --- | --- |"]
    lines.append("| the common rule | any | -10 % | -25 % | -40 % | -60 % |")
    for workload in (TRAINING, INFERENCE, GRAPH, DECODER, NOTEBOOK, COPY):
        for one in _chosen("torch"):
            series = one.series
            if series.workload == workload and series.alone and len(series.points) > 2:
                totals = {p.n: f"{p.total / series.alone - 1:+.0%}".replace("%", " %") for p in series.points}
                cells = " | ".join(totals.get(n, "") for n in counts)
                lines.append(f"| {workload} | {_METHODS[series.method]} | {cells} |")
    return "\n".join(lines)


def predicted_table() -> str:
    """What one process alone says of several, beside what several did."""
    counts = (2, 4, 8)
    head = f"| series | GPU works | fills | {' | '.join(f'{n}: measured | predicted' for n in counts)} |"
    lines = [head, "| --- | --- | --- |" + " --- | --- |" * len(counts)]
    for one, profile in profiled():
        law = laws().get(one.gpu)
        if not law or one.series.method not in (TIME_SLICING, MPS):
            continue
        cells = []
        for n in counts:
            total = next((p.total for p in one.series.points if p.n == n), None)
            p = predict(profile, law, one.series.method, n)
            said = f"{p.total:.4g} ({p.low:.4g} to {p.high:.4g})"
            cells.append(f"{'-' if total is None else format(total, '.4g')} | {said}")
        part = "-" if profile.fills is None else f"{profile.fills:.0%}"
        lines.append(f"| {one.id} | {profile.gpu:.0%} | {part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def leave_one_out_table() -> str:
    """Largest error of each series when each inner point is predicted from the others."""
    lines = ["| series | points predicted | largest error | not predicted: unsteady | with unsteady points |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for one in measurements():
        held = leave_one_out(one.series)
        errors = [abs(h.error) for h in held if h.error is not None]
        unsteady = ", ".join(str(h.n) for h in held if h.error is None)
        if held:
            worst = f"{max(errors):.1%}" if errors else "-"
            all_errors = [abs(h.error) for h in leave_one_out(one.series, unsteady=True) if h.error is not None]
            every = f"{max(all_errors):.1%}" if unsteady else ""
            lines.append(f"| {one.id} | {len(errors)} | {worst} | {unsteady} | {every} |")
    return "\n".join(lines)


def beside_table() -> str:
    """One process beside neighbours of another class."""
    lines = ["| neighbours | method | backend | keeps | p99 alone, ms | p99, ms (each repetition) | neighbours keep |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for one in (company.series for company in companies()):
        for p in one.points:
            shares = f"{p.share:.0%} ({min(p.shares):.0%} to {max(p.shares):.0%})"
            p99 = ", ".join(f"{value:.4g}" for value in sorted(p.p99s_ms))
            alone = "-" if p.p99_alone_ms is None else f"{p.p99_alone_ms:.3g}"
            others = f"{p.kept_by_neighbours:.0%} ({min(p.neighbours):.0%} to {max(p.neighbours):.0%})"
            names = (f"{p.n - 1} x {one.neighbour}", _METHODS[one.method], one.backend)
            lines.append(f"| {' | '.join((*names, shares, alone, p99, others))} |")
    return "\n".join(lines)


def memory_table() -> str:
    """What processes are shown and can take, in MiB."""
    head = ("processes", "method", "limit", "contexts together", "shown: total", "shown: free", "SMs", "taken in turn")
    lines = [f"| {' | '.join(head)} | one more process then |", "|" + " --- |" * (len(head) + 1)]
    for row in memory_rows():
        taken = ", ".join(f"{v} x {k}" if v > 1 else str(k) for k, v in Counter(row["taken_mib"]).items())
        more = row["one_more"]
        cells = (
            row["n"], _METHODS[row["method"]], row.get("limit_mib", "-"), row["contexts_mib"], row["total_mib"][0],
            row["free_mib"][0], row["multiprocessors"], taken, "starts" if more["started"] else "cannot start",
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


#: page -> block -> what it holds
BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "decision-tree.md": {"tree": drawing},
    "sharing-methods.md": {"memory": memory_table},
    "replicas.md": {
        "rule": common_rule,
        "saturating": saturating,
        "gains": small_inference,
        TRAINING: partial(workload_tables, TRAINING),
        INFERENCE: partial(workload_tables, INFERENCE),
        GRAPH: partial(workload_tables, GRAPH),
        DECODER: partial(workload_tables, DECODER),
        NOTEBOOK: partial(workload_tables, NOTEBOOK),
        COPY: partial(workload_tables, COPY),
        "neighbours": beside_table,
        "leave-one-out": leave_one_out_table,
        "predicted": predicted_table,
    },
}


def fill(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    """``text`` with every block filled. Raises ValueError when a block has no place."""
    for name, make in blocks.items():
        pattern = re.compile(rf"(<!-- generated {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        parts = pattern.split(text)  # before, start mark, end mark, after
        if len(parts) != 4:
            raise ValueError(f"block {name}: {len(parts) // 3} places")
        before, start, end, after = parts
        text = f"{before}{start}{make()}\n{end}{after}"
    return text
