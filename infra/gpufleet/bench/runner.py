"""Runs the points of a bench and writes one JSON line for each as soon as it is measured.

Kinds of lines: ``conditions`` (machine and GPU, once), ``group`` (one workload under one method: its device and
memory), ``point`` (one number of processes, one repetition), ``model`` (fitted to a group), ``beside`` (one process
with neighbours of another class), ``memory`` (the memory probe), ``failed`` and ``skipped`` (with the reason).
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

from gpufleet.bench import beside_run, memory_run, mps, queue_model, settings, smi
from gpufleet.bench.plan import COMMAND, MEMORY, MIG, MPS, MPS_UNLIMITED, TIME_SLICING, TRAINING, WORKLOADS, Run
from gpufleet.bench.pool import Pool, WorkerError
from gpufleet.bench.stats import percentile
from gpufleet.bench.worker import setup_message

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
        self.run, self.write, self.say = run, write, say
        self._end = time.monotonic() + run.time_limit if run.time_limit else None
        self._backend = ""
        self._calibration: dict[str, float] = {}
        self.failures = 0

    def execute(self) -> None:
        """Measure every workload under every method. A failed group is written and the next one goes on."""
        self.write(conditions(self.run.gpu))
        for base in self._bases():
            try:
                base["backend"] = self._backend = self._backend_of(base["workload"])
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
        if self._backend != "driver" or self._calibration:
            return
        env = {"CUDA_VISIBLE_DEVICES": self.run.gpu} if self.run.gpu else {}
        with Pool(1, setup_message(TRAINING, "driver", self.run.sizes, 0), [env]) as pool:
            self._calibration = pool.calibration

    def _settings_of(self, method: str) -> list[dict[str, str]]:
        if method == TIME_SLICING and self.run.time_slices:
            return [{"time_slice": length} for length in self.run.time_slices]
        return [{"profile": self.run.mig_profile or ""}] if method == MIG else [{}]

    def _time_slice(self, setting: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
        if "time_slice" not in setting:
            return contextlib.nullcontext()
        return settings.time_slice(setting["time_slice"], self._gpu(), self.run.allow_settings)

    def _gpu(self) -> str:
        return self.run.gpu or "0"

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

    @contextlib.contextmanager
    def processes(self, base: dict[str, Any], count: int) -> Iterator[Pool]:
        """A pool of ``count`` processes under the group's method; writes the ``group`` line.

        With a ``neighbour`` in the group all processes but the first are of that class.
        """
        with contextlib.ExitStack() as stack:
            used_before = smi.memory_used_mib(self.run.gpu)
            envs: list[dict[str, str]] = [{"CUDA_VISIBLE_DEVICES": self.run.gpu} if self.run.gpu else {}]
            if base["method"] in (MPS, MPS_UNLIMITED):
                envs = [{**envs[0], **self._mps(stack, base["method"], count)}]
            elif base["method"] == MIG:
                uuids = settings.mig_instances(base["profile"], count, self._gpu(), self.run.allow_settings)
                envs = [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in stack.enter_context(uuids)]
            more: dict[str, Any] = {"command": self.run.command, "step_pattern": self.run.step_pattern}
            more["calibration"] = self._calibration
            setup = setup_message(base["workload"], self._backend, self.run.sizes, 0, **more)
            others = {**setup, "workload": base["neighbour"]} if "neighbour" in base else None
            pool = stack.enter_context(Pool(count, setup, envs, others=others))
            group = {"kind": "group", **base, "processes": pool.ready, "device": pool.device}
            group["memory_mib_per_process"] = self._memory(pool, used_before)
            group["sizes"] = dataclasses.asdict(self.run.sizes)
            self.write(group)
            if pool.failure:
                self.fail({**base, "processes": count}, f"only {pool.ready} of {count} could start: {pool.failure}")
            yield pool

    def _mps(self, stack: contextlib.ExitStack, method: str, count: int) -> dict[str, str]:
        if method == MPS_UNLIMITED:
            return stack.enter_context(mps.Mps()).env
        return stack.enter_context(mps.Mps(100 / count, self.plugin_limit_mib(count))).env

    def plugin_limit_mib(self, count: int) -> int | None:
        """Memory limit per client that the device plugin sets for ``count`` replicas; None where it cannot be told."""
        try:
            return int(smi.query(self.run.gpu)["memory.total"].split()[0]) // count
        except (smi.SmiError, ValueError):
            return None

    def _memory(self, pool: Pool, used_before: int | None) -> float | None:
        """MiB of device memory that one process takes with its context; None where it cannot be told."""
        used = smi.memory_used_mib(self.run.gpu)
        if used is None or used_before is None:
            return None
        return round((used - used_before) / pool.ready, 1)

    def window(self, base: Mapping[str, Any]) -> float:
        """Measured seconds of one point: the longest that a class of the group wants."""
        return max(self.run.window_of(base[key]) for key in ("workload", "neighbour") if key in base)

    def late(self, base: Mapping[str, Any], n: int, repetition: int) -> bool:
        """Whether the next point would end after the time limit; writes it as skipped then."""
        need = self.window(base) + self.run.warm_up + _POINT_OVERHEAD
        if self._end is None or time.monotonic() + need <= self._end:
            return False
        self.write({"kind": "skipped", **base, "n": n, "repetition": repetition, "reason": "the time limit is near"})
        return True

    def _point(self, base: dict[str, Any], pool: Pool, n: int, repetition: int, totals: dict[int, list[float]]) -> None:
        if n > pool.ready or self.late(base, n, repetition):
            return
        window = self.window(base)
        answers = pool.run(n, window, self.run.warm_up)
        latencies = [value for answer in answers for value in answer["latency_ms"]]
        rates = [answer["steps"] / window for answer in answers]
        point = {
            "kind": "point", **base, "n": n, "repetition": repetition, "unit": f"{WORKLOADS[base['workload']][0]}/s",
            "total": round(sum(rates), 4), "per_process": [round(rate, 4) for rate in rates],
            "p50_ms": percentile(latencies, 0.5), "p99_ms": percentile(latencies, 0.99), "samples": len(latencies),
            "window_s": window, "late_s": max(answer["late_s"] for answer in answers),
        }  # fmt: skip
        totals.setdefault(n, []).append(point["total"])
        self.write(point)
        what = f"{base['workload']} {self._backend} {base['method']} n={n} repetition {repetition}"
        self.say(f"{what}: {point['total']:.1f} {point['unit']}")

    def fail(self, base: Mapping[str, Any], reason: str) -> None:
        """Write a failure; the run goes on and ends with exit code 1."""
        self.failures += 1
        self.write({"kind": "failed", **base, "reason": reason})
        self.say(f"{base['workload']} {base['method']}: {reason}")
