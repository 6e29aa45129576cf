"""The model fitted to a measured series: n processes that share one server (the GPU).

Each process works alone on the host for ``host`` seconds and then needs the GPU for ``service`` seconds. With more
than one process the GPU works at ``efficiency`` times its speed for one: below 1 switching costs, above 1
kernels of several processes run side by side. The throughput of such a closed queue follows from exact mean value
analysis (Reiser and Lavenberg, 1980). A saturating job is the case ``host = 0``: throughput is then
``efficiency / service`` for every n above 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

_PLAIN = 1e-2  # weight of "efficiency near 1" beside the misfit


@dataclass(frozen=True)
class QueueModel:
    """Times in seconds per step."""

    service: float
    host: float
    efficiency: float

    def throughput(self, processes: int) -> float:
        """Steps per second of all processes together."""
        service = self.service if processes == 1 else self.service / self.efficiency
        queue = 0.0
        rate = 0.0
        for n in range(1, processes + 1):
            response = service * (1 + queue)
            rate = n / (self.host + response)
            queue = rate * response
        return rate

    def largest_error(self, points: Mapping[int, float]) -> float:
        """Largest |model - measured| / measured over the points."""
        return max(abs(self.throughput(n) - rate) / rate for n, rate in points.items())


def fit(points: Mapping[int, float]) -> QueueModel | None:
    """Least squares of the relative error. ``points``: processes -> steps per second in total.

    Where the points leave open how a step divides into host and GPU time (a saturating job's do), the division with
    the efficiency nearest to 1 is taken.
    None without the point n = 1 (it fixes service + host) or with fewer than three points.
    """
    if len(points) < 3 or points.get(1, 0) <= 0 or min(points.values()) <= 0:
        return None
    cycle = 1 / points[1]

    def error(busy: float, log_efficiency: float) -> float:
        model = QueueModel(busy * cycle, (1 - busy) * cycle, math.exp(log_efficiency))
        misfit = sum((model.throughput(n) / rate - 1) ** 2 for n, rate in points.items())
        return misfit + _PLAIN * log_efficiency**2

    busy, log_efficiency, busy_step, log_step = 0.5, 0.5, 0.05, 0.15
    for _ in range(7):  # a grid around the best point, three times finer each round
        candidates = [
            (min(1.0, max(0.005, busy + i * busy_step)), log_efficiency + j * log_step)
            for i in range(-10, 11)
            for j in range(-10, 11)
        ]
        busy, log_efficiency = min(candidates, key=lambda c: error(*c))
        busy_step, log_step = busy_step / 3, log_step / 3
    return QueueModel(busy * cycle, (1 - busy) * cycle, math.exp(log_efficiency))
