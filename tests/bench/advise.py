"""What `gpufleet advise` predicts, against what was measured: each inner point left out and predicted from the
others of its series, and each point predicted from what one process of its run did alone."""

from __future__ import annotations

from gpufleet.measure.interpolate import leave_one_out
from gpufleet.measure.measurements import measurements
from gpufleet.measure.predict import laws, predict, profiled

from tests.bench.measure import Row


def run() -> list[Row]:
    """One row per measured series and way of prediction."""
    return [*_left_out(), *_from_alone()]


def _from_alone() -> list[Row]:
    rows = []
    for one, alone in profiled():
        points = [(predict(alone, laws()[one.gpu], one.series.method, p.n), p) for p in one.series.points if p.n > 1]
        found, point = max(points, key=lambda pair: abs(pair[0].total / pair[1].total - 1))
        text = f"{found.total:.4g} ({found.low:.4g} to {found.high:.4g}) at n = {point.n} ({len(points)} points)"
        error = abs(found.total / point.total - 1)
        rows.append(
            Row(f"from one alone: {one.id}", text, f"{point.total:.4g} measured", f"{error:.1%}", "10 % or range")
        )
    return rows


def _left_out() -> list[Row]:
    rows = []
    for one in measurements():
        held = leave_one_out(one.series)
        errors = [(abs(h.error), h) for h in held if h.error is not None]
        skipped = sum(1 for h in held if h.error is None)
        if not held:
            continue
        note = f", {skipped} too unsteady" if skipped else ""
        if not errors:
            rows.append(Row(f"left out: {one.id}", f"0 points{note}", "-", "-", "-"))
            continue
        worst, point = max(errors, key=lambda pair: pair[0])
        predicted = f"{point.predicted:.4g} at n = {point.n} ({len(errors)} points{note})"
        rows.append(Row(f"left out: {one.id}", predicted, f"{point.measured:.4g} measured", f"{worst:.1%}", "10 %"))
    return rows
