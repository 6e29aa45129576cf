"""What every measurement of a run needs: processes under a method, the time left, and where lines go."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpufleet.bench import mps, settings, smi
from gpufleet.bench.plan import Run
from gpufleet.bench.pool import Pool
from gpufleet.bench.worker import setup_message
from gpufleet.measure.workloads import MIG, MPS, MPS_UNLIMITED

Write = Callable[[dict[str, Any]], None]
_POINT_OVERHEAD = 0.3  # seconds around one window


class Session:
    """``write`` takes each line; ``say`` takes a short progress text."""

    def __init__(self, run: Run, write: Write, say: Callable[[str], None]) -> None:
        self.run, self.write, self.say = run, write, say
        self._end = time.monotonic() + run.time_limit if run.time_limit else None
        self.backend = ""
        self.calibration: dict[str, float] = {}
        self.failures = 0

    @property
    def gpu(self) -> str:
        """Index or UUID of the GPU."""
        return self.run.gpu or "0"

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
                uuids = settings.mig_instances(base["profile"], count, self.gpu, self.run.allow_settings)
                envs = [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in stack.enter_context(uuids)]
            more: dict[str, Any] = {"command": self.run.command, "step_pattern": self.run.step_pattern}
            more["calibration"] = self.calibration
            setup = setup_message(base["workload"], self.backend, self.run.sizes, 0, **more)
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

    def window(self, base: Mapping[str, Any], n: int = 0) -> float:
        """Measured seconds of one point: the longest that a class of the group wants, or of one process alone."""
        if n == 1 and self.run.alone is not None:
            return self.run.alone
        return max(self.run.window_of(base[key]) for key in ("workload", "neighbour") if key in base)

    def late(self, base: Mapping[str, Any], n: int, repetition: int) -> bool:
        """Whether the next point would end after the time limit; writes it as skipped then."""
        need = self.window(base, n) + self.run.warm_up + _POINT_OVERHEAD
        if self._end is None or time.monotonic() + need <= self._end:
            return False
        self.write({"kind": "skipped", **base, "n": n, "repetition": repetition, "reason": "the time limit is near"})
        return True

    def fail(self, base: Mapping[str, Any], reason: str) -> None:
        """Write a failure; the run goes on and ends with exit code 1."""
        self.failures += 1
        self.write({"kind": "failed", **base, "reason": reason})
        self.say(f"{base['workload']} {base['method']}: {reason}")
