"""What a user asks for, and what follows from it and from the tables before a method is chosen. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpufleet.catalog import GpuModel
from gpufleet.measure.conditions import fitting, misfit
from gpufleet.measure.interpolate import Expected, expected
from gpufleet.measure.measurements import METHODS, Measurement, select
from gpufleet.measure.predict import Alone, Law, laws, predict
from gpufleet.measure.workloads import COMMAND, WORKLOADS

Isolation = Literal["none", "memory", "fault"]
Environment = Literal["dev", "staging", "production"]
ISOLATIONS: tuple[Isolation, ...] = ("none", "memory", "fault")
ENVIRONMENTS: tuple[Environment, ...] = ("dev", "staging", "production")
CLASSES = tuple(name for name in WORKLOADS if name != COMMAND)

#: Part of the memory that nvidia-smi shows which processes can have: 143155 of 143771 MiB were seen on an H200.
VISIBLE = 0.995
#: Without a bound, the fewest pods that reach this part of the best measured total are taken.
NEAR_BEST = 0.95
#: An unmeasured GPU gets the smallest number that shares at all.
UNMEASURED_PODS = 2


@dataclass(frozen=True)
class Request:
    """``memory_gib``: what all processes of one pod take, CUDA context included. ``latency_ms`` bounds the p99 of
    a step, ``slowdown`` how many times longer the slowest pod may take than alone. ``price``: of one GPU for an hour.
    """

    workload: str
    gpu: GpuModel
    memory_gib: float
    users: int
    latency_ms: float | None = None
    slowdown: float | None = None
    isolation: Isolation = "none"
    environment: Environment = "dev"
    alike: bool = True  # every pod needs about the same memory
    price: float | None = None
    profile: Sequence[Measurement] | None = None  # the user's own measurement replaces the catalogue's
    alone: Alone | None = None  # what one process does alone: where it was not measured with several

    @property
    def bound(self) -> str | None:
        """The bound in words, or None."""
        words = []
        if self.latency_ms is not None:
            words.append(f"p99 of at most {self.latency_ms:g} ms")
        if self.slowdown is not None:
            words.append(f"slowdown of at most {self.slowdown:g}")
        return " and ".join(words) or None


def bad_values(request: Request) -> list[str]:
    """Numbers that mean nothing at their place."""
    found = []
    for name, value in (
        ("memory per pod", request.memory_gib),
        ("number of users", request.users),
        ("latency bound", request.latency_ms),
        ("price", request.price),
    ):
        if value is not None and not 0 < value < float("inf"):
            found.append(f"{name}: {value:g} is not a number above 0")
    if request.slowdown is not None and not 1 <= request.slowdown < float("inf"):
        found.append(f"slowdown bound: {request.slowdown:g} is not a number from 1 on; a pod alone has 1")
    return found


def problems(request: Request) -> list[str]:
    """Everything that makes the request unanswerable, together."""
    found = bad_values(request)
    if request.gpu.memory_mib is None:
        found.append(f"the memory of {request.gpu.id} is not known to the catalogue; name the exact model")
    if (
        request.gpu.memory_mib is not None
        and float("inf") > request.memory_gib * 1024 > request.gpu.memory_mib * VISIBLE
    ):
        usable = usable_gib(request.gpu)
        found.append(f"one pod wants {request.memory_gib:g} GiB, {request.gpu.id} has {usable:.1f} GiB to give")
    return found


def usable_gib(gpu: GpuModel) -> float:
    """What processes can have of a GPU's memory."""
    return (gpu.memory_mib or 0) * VISIBLE / 1024


def pods_by_memory(request: Request) -> int:
    """Pods of this size that fit into one GPU's memory."""
    return int((request.gpu.memory_mib or 0) * VISIBLE / (request.memory_gib * 1024))


@dataclass(frozen=True)
class MigFit:
    """The smallest MIG profile that holds one pod, and how many of it a GPU takes."""

    profile: str
    pods: int
    memory_gib: float


def mig_fit(request: Request) -> MigFit | None:
    """None without MIG or without such a profile. Profiles with media engines (``+me`` and the like) are left out.

    The number in a profile's name is read as 10^9 bytes, which is at most what an instance has.
    """
    fits = []
    for profile, count in request.gpu.mig_profiles.items():
        size = profile.partition(".")[2]
        if not size.endswith("gb"):
            continue
        gib = int(size.removesuffix("gb")) * 1e9 / 2**30
        if gib >= request.memory_gib:
            fits.append((gib, -count, profile))
    if not fits:
        return None
    gib, count, profile = min(fits)
    return MigFit(profile, -count, gib)


@dataclass(frozen=True)
class Option:
    """What a software method (time-slicing or MPS) offers to the request.

    ``pods`` per GPU: 1 means that sharing does not serve the request. ``gpus`` for all users. ``expected`` is None
    where nothing was measured on this GPU; ``why`` says what the number rests on.
    """

    method: str
    pods: int
    gpus: int
    why: str
    expected: Expected | None = None
    measurement: Measurement | None = None


