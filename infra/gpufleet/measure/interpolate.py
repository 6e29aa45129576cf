"""What a pod gets at n processes: the measured point, or between two measured points of the same series.

Outside the measured numbers of processes there is no answer. Points whose repetitions differ much (``UNSTEADY``)
answer for themselves and for nothing beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufleet.measure.series import Measured, Series

#: Interquartile range / median of the repetitions above which a point is no ground to interpolate from: predictions
#: aim at 10 %, so a point should be known better than that (half of this to either side).
UNSTEADY = 0.15


@dataclass(frozen=True)
class Expected:
    """What n processes get. Rates per second, times in ms, shares as parts of one process alone."""

    n: int
    total: float
    share: float  # of one process on average
    least: float  # of the slowest
    gain: float  # total / one process alone
    p50_ms: float | None
    p99_ms: float | None
    spread: float  # of the measured total, or the larger of the two neighbours'
    between: tuple[int, int] | None = None  # interpolated between these; None: measured or predicted
    low: float | None = None  # range of a predicted total; None: not predicted
    high: float | None = None

    @property
    def slowdown(self) -> float:
        """How many times longer the slowest process takes for a step than alone."""
        return 1 / self.least if self.least else float("inf")


def expected(series: Series, n: int) -> Expected | None:
    """The measured point, else between neighbours, else None. Needs the point of one process."""
    alone = series.alone
    if not alone:
        return None
    for point in series.points:
        if point.n == n:
            share, least, gain = point.total / n / alone, point.least / alone, point.total / alone
            return Expected(n, point.total, share, least, gain, point.p50_ms, point.p99_ms, point.spread)
    return _between(_steady(series.points), alone, n)


def _steady(points: Sequence[Measured]) -> list[Measured]:
    return [point for point in points if point.middle_spread <= UNSTEADY]


def _between(points: Sequence[Measured], alone: float, n: int) -> Expected | None:
    below = [p for p in points if p.n < n]
    above = [p for p in points if p.n > n]
    if not below or not above:
        return None
    low, high = below[-1], above[0]
    part = (n - low.n) / (high.n - low.n)

    def straight(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None else a + (b - a) * part

    cycle = _cycle(points, n)
    p50, p99 = straight(low.p50_ms, high.p50_ms), straight(low.p99_ms, high.p99_ms)
    total = n / cycle
    unfair = straight(low.least * low.n / low.total, high.least * high.n / high.total) or 0.0
    share = total / n / alone
    spread = max(low.spread, high.spread)
    return Expected(n, total, share, share * unfair, total / alone, p50, p99, spread, (low.n, high.n))


def _cycle(points: Sequence[Measured], n: int) -> float:
    """Seconds per step and process at n, between the neighbours.

    That time grows ever faster with n (flat while the GPU has room, then a straight line), so the truth lies under
    the chord between the neighbours and above both neighbouring sections made longer. The middle of both is taken.
    """
    times = [(p.n, p.n / p.total) for p in points]
    low = max(i for i, (m, _) in enumerate(times) if m < n)

    def line(i: int, j: int) -> float:
        (a, at_a), (b, at_b) = times[i], times[j]
        return at_a + (at_b - at_a) * (n - a) / (b - a)

    chord = line(low, low + 1)
    floors = [line(low - 1, low)] if low > 0 else []
    floors += [line(low + 1, low + 2)] if low + 2 < len(times) else []
    floor = max([*floors, times[low][1]])
    return (chord + min(floor, chord)) / 2


@dataclass(frozen=True)
class Held:
    """One inner point left out and predicted from the others."""

    n: int
    measured: float
    predicted: float | None  # None: its neighbours or itself are unsteady
    spread: float

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured."""
        return None if self.predicted is None else self.predicted / self.measured - 1


def leave_one_out(series: Series, *, unsteady: bool = False) -> list[Held]:
    """Each inner point predicted without itself. Ends are not: beyond the measured numbers nothing is said.

    ``unsteady`` takes the unsteady points in, which ``expected`` does not: to see what that rule keeps out.
    """
    held = []
    for point in series.points[1:-1]:
        ground = series.points if unsteady else _steady(series.points)
        rest = [p for p in ground if p is not point]
        found = _between(rest, series.alone or 1.0, point.n) if point in ground else None
        held.append(Held(point.n, point.total, found.total if found else None, point.spread))
    return held
