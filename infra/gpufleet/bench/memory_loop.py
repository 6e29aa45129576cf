"""One process of the memory probe: takes device memory, keeps a pattern in it, and computes and checks both."""

from __future__ import annotations

import ctypes
import struct

from gpufleet.bench.cuda import OUT_OF_MEMORY, Cuda, CudaError
from gpufleet.bench.loops import Fma

_CHUNKS_MIB = (1024, 64, 2)  # cuMemAlloc hands out pieces of 2 MiB
_SAMPLE = 4096
_FIRST_WORD = 0x5EED0000


class MemoryLoop:
    """A step computes with the whole GPU that it sees, checks the result, and checks one piece of held memory.

    Raises CudaError where there is no GPU, no memory for the context, or a value is wrong.
    """

    def __init__(self) -> None:
        self._cuda = Cuda()
        self._fma = Fma(self._cuda, self._cuda.multiprocessors())
        self._held: list[tuple[ctypes.c_uint64, int]] = []
        self._steps = 0
        self.calibration: dict[str, float] = {}

    def take(self, most_mib: int | None) -> dict[str, object]:
        """Take up to ``most_mib`` MiB more (None: all there is); what was had, the refusal, and free and total bytes.

        Being refused is an answer here. Raises CudaError for any other failure.
        """
        taken, refused = 0, None
        for chunk in _CHUNKS_MIB:
            while most_mib is None or taken + chunk <= most_mib:
                try:
                    pointer = self._cuda.allocate(chunk << 20)
                except CudaError as error:
                    if error.status != OUT_OF_MEMORY:
                        raise
                    refused = str(error)
                    break
                self._cuda.fill(pointer, _FIRST_WORD + len(self._held), chunk << 20)
                self._held.append((pointer, chunk << 20))
                taken += chunk
        if most_mib is not None and taken + _CHUNKS_MIB[-1] > most_mib:
            refused = None  # smaller pieces filled what a larger one could not
        return {"taken_mib": taken, "refused": refused, "memory": self.memory()}

    def give(self) -> None:
        """Give back everything taken."""
        while self._held:
            self._cuda.free(self._held.pop()[0])

    def rest(self) -> float:
        return 0.0

    def step(self) -> None:
        self._fma.check()
        if self._held:
            self._check_piece(self._steps % len(self._held))
        self._steps += 1

    def _check_piece(self, i: int) -> None:
        pointer, size = self._held[i]
        expected = struct.pack("<I", _FIRST_WORD + i) * (_SAMPLE // 4)
        for offset in (0, size - _SAMPLE):
            if self._cuda.download(ctypes.c_uint64(pointer.value + offset), _SAMPLE) != expected:
                raise CudaError(f"held memory changed: piece {i}, offset {offset}")

    def drain(self) -> None:
        self._cuda.synchronize()

    def memory(self) -> tuple[int, int]:
        return self._cuda.memory()

    def describe(self) -> dict[str, object]:
        return self._cuda.describe()
