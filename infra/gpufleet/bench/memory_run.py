"""The memory probe: what each of n processes is shown, what each can take, and what that does to the others.

In turn: every process takes a little; each takes all that it can get, the first one first; all compute and check
their results and their memory; one more process starts; the first gives back and the last takes some of it. Under
MPS limits one more client asks for higher limits through its environment, as a pod could.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.bench import smi
from gpufleet.bench.pool import Pool, WorkerError
from gpufleet.bench.session import Session
from gpufleet.measure.workloads import MPS

FIRST_MIB = 256  # what every process takes before the first one takes all
AGAIN_MIB = 1024  # what the last takes after the first gave back
_IN_USE_MIB = 1024  # more than this on an idle GPU is somebody's


def measure(bench: Session, base: dict[str, Any]) -> None:
    """One ``memory`` line per number of processes. Raises WorkerError: a failure that is no lack of memory, or a GPU
    that somebody else uses."""
    used = smi.memory_used_mib(bench.run.gpu)
    if used is not None and used > _IN_USE_MIB:
        raise WorkerError(f"{used} MiB of the GPU are in use; the probe takes all of its memory, so it wants it idle")
    for n in sorted(bench.run.processes):
        if bench.late(base, n, 0):
            continue
        with bench.processes(base, n) as pool:
            if pool.ready == n:
                limit = bench.plugin_limit_mib(n) if base["method"] == MPS else None
                line = {"kind": "memory", **base, "n": n, "limit_mib": limit, **_probe(bench, base, pool, used)}
                bench.write(line)
                bench.say(f"memory {base['method']} n={n}: taken {line['taken_mib']} MiB")


def _probe(bench: Session, base: Mapping[str, Any], pool: Pool, used_before: int | None) -> dict[str, Any]:
    all_of_them = range(pool.ready)
    used = smi.memory_used_mib(bench.run.gpu)
    shown = [pool.ask(i, {"do": "memory"})["memory"] for i in all_of_them]
    first = [_take(pool, i, FIRST_MIB) for i in all_of_them]
    full = [_take(pool, i, None) for i in all_of_them]
    full_used = smi.memory_used_mib(bench.run.gpu)
    steps = [one["steps"] for one in pool.run(pool.ready, bench.run.window, 0.0)]
    late = _one_more(pool, {})
    pool.ask(0, {"do": "give"})
    again = _take(pool, pool.ready - 1, AGAIN_MIB)
    result = {
        "contexts_mib": None if used is None or used_before is None else used - used_before,
        "multiprocessors": pool.device["multiprocessors"],
        "total_mib": [total >> 20 for _, total in shown],
        "free_mib": [free >> 20 for free, _ in shown],
        "taken_mib": [one["taken_mib"] + more["taken_mib"] for one, more in zip(first, full, strict=True)],
        "free_then_mib": [one["free_mib"] for one in full],
        "refused": [one["refused"] for one in full],
        "used_full_mib": full_used,
        "steps": [round(value, 2) for value in steps],
        "one_more": late,
        "again_mib": again["taken_mib"],
        "again_refused": again["refused"],
    }
    if base["method"] == MPS and pool.ready > 1:
        for i in all_of_them:
            pool.ask(i, {"do": "give"})
        whole = shown[0][1] >> 20  # MPS shows its clients the GPU's total, whatever their limit
        asked = {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={whole}M", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100"}
        result["asking_more"] = {"asked_mib": whole, **_one_more(pool, asked)}
    return result


def _take(pool: Pool, i: int, mib: int | None) -> dict[str, Any]:
    answer = pool.ask(i, {"do": "take", "mib": mib})
    return {**answer, "free_mib": answer["memory"][0] >> 20}


def _one_more(pool: Pool, env: Mapping[str, str]) -> dict[str, Any]:
    """One more process with ``env`` added, which takes all it can."""
    try:
        with Pool(1, pool.setup, [{**pool.envs[0], **env}]) as one:
            free, total = one.memory()
            return {
                "started": True, "total_mib": total >> 20, "free_mib": free >> 20,
                "multiprocessors": one.device["multiprocessors"], "taken_mib": _take(one, 0, None)["taken_mib"],
            }  # fmt: skip
    except WorkerError as error:
        return {"started": False, "reason": str(error)}
