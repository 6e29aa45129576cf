"""The workload classes on the built-in backend, and what every backend's loop looks like."""

from __future__ import annotations

import ctypes
import math
import random
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from gpufleet.bench.cuda import Cuda, CudaError, Launch
from gpufleet.bench.kernels import MODULE
from gpufleet.measure.workloads import COPY, DECODER, GRAPH, INFERENCE, NOTEBOOK, TRAINING, Sizes

_BLOCK = 256
_BLOCKS_PER_MULTIPROCESSOR = 8  # 8 x 256 threads fill every multiprocessor since sm_60
_CHAIN_BLOCKS = 16  # a small kernel: most of the GPU stays idle
_CHECK_ROUNDS = 100_000
_THINK_QUANTILES = 16
_READS = 8  # launches of a decoder's step


class Loop(Protocol):
    """One process's work. ``rest`` is idle time before a step, ``step`` returns when one step is done."""

    def rest(self) -> float: ...
    def step(self) -> None: ...
    def drain(self) -> None: ...
    def memory(self) -> tuple[int, int]: ...
    def describe(self) -> dict[str, object]: ...


class Think:
    """Idle times (seconds) with an exponential distribution of the given mean.

    Takes the quantiles of the distribution in a shuffled order instead of drawing them, so that the sum over
    one round of 16 is the same for every process and repetition.
    """

    def __init__(self, mean_seconds: float, seed: int) -> None:
        times = [-math.log(1 - (i + 0.5) / _THINK_QUANTILES) for i in range(_THINK_QUANTILES)]
        scale = mean_seconds * _THINK_QUANTILES / sum(times)
        self._times = [t * scale for t in times]
        random.Random(seed).shuffle(self._times)
        self._next = 0

    def __call__(self) -> float:
        value = self._times[self._next % len(self._times)]
        self._next += 1
        return value


class Fma:
    """The fused multiply-add kernel at full and at small size, with its measured speed."""

    def __init__(self, cuda: Cuda, multiprocessors: int) -> None:
        self.cuda = cuda
        self._function = cuda.function(cuda.load(MODULE), "fma_loop")
        self._grid = multiprocessors * _BLOCKS_PER_MULTIPROCESSOR
        self._multiprocessors = multiprocessors
        self._out = cuda.allocate(self._grid * _BLOCK * 4)

    def launch(self, rounds: int, *, small: bool = False) -> Launch:
        grid = _CHAIN_BLOCKS if small else self._grid
        return self.cuda.launcher(self._function, grid, _BLOCK, [self._out, ctypes.c_uint32(max(1, rounds))])

    def check(self) -> None:
        """Raises CudaError unless the kernel computes what it should (8.0 in every thread)."""
        self.cuda.upload(self._out, b"\xff" * 64)
        self.launch(_CHECK_ROUNDS)()
        values = (ctypes.c_float * 16).from_buffer_copy(self.cuda.download(self._out, 64))
        if not all(abs(v - 8.0) < 0.08 for v in values):
            raise CudaError(f"the kernel computed {values[0]} where 8.0 is right")

    def calibrate(self) -> dict[str, float]:
        """Rounds per millisecond with the whole GPU, and per microsecond for the small kernel. Takes 0.2 s."""
        return {
            "multiprocessors": self._multiprocessors,
            "full_rounds_per_ms": self._speed(20_000, small=False),
            "small_rounds_per_us": self._speed(20_000, small=True) / 1e3,
        }

    def _speed(self, rounds: int, *, small: bool) -> float:
        launch = self.launch(rounds, small=small)
        times = []
        for _ in range(6):
            begin = time.perf_counter()
            for _ in range(5):
                launch()
            self.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        return rounds * 5 / (min(times) * 1e3)


