"""What n processes do together, from what one does alone: the queue, with the costs of sharing as they were measured.

One step needs the host for ``host`` ms and the GPU for ``gpu`` ms.

Time-slicing: the GPU serves one process at a time, in turns. A turn lasts at most ``turn_ms`` and costs ``switch_ms``
more. Work that the host hands over bit by bit needs further turns: up to ``extra_turns``, as far as the host works
during the step. The queue then gives the total. Its range: at best the steps of all fit between each other, at worst
steps longer than a turn end together and wait for the host together, and short ones need still more turns.

MPS with 1/n of the GPU for each: a step takes n to the power of w as long on the GPU, where w is the part of the GPU
that the work fills: 0 for kernels that need few multiprocessors, 1 for those that need all, or all the bandwidth. Small
kernels of a process that waits for its host hide in that wait.

Pure functions; the figures are a row of the catalogue's table ``queue``.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from gpufleet.catalog import reading
from gpufleet.measure.measurements import Measurement, measurements
from gpufleet.measure.queue_model import QueueModel
from gpufleet.measure.series import Series
from gpufleet.measure.workloads import MPS, TIME_SLICING

_ROUNDS = 30  # turns and waiting depend on each other: found by going round


@dataclass(frozen=True)
class Alone:
    """What one process does with a GPU of its own. ``steps_ms``: time of one step, begin to begin, of each repetition.
    ``gpu``: part of the time that the GPU works; ``fills``: part of the GPU that it fills then, None if not known."""

    steps_ms: tuple[float, ...]
    gpu: float
    fills: float | None = None

    @property
    def step_ms(self) -> float:
        return statistics.median(self.steps_ms)

    @property
    def gpu_ms(self) -> float:
        """GPU time of one step."""
        return self.step_ms * self.gpu

    @property
    def host_ms(self) -> float:
        """The rest of one step."""
        return self.step_ms - self.gpu_ms


@dataclass(frozen=True)
class Law:
    """A row of the table ``queue``: what sharing costs on one GPU model, and how far that was checked."""

    gpu: str
    turn_ms: float
    switch_ms: float
    switch_spread_ms: float
    extra_turns: float
    extra_turns_spread: float
    fills_spread: float
    host_spread: float
    processes: int  # the most that it was checked with
    checked: str
    as_of: str


@dataclass(frozen=True)
class Predicted:
    """Steps per second of all processes together."""

    total: float
    low: float
    high: float


def alone_of(series: Series) -> Alone | None:
    """What the point of one process says; None without it, or without how busy the GPU was."""
    point = next((p for p in series.points if p.n == 1), None)
    if point is None or series.activity is None or min(point.totals) <= 0 or not 0 < series.activity.gpu <= 1:
        return None
    a = series.activity
    return Alone(tuple(1e3 / total for total in point.totals), a.gpu, fills(a.gpu, a.sm, a.dram))


def profiled() -> list[tuple[Measurement, Alone]]:
    """The measured series of several processes, each with what one process of the same run did alone."""
    alone = {
        (one.run, one.series.workload, one.series.backend): found
        for one in measurements()
        if (found := alone_of(one.series))
    }
    return [
        (one, alone[key])
        for one in measurements()
        if (key := (one.run, one.series.workload, one.series.backend)) in alone and len(one.series.points) > 1
    ]


def fills(gpu: float, *parts: float | None) -> float | None:
    """The part of the GPU that work fills while it runs, from the parts of the whole time."""
    known = [part for part in parts if part is not None]
    return min(1.0, max(known) / gpu) if known else None


@cache
def laws() -> dict[str, Law]:
    """GPU model -> its law."""
    known = ("gpu", "processes", "checked", "as_of")
    rows = reading.rows("queue", "queue")
    return {row["gpu"]: Law(**{name: row[name] for name in known}, **row["law"]) for row in rows}


def predict(alone: Alone, law: Law, method: str, n: int) -> Predicted:
    """What ``n`` processes do together. ``method``: timeSlicing or mps."""
    if n == 1:
        fast, slow = _ends(alone, law)
        return Predicted(1e3 / alone.step_ms, 1e3 / slow, 1e3 / fast)
    total, low, high = {TIME_SLICING: _time_slicing, MPS: _mps}[method](alone, law, n)
    return Predicted(total, min(low, total), max(high, total))


def _ends(alone: Alone, law: Law) -> tuple[float, float]:
    """A fast and a slow step in ms: the ends of three repetitions or more, else as far as hosts were seen to go."""
    unseen = 0.0 if len(alone.steps_ms) > 2 else law.host_spread * alone.host_ms * (1 - alone.gpu)
    return min(*alone.steps_ms, alone.step_ms - unseen), max(*alone.steps_ms, alone.step_ms + unseen)


def _time_slicing(alone: Alone, law: Law, n: int) -> Sequence[float]:
    gpu, host = alone.gpu_ms, alone.host_ms
    fast, slow = _ends(alone, law)
    slow_host = max(0.0, slow - gpu)
    fewest = gpu + law.switch_ms * max(1.0, gpu / law.turn_ms)  # GPU time of a step with its turns
    total = _queue(fewest, host, _with_turns(fewest, host, law.extra_turns * law.switch_ms, n), n)
    spread = law.switch_spread_ms * max(1.0, gpu / law.turn_ms)
    most = spread + _with_turns(fewest, slow_host, (law.extra_turns + law.extra_turns_spread) * law.switch_ms, n)
    together = 1e3 * n / (slow_host + n * most)
    low = together if gpu >= law.turn_ms else _queue(fewest, slow_host, most, n)
    return total, low, 1e3 * min(n / fast, 1 / (fewest - spread))


def _with_turns(fewest: float, host: float, extra: float, n: int) -> float:
    """GPU time of a step with the turns that the host's work adds, as far as the host works at n processes."""
    service = fewest
    for _ in range(_ROUNDS):
        service = fewest + extra * min(1.0, host * _queue(fewest, host, service, n) / n / 1e3)
    return service


def _queue(fewest: float, host: float, service: float, n: int) -> float:
    return QueueModel(fewest / 1e3, host / 1e3, fewest / service).throughput(n)


def _mps(alone: Alone, law: Law, n: int) -> Sequence[float]:
    gpu, host = alone.gpu_ms, alone.host_ms
    fast, slow = _ends(alone, law)
    w = 0.5 if alone.fills is None else alone.fills
    spread = 0.5 if alone.fills is None else law.fills_spread
    narrow, wide = n ** max(0.0, w - spread), n ** min(1.0, w + spread)
    # Kernels that are handed over bit by bit run while the host prepares the next: more GPU time shows only when it
    # is longer than the whole step. Half of the time or more must be the host's for that.
    hidden = min(1.0, max(0.0, (1 - alone.gpu - 0.5) / 0.2)) * (1 - w)
    cycle = hidden * max(alone.step_ms, gpu * narrow) + (1 - hidden) * (host + gpu * n**w)
    shortest = max(fast, gpu * narrow) if hidden else max(0.0, fast - gpu) + gpu * narrow
    return 1e3 * n / cycle, 1e3 * n / (max(0.0, slow - gpu) + gpu * wide), 1e3 * n / shortest
