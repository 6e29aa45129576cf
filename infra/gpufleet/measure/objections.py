"""What speaks against a sharing that somebody chose: for the plan's warnings. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpufleet.catalog import GpuModel
from gpufleet.measure.interpolate import expected
from gpufleet.measure.measurements import Measurement, select
from gpufleet.measure.workloads import TRAINING

#: Two training pods may share where nobody waits; more never pays.
MOST_TRAINING_PODS = 2


@dataclass(frozen=True)
class Objection:
    """The code of a rule (rules/advice.py) and what fills its texts."""

    code: str
    details: dict[str, str] = field(default_factory=dict)


def objections(
    strategy: str,
    pods: int,
    gpu: GpuModel | None,
    found: Sequence[Measurement],
    *,
    workload: str | None = None,
    environment: str | None = None,
) -> list[Objection]:
    """All objections to ``pods`` sharing one GPU. What is not known (None) is not objected to.

    Memory promised twice is the plan's own rule (GF302).
    """
    result = []
    if workload == TRAINING and strategy in ("timeSlicing", "mps", "hami") and pods > MOST_TRAINING_PODS:
        measured = _training_share(strategy, pods, gpu, found)
        result.append(Objection("GF900", {"replicas": str(pods), "strategy": strategy, "measured": measured}))
    if environment == "production" and strategy == "timeSlicing":
        result.append(Objection("GF901"))
    return result


def _training_share(strategy: str, pods: int, gpu: GpuModel | None, found: Sequence[Measurement]) -> str:
    measured = select(found, gpu.id if gpu else None, TRAINING, strategy) or select(found, None, TRAINING, strategy)
    e = expected(measured.series, pods) if measured else None
    if measured is None or e is None:
        return f"Nothing was measured of {pods} training pods under {strategy} here"
    return f"Measured: {e.least:.0%} of a GPU of its own for each of {pods} such pods ({measured.conditions})"
