"""An advice as text and as JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

from gpufleet.advise.advice import Advice
from gpufleet.advise.neighbours import Neighbour
from gpufleet.advise.request import Request
from gpufleet.measure.interpolate import Expected
from gpufleet.measure.predict import Alone


def as_dict(request: Request, advice: Advice) -> dict[str, Any]:
    """The JSON document."""
    asked = {
        "workload": request.workload, "gpu": request.gpu.id, "memoryPerPodGib": request.memory_gib,
        "users": request.users, "latencyMs": request.latency_ms, "slowdown": request.slowdown,
        "alone": _alone(request.alone), "isolation": request.isolation, "environment": request.environment,
        "pricePerGpuHour": request.price,
    }  # fmt: skip
    return {
        "request": {key: value for key, value in asked.items() if value is not None},
        "method": advice.method,
        "because": advice.because,
        "replicas": advice.replicas,
        "podsPerGpu": advice.pods_per_gpu,
        "gpus": advice.gpus,
        "expected": _expected(advice.expected),
        "basis": advice.basis,
        "steps": [dataclasses.asdict(step) for step in advice.steps],
        "notOthers": advice.not_others,
        "notes": advice.notes,
        "unmeasured": advice.unmeasured,
        "measure": advice.measure,
        "neighbours": [_neighbour(one) for one in advice.neighbours],
        "costPerPodHour": advice.cost_per_pod,
        "fragment": advice.fragment,
    }


def _alone(alone: Alone | None) -> dict[str, Any] | None:
    if alone is None:
        return None
    return {"stepMs": alone.step_ms, "gpuMs": alone.gpu_ms, "hostMs": alone.host_ms, "fills": alone.fills}


def _expected(e: Expected | None) -> dict[str, Any] | None:
    if e is None:
        return None
    return {
        "processes": e.n, "total": e.total, "gain": e.gain, "share": e.share, "slowestShare": e.least,
        "slowdown": e.slowdown, "p50Ms": e.p50_ms, "p99Ms": e.p99_ms, "spread": e.spread,
        "measured": e.between is None and e.low is None, "totalLow": e.low, "totalHigh": e.high,
    }  # fmt: skip


def _neighbour(one: Neighbour) -> dict[str, Any]:
    return {
        "workload": one.workload, "others": one.others, "share": one.share, "p99Ms": one.p99_ms,
        "p99WorstMs": one.p99_worst_ms, "p99AloneMs": one.p99_alone_ms, "spread": one.spread, "keeps": one.keeps,
    }  # fmt: skip


def _beside(found: list[Neighbour]) -> list[str]:
    """One line per class beside which the workload was measured."""
    lines = []
    for workload in dict.fromkeys(one.workload for one in found):
        points = [
            f"{one.others}: {one.share:.0%} of its rate"
            + ("" if one.p99_ms is None else f", p99 {one.p99_ms:.4g} ms (at worst {one.p99_worst_ms:.4g})")
            + ("" if one.keeps else ", breaks the bound")
            for one in found
            if one.workload == workload
        ]
        lines.append(f"  beside {workload}, {'; '.join(points)}")
    return lines


def as_text(request: Request, advice: Advice) -> str:
    """What a person reads."""
    what = advice.method if advice.replicas is None else f"{advice.method}, replicas {advice.replicas}"
    users = f"{request.users} pod{'s' if request.users != 1 else ''}"
    lines = []
    if advice.unmeasured:
        lines += [f"not measured: {advice.unmeasured}", "  measure your program, then ask again:"]
        lines += [*(f"    {command}" for command in advice.measure), "until then:"]
    lines += [
        f"{what}: {advice.because}",
        f"  {advice.pods_per_gpu} per GPU; {users} need {advice.gpus} {request.gpu.id}",
    ]
    e = advice.expected
    if e:
        latency = "" if e.p50_ms is None or e.p99_ms is None else f"; step p50 {e.p50_ms:.4g} ms, p99 {e.p99_ms:.4g} ms"
        gets = f"{e.share:.0%} of a GPU of its own, the slowest {e.least:.0%}"
        total = f"{e.gain:.2f} times one alone ({e.total:.4g} steps/s)"
        if e.low is not None and e.high is not None:
            share, gain = e.share / e.total, e.gain / e.total
            gets = f"{e.share:.0%} of a GPU of its own, between {e.low * share:.0%} and {e.high * share:.0%}"
            total += f", between {e.low * gain:.2f} and {e.high * gain:.2f}"
        lines.append(f"  a pod gets {gets}; all together {total}{latency}")
    if advice.cost_per_pod is not None:
        lines.append(f"  cost per pod and hour: {advice.cost_per_pod:.4g}, with every GPU full")
    lines.append(f"  rests on: {advice.basis}")
    lines += [f"  note: {note}" for note in advice.notes]
    if advice.neighbours:
        lines += ["", "one such pod with pods of another class on its GPU:", *_beside(advice.neighbours)]
    lines += ["", "why:"] + [f"  {step.question} {'yes' if step.answer else 'no'}" for step in advice.steps]
    lines += ["", "why not:"] + [f"  {method}: {reason}" for method, reason in advice.not_others.items()]
    return "\n".join([*lines, "", advice.fragment.rstrip()])
