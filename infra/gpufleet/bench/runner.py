"""Runs the points of a bench and writes one JSON line for each as soon as it is measured.

Kinds of lines: ``conditions`` (machine and GPU, once), ``group`` (one workload under one method: its device and
memory), ``point`` (one number of processes, one repetition), ``model`` (fitted to a group), ``beside`` (one process
with neighbours of another class), ``memory`` (the memory probe), ``failed`` and ``skipped`` (with the reason).
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import os
import platform
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpufleet.bench import beside_run, memory_run, mps, settings, smi
from gpufleet.bench.pool import Pool, WorkerError
from gpufleet.bench.session import Session
from gpufleet.bench.worker import setup_message
from gpufleet.measure import queue_model
from gpufleet.measure.stats import percentile
from gpufleet.measure.workloads import COMMAND, MEMORY, MIG, MPS, TIME_SLICING, TRAINING, WORKLOADS


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


class Bench(Session):
    """One run: every workload under every method."""

    def execute(self) -> None:
        """Measure every workload under every method. A failed group is written and the next one goes on."""
        self.write(conditions(self.run.gpu))
        for base in self._bases():
            try:
                base["backend"] = self.backend = self._backend_of(base["workload"])
                if base["workload"] != MEMORY:
                    self._calibrate()
                with self._time_slice(base):
                    if base["workload"] == MEMORY:
                        memory_run.measure(self, base)
                    elif "neighbour" in base:
                        beside_run.measure(self, base)
                    else:
                        self._group(base)
            except (WorkerError, mps.MpsError, settings.SettingsError, smi.SmiError) as error:
                self.fail(base, str(error))

    def _bases(self) -> Iterator[dict[str, Any]]:
        """What each group of lines has in common."""
        for workload in self.run.workloads:
            for method in self.run.methods:
                for setting in self._settings_of(method):
                    base = {"workload": workload, "method": method, **setting}
                    if workload == MEMORY or not self.run.neighbours:
                        yield base
                    else:
                        yield from ({**base, "neighbour": other} for other in self.run.neighbours)

    def _backend_of(self, workload: str) -> str:
        if workload in (COMMAND, MEMORY):
            return {COMMAND: "command", MEMORY: "driver"}[workload]
        return choose_backend(self.run.backend)

    def _calibrate(self) -> None:
        """Size the built-in kernels once, on the GPU without limits: the same work under every method."""
        if self.backend != "driver" or self.calibration:
            return
        env = {"CUDA_VISIBLE_DEVICES": self.run.gpu} if self.run.gpu else {}
        with Pool(1, setup_message(TRAINING, "driver", self.run.sizes, 0), [env]) as pool:
            self.calibration = pool.calibration

    def _settings_of(self, method: str) -> list[dict[str, str]]:
        if method == TIME_SLICING and self.run.time_slices:
            return [{"time_slice": length} for length in self.run.time_slices]
        return [{"profile": self.run.mig_profile or ""}] if method == MIG else [{}]

    def _time_slice(self, setting: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
        if "time_slice" not in setting:
            return contextlib.nullcontext()
        return settings.time_slice(setting["time_slice"], self.gpu, self.run.allow_settings)

    def _group(self, base: dict[str, Any]) -> None:
        method, counts = base["method"], sorted(self.run.processes)
        # The plugin's limits depend on the number of processes, and a command cannot pause: new processes each time.
        fresh = self.run.fresh or method in (MPS, MIG) or base["workload"] == COMMAND
        totals: dict[int, list[float]] = {}
        if not fresh:
            with self.processes(base, max(counts)) as pool:
                for repetition in range(self.run.repetitions):
                    order = list(counts)
                    random.Random(repetition).shuffle(order)  # a drift of the GPU must not look like an effect of n
                    for n in order:
                        self._point(base, pool, n, repetition, totals)
        else:
            for n in counts:
                if self.late(base, n, 0):
                    continue
                again = self.run.repetitions if base["workload"] == COMMAND else 1
                for first in range(again):
                    with self.processes(base, n) as pool:
                        for repetition in [first] if again > 1 else range(self.run.repetitions):
                            self._point(base, pool, n, repetition, totals)
        self._fit(base, totals)

    def _fit(self, base: dict[str, Any], totals: Mapping[int, Sequence[float]]) -> None:
        points = {n: statistics.median(values) for n, values in totals.items()}
        model = queue_model.fit(points)
        if model:
            self.write({
                "kind": "model", **base, "service_ms": model.service * 1e3, "host_ms": model.host * 1e3,
                "efficiency": model.efficiency, "largest_error": model.largest_error(points),
            })  # fmt: skip

    def _activity(
        self, base: Mapping[str, Any], n: int, window: float
    ) -> contextlib.AbstractContextManager[dict[str, float]]:
        """What the GPU says of itself while one process works alone."""
        if n > 1 or base["method"] != TIME_SLICING:
            return contextlib.nullcontext({})
        return smi.activity(window, self.run.warm_up, self.run.gpu)

    def _point(self, base: dict[str, Any], pool: Pool, n: int, repetition: int, totals: dict[int, list[float]]) -> None:
        if n > pool.ready or self.late(base, n, repetition):
            return
        window = self.window(base, n)
        with self._activity(base, n, window) as activity:
            answers = pool.run(n, window, self.run.warm_up)
        latencies = [value for answer in answers for value in answer["latency_ms"]]
        rates = [answer["steps"] / window for answer in answers]
        point = {
            "kind": "point", **base, "n": n, "repetition": repetition, "unit": f"{WORKLOADS[base['workload']][0]}/s",
            "total": round(sum(rates), 4), "per_process": [round(rate, 4) for rate in rates],
            "p50_ms": percentile(latencies, 0.5), "p99_ms": percentile(latencies, 0.99), "samples": len(latencies),
            "window_s": window, "late_s": max(answer["late_s"] for answer in answers),
        }  # fmt: skip
        if activity:
            point["activity"] = activity
        totals.setdefault(n, []).append(point["total"])
        self.write(point)
        what = f"{base['workload']} {self.backend} {base['method']} n={n} repetition {repetition}"
        self.say(f"{what}: {point['total']:.1f} {point['unit']}")
