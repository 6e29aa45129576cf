"""The picture of a bench against the number of processes: total throughput, slowest process, p99 latency."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpufleet.measure.series import Series
from gpufleet.measure.workloads import WORKLOADS


class PlotError(RuntimeError):
    """The picture cannot be drawn; the text says what is missing."""


_STYLE = {"timeSlicing": ("o", "-"), "mps": ("s", "--"), "mpsUnlimited": ("^", ":"), "mig": ("D", "-.")}
_COLORS = {"torch": "C0", "driver": "C1", "command": "C2"}


def draw(series: Sequence[Series], path: Path, title: str) -> None:
    """Write a PNG, one column per workload. Raises PlotError without matplotlib, without points, or on a bad path."""
    shown = [one for one in series if one.alone]
    if not shown:
        raise PlotError("no series has the point of one process, which all shares refer to")
    try:
        matplotlib: Any = importlib.import_module("matplotlib")
    except ImportError:
        raise PlotError("matplotlib is not installed: pip install 'gpufleet[bench]'") from None
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    workloads = [name for name in WORKLOADS if any(one.workload == name for one in shown)]
    size = (max(7.0, 3.6 * len(workloads)), 9.6)
    figure, axes = pyplot.subplots(3, len(workloads), figsize=size, squeeze=False, layout="constrained")
    labels: dict[str, Any] = {}
    for column, workload in enumerate(workloads):
        _column(axes[:, column], [one for one in shown if one.workload == workload], workload, labels)
    for axis, text in zip(
        axes[:, 0], ("all together, one alone = 1", "slowest process, alone = 1", "p99 latency, ms"), strict=True
    ):
        axis.set_ylabel(text)
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(title)
    try:
        figure.savefig(path, dpi=90)
    except (OSError, ValueError) as error:
        raise PlotError(f"{path}: {error}") from None
    finally:
        pyplot.close(figure)


def _column(axes: Any, series: Sequence[Series], workload: str, labels: dict[str, Any]) -> None:
    gain, share, latency = axes
    grid = range(1, max(point.n for one in series for point in one.points) + 1)
    for one in series:
        alone = one.alone or 1.0
        marker, line = _STYLE.get(one.method, ("x", "-"))
        color = _COLORS.get(one.backend, "C3")
        style = {"marker": marker, "linestyle": line, "color": color, "markersize": 4}
        label = " ".join(part for part in (one.backend, one.method, one.setting) if part)
        ns = [point.n for point in one.points]
        errors = [point.total / alone * point.middle_spread / 2 for point in one.points]
        drawn = gain.errorbar(ns, [p.total / alone for p in one.points], yerr=errors, capsize=2, **style)
        labels.setdefault(label, drawn)
        share.plot(ns, [p.least / alone for p in one.points], **style)
        known = [(p.n, p.p99_ms) for p in one.points if p.p99_ms]
        if known:
            latency.plot(*zip(*known, strict=True), **style)
    equal = share.plot(grid, [1 / n for n in grid], color="0.5", linewidth=1)[0]
    labels.setdefault("1/n", equal)
    gain.axhline(1, color="0.5", linewidth=1)
    gain.set(title=workload, ylim=(0, None))
    share.set(ylim=(0, 1.1))
    latency.set(xlabel="processes", ylim=(0, None))
    for axis in axes:
        axis.set_xticks(list(grid))
        axis.grid(alpha=0.3)
