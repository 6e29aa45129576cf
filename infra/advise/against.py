"""What speaks against a sharing that somebody chose: for the plan's warnings. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from infra.advise.interpolate import expected
from infra.advise.measurements import Measurement, select
from infra.advise.request import VISIBLE
from infra.bench.plan import TRAINING
from infra.catalog import GpuModel

#: Two training pods may share where nobody waits; more never pays.
MOST_TRAINING_PODS = 2


@dataclass(frozen=True)
class Objection:
    """A code of ``codes.yaml`` and what fills its texts."""

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
    memory_per_pod_gib: float | None = None,
) -> list[Objection]:
    """All objections to ``pods`` sharing one GPU. What is not known (None) is not objected to."""
    result = []
    if workload == TRAINING and strategy in ("timeSlicing", "mps", "hami") and pods > MOST_TRAINING_PODS:
        share, conditions = _training_share(strategy, pods, gpu, found)
        result.append(
            Objection("GF900", {"replicas": str(pods), "strategy": strategy, "share": share, "conditions": conditions})
        )
    if environment == "production" and strategy == "timeSlicing":
        result.append(Objection("GF901"))
    if memory_per_pod_gib and gpu and gpu.memory_mib and strategy in ("timeSlicing", "mps", "hami"):
        usable = gpu.memory_mib * VISIBLE / 1024
        fit = int(usable / memory_per_pod_gib)
        if pods > fit:
            details = {"pods": str(pods), "each": f"{memory_per_pod_gib:g}", "memory": f"{usable:.1f}", "fit": str(fit)}
            result.append(Objection("GF902", details))
    return result


def _training_share(strategy: str, pods: int, gpu: GpuModel | None, found: Sequence[Measurement]) -> tuple[str, str]:
    measured = select(found, gpu.id if gpu else None, TRAINING, strategy) or select(found, None, TRAINING, strategy)
    e = expected(measured.series, pods) if measured else None
    if measured is None or e is None:
        return "not measured", f"no measurement of {pods} training pods under {strategy}"
    return f"{e.least:.0%} of a GPU of its own", measured.conditions
