"""Counting steps, percentiles and spread. Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

Cycle = tuple[float, float, float]  # end of the step before, begin of the step, end of the step; seconds


def steps_in(cycles: Sequence[Cycle], start: float, end: float) -> float:
    """Steps in the window. One that reaches over an edge counts by its part inside, so that long steps do not
    make the count jump by whole numbers."""
    total = 0.0
    for before, _, done in cycles:
        if done > before:
            total += max(0.0, min(done, end) - max(before, start)) / (done - before)
    return total


def latencies_ms(cycles: Sequence[Cycle], start: float, end: float) -> list[float]:
    """Latency of each step that ended in the window, in milliseconds, without the rest before it."""
    return [round((done - begin) * 1e3, 4) for _, begin, done in cycles if start <= done <= end]


def percentile(values: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile (``share`` from 0 to 1); None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered), max(1, math.ceil(share * len(ordered)))) - 1]


def middle_spread(values: Sequence[float]) -> float:
    """Interquartile range / median: what repetitions differ by when single disturbed ones are left out.

    Fewer than four values have no inner half: then the same as ``spread``.
    """
    if len(values) < 4:
        return spread(values)
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / middle if middle else 0.0


def spread(values: Sequence[float]) -> float:
    """(largest - smallest) / median: 0.02 means that repetitions differ by 2 %."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def short(value: float | None) -> float | None:
    """Four significant digits: finer than any spread."""
    return None if value is None else float(f"{value:.4g}")
