"""Runs the points of a bench and writes one JSON line for each as soon as it is measured.

Kinds of lines: ``conditions`` (machine and GPU, once), ``group`` (one workload under one method: its device and
memory), ``point`` (one number of processes, one repetition), ``model`` (fitted to a group), ``failed`` and
``skipped`` (with the reason).
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import importlib.util
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from infra.bench import mps, queue_model, settings, smi
from infra.bench.plan import COMMAND, MIG, MPS, MPS_UNLIMITED, TIME_SLICING, TRAINING, WORKLOADS, Run
from infra.bench.pool import Pool, WorkerError
from infra.bench.stats import percentile
from infra.bench.worker import setup_message

Write = Callable[[dict[str, Any]], None]
_POINT_OVERHEAD = 0.3  # seconds around one window


def conditions(gpu: str | None) -> dict[str, Any]:
    """What the numbers depend on. Values that cannot be read are None."""
    state: Mapping[str, str | None]
    try:
        state = smi.query(gpu)
    except smi.SmiError as error:
        state = {"nvidia_smi": str(error)}
    return {
        "kind": "conditions",
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "gpu_state": {**state, "time_slice": smi.time_slice(gpu)},
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
    }


def choose_backend(wanted: str) -> str:
    """``auto`` is PyTorch where it is installed. Raises WorkerError when PyTorch is asked for and missing."""
    found = importlib.util.find_spec("torch") is not None
    if wanted == "torch" and not found:
        raise WorkerError("PyTorch is not installed here; '--backend driver' needs none")
    return ("torch" if found else "driver") if wanted == "auto" else wanted


class Bench:
    """One run. ``write`` takes each line; ``say`` takes a short progress text."""

    def __init__(self, run: Run, write: Write, say: Callable[[str], None]) -> None:
        self._run, self._write, self._say = run, write, say
        self._end = time.monotonic() + run.time_limit if run.time_limit else None
        self._backend = ""
        self._calibration: dict[str, float] = {}
        self.failures = 0

    def execute(self) -> None:
        """Measure every workload under every method. A failed group is written and the next one goes on."""
        self._write(conditions(self._run.gpu))
        for workload in self._run.workloads:
            for method in self._run.methods:
                for setting in self._settings_of(method):
                    base = {"workload": workload, "method": method, **setting}
                    try:
                        self._backend = "command" if workload == COMMAND else choose_backend(self._run.backend)
                        base["backend"] = self._backend
                        self._calibrate()
                        with self._time_slice(setting):
                            self._group(base)
                    except (WorkerError, mps.MpsError, settings.SettingsError, smi.SmiError) as error:
                        self._fail(base, str(error))

    def _calibrate(self) -> None:
        """Size the built-in kernels once, on the GPU without limits: the same work under every method."""
        if self._backend != "driver" or self._calibration:
            return
        env = {"CUDA_VISIBLE_DEVICES": self._run.gpu} if self._run.gpu else {}
        with Pool(1, setup_message(TRAINING, "driver", self._run.sizes, 0), [env]) as pool:
            self._calibration = pool.calibration

    def _settings_of(self, method: str) -> list[dict[str, str]]:
        if method == TIME_SLICING and self._run.time_slices:
            return [{"time_slice": length} for length in self._run.time_slices]
        return [{"profile": self._run.mig_profile or ""}] if method == MIG else [{}]

    def _time_slice(self, setting: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
        if "time_slice" not in setting:
            return contextlib.nullcontext()
        return settings.time_slice(setting["time_slice"], self._gpu(), self._run.allow_settings)

    def _gpu(self) -> str:
        return self._run.gpu or "0"

    def _group(self, base: dict[str, Any]) -> None:
        method, counts = base["method"], sorted(self._run.processes)
        # The plugin's limits depend on the number of processes, and a command cannot pause: new processes each time.
        fresh = self._run.fresh or method in (MPS, MIG) or base["workload"] == COMMAND
        totals: dict[int, list[float]] = {}
        if not fresh:
            with self._processes(base, max(counts)) as pool:
                for repetition in range(self._run.repetitions):
                    order = list(counts)
                    random.Random(repetition).shuffle(order)  # a drift of the GPU must not look like an effect of n
                    for n in order:
                        self._point(base, pool, n, repetition, totals)
        else:
            for n in counts:
                if self._late(base, n, 0):
                    continue
                again = self._run.repetitions if base["workload"] == COMMAND else 1
                for first in range(again):
                    with self._processes(base, n) as pool:
                        for repetition in [first] if again > 1 else range(self._run.repetitions):
                            self._point(base, pool, n, repetition, totals)
        self._fit(base, totals)

    def _fit(self, base: dict[str, Any], totals: Mapping[int, Sequence[float]]) -> None:
        points = {n: statistics.median(values) for n, values in totals.items()}
        model = queue_model.fit(points)
        if model:
            self._write({
                "kind": "model", **base, "service_ms": model.service * 1e3, "host_ms": model.host * 1e3,
                "efficiency": model.efficiency, "largest_error": model.largest_error(points),
            })  # fmt: skip

    @contextlib.contextmanager
    def _processes(self, base: dict[str, Any], count: int) -> Iterator[Pool]:
        """A pool of ``count`` processes under the group's method; writes the ``group`` line."""
        with contextlib.ExitStack() as stack:
            used_before = smi.memory_used_mib(self._run.gpu)
            envs: list[dict[str, str]] = [{"CUDA_VISIBLE_DEVICES": self._run.gpu} if self._run.gpu else {}]
            if base["method"] in (MPS, MPS_UNLIMITED):
                envs = [{**envs[0], **self._mps(stack, base["method"], count)}]
            elif base["method"] == MIG:
                uuids = settings.mig_instances(base["profile"], count, self._gpu(), self._run.allow_settings)
                envs = [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in stack.enter_context(uuids)]
            more: dict[str, Any] = {"command": self._run.command, "step_pattern": self._run.step_pattern}
            more["calibration"] = self._calibration
            setup = setup_message(base["workload"], self._backend, self._run.sizes, 0, **more)
            pool = stack.enter_context(Pool(count, setup, envs))
            group = {"kind": "group", **base, "processes": pool.ready, "device": pool.device}
            group["memory_mib_per_process"] = self._memory(pool, used_before)
            group["sizes"] = dataclasses.asdict(self._run.sizes)
            self._write(group)
            if pool.failure:
                self._fail({**base, "processes": count}, f"only {pool.ready} of {count} could start: {pool.failure}")
            yield pool

    def _mps(self, stack: contextlib.ExitStack, method: str, count: int) -> dict[str, str]:
        if method == MPS_UNLIMITED:
            return stack.enter_context(mps.Mps()).env
        try:
            total = int(smi.query(self._run.gpu)["memory.total"].split()[0])
        except (smi.SmiError, ValueError):
            total = 0
        return stack.enter_context(mps.Mps(100 / count, total // count or None)).env

    def _memory(self, pool: Pool, used_before: int | None) -> float | None:
        """MiB of device memory that one process takes with its context; None where it cannot be told."""
        used = smi.memory_used_mib(self._run.gpu)
        if used is None or used_before is None:
            return None
        return round((used - used_before) / pool.ready, 1)

    def _late(self, base: Mapping[str, Any], n: int, repetition: int) -> bool:
        need = self._run.window_of(base["workload"]) + self._run.warm_up + _POINT_OVERHEAD
        if self._end is None or time.monotonic() + need <= self._end:
            return False
        self._write({"kind": "skipped", **base, "n": n, "repetition": repetition, "reason": "the time limit is near"})
        return True

    def _point(self, base: dict[str, Any], pool: Pool, n: int, repetition: int, totals: dict[int, list[float]]) -> None:
        if n > pool.ready or self._late(base, n, repetition):
            return
        window = self._run.window_of(base["workload"])
        answers = pool.run(n, window, self._run.warm_up)
        latencies = [value for answer in answers for value in answer["latency_ms"]]
        rates = [answer["steps"] / window for answer in answers]
        point = {
            "kind": "point", **base, "n": n, "repetition": repetition, "unit": f"{WORKLOADS[base['workload']][0]}/s",
            "total": round(sum(rates), 4), "per_process": [round(rate, 4) for rate in rates],
            "p50_ms": percentile(latencies, 0.5), "p99_ms": percentile(latencies, 0.99), "samples": len(latencies),
            "window_s": window, "late_s": max(answer["late_s"] for answer in answers),
        }  # fmt: skip
        totals.setdefault(n, []).append(point["total"])
        self._write(point)
        what = f"{base['workload']} {self._backend} {base['method']} n={n} repetition {repetition}"
        self._say(f"{what}: {point['total']:.1f} {point['unit']}")

    def _fail(self, base: dict[str, Any], reason: str) -> None:
        self.failures += 1
        self._write({"kind": "failed", **base, "reason": reason})
        self._say(f"{base['workload']} {base['method']}: {reason}")