class DriverLoop:
    """The built-in backend: needs the driver library alone."""

    def __init__(self, workload: str, sizes: Sizes, calibration: Mapping[str, float] | None, seed: int) -> None:
        self._cuda = Cuda()
        self._think = Think(sizes.think_ms / 1e3, seed)
        self.calibration: dict[str, float] = dict(calibration or {})
        self._rest = 0.0
        # Under MPS limits and MIG a process sees fewer multiprocessors. Its work must be the same all the same.
        multiprocessors = round(self.calibration.get("multiprocessors", self._cuda.multiprocessors()))
        self._launches: list[Callable[[], None]]
        if workload == COPY:
            self._launches = [self._copy(sizes, multiprocessors)] * sizes.copies
        elif workload == DECODER:
            self._launches = self._reads(sizes, multiprocessors)
            self._rest = sizes.decoder_host_ms / 1e3
        else:
            fma = Fma(self._cuda, multiprocessors)
            fma.check()
            if not self.calibration:
                self.calibration = fma.calibrate()
            full, small = self.calibration["full_rounds_per_ms"], self.calibration["small_rounds_per_us"]
            if workload == TRAINING:
                self._launches = [fma.launch(round(full * sizes.launch_ms))] * sizes.training_launches
            elif workload in (INFERENCE, GRAPH):
                chain = [fma.launch(round(small * sizes.chain_kernel_us), small=True)] * sizes.chain_kernels
                self._launches = [self._cuda.graph(chain)] if workload == GRAPH else [*chain]
                self._rest = 0.0 if workload == GRAPH else sizes.host_ms / 1e3
            else:
                count = max(1, round(sizes.cell_ms / sizes.launch_ms))
                self._launches = [fma.launch(round(full * sizes.launch_ms))] * count
        self._workload = workload
        self._in_flight = workload in (TRAINING, COPY)
        self._events = [self._cuda.event(), self._cuda.event()]
        self._steps = 0

    def _copy(self, sizes: Sizes, multiprocessors: int) -> Launch:
        size = sizes.copy_mib << 20
        source, target = self._cuda.allocate(size), self._cuda.allocate(size)
        function = self._cuda.function(self._cuda.load(MODULE), "copy_loop")
        grid = multiprocessors * _BLOCKS_PER_MULTIPROCESSOR
        launch = self._cuda.launcher(function, grid, _BLOCK, [target, source, ctypes.c_uint64(size // 16)])
        pattern = bytes(range(256)) * 16
        self._cuda.upload(source, pattern)
        self._cuda.upload(target, b"\0" * len(pattern))
        launch()
        if self._cuda.download(target, len(pattern)) != pattern:
            raise CudaError("the copy kernel did not copy")
        return launch

    def _reads(self, sizes: Sizes, multiprocessors: int) -> list[Callable[[], None]]:
        part = max(16, int(sizes.cache_gib * 2**30) // _READS // 16 * 16)
        cache, total = self._cuda.allocate(part * _READS), self._cuda.allocate(16)
        self._cuda.fill(cache, 1, part * _READS)
        self._cuda.fill(total, 0, 16)
        function = self._cuda.function(self._cuda.load(MODULE), "read_loop")
        grid, vectors = multiprocessors * _BLOCKS_PER_MULTIPROCESSOR, ctypes.c_uint64(part // 16)
        places = (ctypes.c_uint64(cache.value + part * i) for i in range(_READS))
        launches = [self._cuda.launcher(function, grid, _BLOCK, [total, place, vectors]) for place in places]
        launches[0]()
        read = int.from_bytes(self._cuda.download(total, 4), "little")
        if read != part // 4 % 2**32:
            raise CudaError(f"the read kernel added {read} where {part // 4 % 2**32} is right")
        return [*launches]

    def rest(self) -> float:
        return self._think() if self._workload == NOTEBOOK else self._rest

    def step(self) -> None:
        for launch in self._launches:
            launch()
        self._cuda.record(self._events[self._steps % 2])
        # Saturating work keeps a second step queued, as a training loop does that reads its loss rarely.
        self._cuda.wait(self._events[(self._steps + 1) % 2 if self._in_flight else self._steps % 2])
        self._steps += 1

    def drain(self) -> None:
        self._cuda.synchronize()

    def memory(self) -> tuple[int, int]:
        return self._cuda.memory()

    def describe(self) -> dict[str, object]:
        return {**self._cuda.describe(), "calibration": self.calibration}
