"""What pods of another class on the same GPU were measured to leave of a request's pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufleet.advise.request import Request
from gpufleet.measure.beside import Beside
from gpufleet.measure.isolation import Company
from gpufleet.measure.measurements import RANK


@dataclass(frozen=True)
class Neighbour:
    """What ``others`` pods of class ``workload`` on the same GPU leave of one pod. Times in ms, medians over the
    repetitions, and the worst of them; ``share`` of the rate without them; ``spread`` of the rates over the
    repetitions. ``keeps``: whether the request's bound still holds."""

    workload: str
    others: int
    share: float
    p99_alone_ms: float | None
    p99_ms: float | None
    p99_worst_ms: float | None
    spread: float
    keeps: bool


def neighbours(request: Request, found: Sequence[Company], method: str) -> tuple[list[Neighbour], str]:
    """What was measured beside the request's class under ``method`` on its GPU, and under which conditions."""
    fitting = [
        one
        for one in found
        if (one.gpu, one.series.workload, one.series.method) == (request.gpu.id, request.workload, method)
        and one.series.setting in ("", "default")
    ]
    chosen: dict[str, Company] = {}
    for one in sorted(fitting, key=lambda one: RANK.get(one.series.backend, 9)):
        chosen.setdefault(one.series.neighbour, one)
    result = [_neighbour(request, one.series.neighbour, p) for one in chosen.values() for p in one.series.points]
    return result, "; ".join(dict.fromkeys(one.conditions for one in chosen.values()))


def _neighbour(request: Request, workload: str, point: Beside) -> Neighbour:
    late = request.latency_ms is not None and (point.p99_ms is None or point.p99_ms > request.latency_ms)
    slow = request.slowdown is not None and point.share * request.slowdown < 1
    worst = max(point.p99s_ms, default=None)
    p99 = (point.p99_alone_ms, point.p99_ms, worst)
    return Neighbour(workload, point.n - 1, point.share, *p99, point.spread, not (late or slow))