def option(request: Request, found: Sequence[Measurement], method: str) -> Option:
    """Size one method from the measurements of the request's class on its GPU."""
    most = min(pods_by_memory(request), max(request.users, 1))
    measurement = select(fitting(found, request.memory_gib), request.gpu.id, request.workload, method)
    several = measurement is not None and len(measurement.series.points) > 1
    law = laws().get(request.gpu.id)
    # A class is one program of many: what the user's own does alone says more of it.
    if request.alone and law and not (several and measurement and measurement.own):
        return _predicted(request, request.alone, law, method)
    if measurement is None or not several:
        return _unmeasured(request, found, method, most)
    points = [e for n in range(1, most + 1) if (e := expected(measurement.series, n))]
    if points[-1].n < most:  # fewer pods than were measured on one GPU get no less
        beyond = range(most + 1, min(pods_by_memory(request), max(p.n for p in measurement.series.points)) + 1)
        points += [e for n in beyond if (e := expected(measurement.series, n))][:1]
    if request.bound:
        kept = [e for e in points if _keeps(request, e)]
        chosen = max(kept, key=lambda e: e.n, default=points[0])
        why = f"largest measured or interpolated number of pods with {request.bound}"
        if chosen.n == 1:
            why = f"no number of pods above one keeps a {request.bound}"
            if not kept and points[0].p99_ms is not None:
                why = f"not even a pod alone keeps a {request.bound}: its p99 is {points[0].p99_ms:.4g} ms"
    else:
        best = max(e.total for e in points)
        chosen = next(e for e in points if e.total >= NEAR_BEST * best)
        why = f"fewest pods that reach {NEAR_BEST:.0%} of the best measured total"
        if chosen.n == 1:
            why = f"two or more pods together do no more than one alone (at most {best / points[0].total:.2f} times)"
    if chosen.n > request.users:
        why += f"; measured with {chosen.n}, and {request.users} get no less"
    gpus = math.ceil(request.users / chosen.n)
    even = expected(measurement.series, math.ceil(request.users / gpus))
    if even and even.n < chosen.n:  # as many GPUs, and every pod gets more
        why += f", {chosen.n}; {even.n} where {request.users} pods are spread evenly over {gpus} GPUs"
        chosen = even
    return Option(method, chosen.n, gpus, why, chosen, measurement)


def _keeps(request: Request, e: Expected) -> bool:
    slow = request.slowdown is not None and e.slowdown > request.slowdown
    late = request.latency_ms is not None and (e.p99_ms is None or e.p99_ms > request.latency_ms)
    return not slow and not late


def _predicted(request: Request, alone: Alone, law: Law, method: str) -> Option:
    """Size one method from what one process does alone."""
    if request.latency_ms is not None:
        why = "a p99 is not predicted from one process alone: measure several for it"
        return Option(method, 1, request.users, why)
    points = [_point(alone, law, method, n) for n in range(1, min(pods_by_memory(request), law.processes) + 1)]
    if request.bound:
        chosen = max((e for e in points if _keeps(request, e)), key=lambda e: e.n, default=points[0])
        why = f"largest predicted number of pods that keeps a {request.bound} at the lower end of the range"
        if chosen.n == 1:
            why = f"no number of pods above one is sure to keep a {request.bound}"
    else:
        best = max(e.total for e in points)
        chosen = next(e for e in points if e.total >= NEAR_BEST * best)
        why = f"fewest pods that reach {NEAR_BEST:.0%} of the best predicted total"
        if chosen.n == 1:
            why = f"two or more pods together do no more than one alone (at most {best / points[0].total:.2f} times)"
    gpus = math.ceil(request.users / chosen.n)
    chosen = points[math.ceil(request.users / gpus) - 1]  # spread evenly: as many GPUs, and every pod gets more
    return Option(method, chosen.n, gpus, why, chosen)


def _point(alone: Alone, law: Law, method: str, n: int) -> Expected:
    single, p = 1e3 / alone.step_ms, predict(alone, law, method, n)
    return Expected(
        n, p.total, p.total / n / single, p.low / n / single, p.total / single, None, None, 0.0, low=p.low, high=p.high
    )


def _unmeasured(request: Request, found: Sequence[Measurement], method: str, most: int) -> Option:
    nothing = f"nothing was measured for {request.workload} under {method} on {request.gpu.id}"
    other = select(found, request.gpu.id, request.workload, method)
    if other:
        few = "one process alone was measured, without how busy it keeps the GPU"
        nothing = misfit(request.workload, found, request.gpu.id, request.memory_gib) or few
    if request.bound:
        return Option(method, 1, request.users, f"{nothing}, so a {request.bound} cannot be promised")
    if other:
        return Option(
            method, min(most, UNMEASURED_PODS), math.ceil(request.users / min(most, UNMEASURED_PODS)), nothing
        )
    lead = select(found, None, request.workload, method)
    if lead is None:
        return Option(method, 1, request.users, nothing)
    alone = lead.series.alone or 1.0
    gain = max(point.total for point in lead.series.points) / alone
    gained = f"the class gained up to {gain:.2f} times" if gain > 1 / NEAR_BEST else "the class gained nothing"
    hint = f"{nothing}; on {lead.gpu} {gained}, which is a lead and not a number"
    pods = min(most, UNMEASURED_PODS) if gain > 1 / NEAR_BEST else 1
    return Option(method, pods, math.ceil(request.users / pods), hint)


@dataclass(frozen=True)
class Facts:
    """What the decision tree asks about."""

    request: Request
    by_memory: int
    mig: MigFit | None
    time_slicing: Option
    mps: Option


def facts(request: Request, found: Sequence[Measurement]) -> Facts:
    """Raises ValueError for a request with ``problems``."""
    wrong = problems(request)
    if wrong:
        raise ValueError("; ".join(wrong))
    time_slicing, mps = (option(request, found, method) for method in METHODS)
    return Facts(request, pods_by_memory(request), mig_fit(request), time_slicing, mps)
