"""Leave-one-out: each inner measured point predicted from the others of its series, as `gpufleet advise` does it."""

from __future__ import annotations

from gpufleet.measure.interpolate import leave_one_out
from gpufleet.measure.measurements import measurements

from tests.bench.measure import Row


def run() -> list[Row]:
    """One row per measured series."""
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
