"""Measures one process of a workload beside neighbours of another class.

Each repetition holds, in an order drawn for it: the process alone, k neighbours without it, and all together, in
the same processes and under the same limits. Shares are formed within a repetition, so that a machine that slows
down for a while slows all three.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from gpufleet.bench.pool import Pool
from gpufleet.bench.session import Session
from gpufleet.measure.stats import percentile
from gpufleet.measure.workloads import MIG, MPS, WORKLOADS


def measure(bench: Session, base: dict[str, Any]) -> None:
    """All numbers of processes of one group; n counts the process and its n - 1 neighbours. Raises WorkerError."""
    counts = sorted(n for n in bench.run.processes if n > 1)
    # The plugin's limits depend on the number of processes: new processes for each n.
    together = [[n] for n in counts] if bench.run.fresh or base["method"] in (MPS, MIG) else [counts]
    for some in together:
        with bench.processes(base, max(some)) as pool:
            some = [n for n in some if n <= pool.ready]
            for repetition in range(bench.run.repetitions if some else 0):
                _repetition(bench, base, pool, some, repetition)


def _repetition(bench: Session, base: dict[str, Any], pool: Pool, counts: Sequence[int], repetition: int) -> None:
    window = bench.window(base)
    wanted = [(0,), *(tuple(range(first, n)) for n in counts for first in (1, 0))]
    random.Random(repetition).shuffle(wanted)
    measured: dict[tuple[int, ...], list[dict[str, Any]]] = {}
    for which in wanted:
        if bench.late(base, len(which), repetition):
            return
        measured[which] = pool.run_these(which, window, bench.run.warm_up)
    alone = measured[(0,)][0]
    for n in counts:
        without, (subject, *others) = measured[tuple(range(1, n))], measured[tuple(range(n))]
        line = {
            "kind": "beside", **base, "n": n, "repetition": repetition, "window_s": window,
            "unit": f"{WORKLOADS[base['workload']][0]}/s",
            "alone": _process(alone, window), "beside": _process(subject, window),
            "neighbours_unit": f"{WORKLOADS[base['neighbour']][0]}/s",
            "neighbours_without": [_process(one, window) for one in without],
            "neighbours_beside": [_process(one, window) for one in others],
            "late_s": max(one["late_s"] for one in (alone, subject, *others, *without)),
        }  # fmt: skip
        bench.write(line)
        p99 = "-" if line["beside"]["p99_ms"] is None else f"{line['beside']['p99_ms']:.1f} ms"
        what = f"{base['workload']} beside {n - 1} {base['neighbour']} {base['backend']} {base['method']}"
        share = line["beside"]["rate"] / line["alone"]["rate"] if line["alone"]["rate"] else 0.0
        bench.say(f"{what}, repetition {repetition}: {share:.0%} of alone, p99 {p99}")


def _process(answer: dict[str, Any], window: float) -> dict[str, Any]:
    latencies = answer["latency_ms"]
    return {
        "rate": round(answer["steps"] / window, 4),
        "p50_ms": percentile(latencies, 0.5),
        "p99_ms": percentile(latencies, 0.99),
        "samples": len(latencies),
    }
