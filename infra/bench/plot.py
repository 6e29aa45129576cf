"""The picture of a bench: total throughput and per-process share against the number of processes."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infra.bench.report import Series


class PlotError(RuntimeError):
    """The picture cannot be drawn; the text says what is missing."""


_STYLE = {"timeSlicing": ("o", "-"), "mps": ("s", "--"), "mpsUnlimited": ("^", ":"), "mig": ("D", "-.")}


def draw(series: Sequence[Series], path: Path, title: str) -> None:
    """Write a PNG with two rows, one column per workload. Raises PlotError without matplotlib or without points."""
    shown = [one for one in series if one.alone]
    if not shown:
        raise PlotError("no series has the point of one process, which all shares refer to")
    try:
        matplotlib: Any = importlib.import_module("matplotlib")
    except ImportError:
        raise PlotError("matplotlib is not installed: pip install 'gpufleet[bench]'") from None
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")

    workloads = list(dict.fromkeys(one.workload for one in shown))
    figure, axes = pyplot.subplots(
        2, len(workloads), figsize=(4.2 * len(workloads), 7.2), squeeze=False, layout="constrained"
    )
    for column, workload in enumerate(workloads):
        gain, share = axes[0][column], axes[1][column]
        mine = [one for one in shown if one.workload == workload]
        largest = max(point.n for one in mine for point in one.points)
        colors: dict[str, int] = {}
        for one in mine:
            assert one.alone
            marker, line = _STYLE.get(one.method, ("x", "-"))
            color = f"C{colors.setdefault(one.backend, len(colors))}"
            style = {"marker": marker, "linestyle": line, "color": color, "markersize": 4}
            ns = [point.n for point in one.points]
            errors = [point.total / one.alone * point.spread / 2 for point in one.points]
            label = " ".join(part for part in (one.backend, one.method, one.setting) if part)
            gain.errorbar(ns, [p.total / one.alone for p in one.points], yerr=errors, capsize=2, label=label, **style)
            share.plot(ns, [p.share_least for p in one.points], label=label, **style)
        grid = range(1, largest + 1)
        share.plot(grid, [1 / n for n in grid], color="0.5", linewidth=1, label="1/n")
        gain.axhline(1, color="0.5", linewidth=1)
        gain.set(title=workload, ylabel="total, one process alone = 1" if column == 0 else None, ylim=(0, None))
        share.set(xlabel="processes", ylabel="slowest process, alone = 1" if column == 0 else None, ylim=(0, 1.1))
        for axis in (gain, share):
            axis.set_xticks(list(grid))
            axis.grid(alpha=0.3)
        gain.legend(fontsize=7)
        share.legend(fontsize=7)
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
