"""The few calls of the CUDA driver API that the built-in backend needs, through ctypes.

Only ``libcuda.so.1`` is wanted, which the container toolkit puts into every GPU container. ``GPUFLEET_LIBCUDA``
names another library (the tests' stand-in).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

_COMPUTE_MAJOR, _COMPUTE_MINOR, _MULTIPROCESSORS = 75, 76, 16  # CUdevice_attribute
_JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES = 5, 6  # CUjit_option


OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


class CudaError(RuntimeError):
    """A driver call failed; the text names the call and the driver's own words. ``status``: its CUresult, if any."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class Cuda:
    """Device 0 of this process, with its primary context current in the calling thread.

    Raises CudaError where there is no driver library, no GPU, or a call fails.
    """

    def __init__(self) -> None:
        name = os.environ.get("GPUFLEET_LIBCUDA", "libcuda.so.1")
        try:
            self._lib = ctypes.CDLL(name)
        except OSError as error:
            raise CudaError(f"no CUDA driver library: {error}") from None
        self._call("cuInit", ctypes.c_uint(0))
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise CudaError("the driver sees no GPU")
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(0))
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._lib, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._lib.cuGetErrorString(status, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'unknown error').decode()} ({status})", status)

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(which), self._device)
        return value.value

    def describe(self) -> dict[str, object]:
        """Name, memory (MiB), compute capability, multiprocessors, and the driver's CUDA version."""
        name = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", name, ctypes.c_int(len(name)), self._device)
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        return {
            "gpu": name.value.decode(),
            "memory_mib": self.memory()[1] >> 20,
            "compute_capability": f"{self._attribute(_COMPUTE_MAJOR)}.{self._attribute(_COMPUTE_MINOR)}",
            "multiprocessors": self.multiprocessors(),
            "driver_cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
        }

    def multiprocessors(self) -> int:
        return self._attribute(_MULTIPROCESSORS)

    def memory(self) -> tuple[int, int]:
        """Free and total bytes of the device, as this process is shown them."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def load(self, ptx: str) -> ctypes.c_void_p:
        """Compile PTX text for this GPU. Raises CudaError with the compiler's log."""
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(_JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        module = ctypes.c_void_p()
        try:
            text = ptx.encode() + b"\0"
            self._call("cuModuleLoadDataEx", ctypes.byref(module), text, ctypes.c_uint(2), options, values)
        except CudaError as error:
            raise CudaError(f"{error} {log.value.decode(errors='replace')}".strip()) from None
        return module

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def allocate(self, size: int) -> ctypes.c_uint64:
        """Device memory of ``size`` bytes."""
        pointer = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def free(self, pointer: ctypes.c_uint64) -> None:
        self._call("cuMemFree_v2", pointer)

    def fill(self, pointer: ctypes.c_uint64, word: int, size: int) -> None:
        """Write a 32-bit word over ``size`` bytes."""
        self._call("cuMemsetD32_v2", pointer, ctypes.c_uint(word), ctypes.c_size_t(size // 4))

    def upload(self, pointer: ctypes.c_uint64, data: bytes) -> None:
        self._call("cuMemcpyHtoD_v2", pointer, data, ctypes.c_size_t(len(data)))

    def download(self, pointer: ctypes.c_uint64, size: int) -> bytes:
        """``size`` bytes of the device; waits for all work of the default stream."""
        data = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", data, pointer, ctypes.c_size_t(size))
        return data.raw

    def launcher(
        self, function: ctypes.c_void_p, grid: int, block: int, arguments: Sequence[ctypes.c_uint64 | ctypes.c_uint32]
    ) -> Launch:
        return Launch(self, function, grid, block, arguments)

    def graph(self, launches: Sequence[Launch]) -> GraphLaunch:
        """The launches, one after the other, as one CUDA graph."""
        return GraphLaunch(self, launches)

    def event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(2))  # 2: no timing
        return event

    def record(self, event: ctypes.c_void_p) -> None:
        self._call("cuEventRecord", event, None)

    def wait(self, event: ctypes.c_void_p) -> None:
        self._call("cuEventSynchronize", event)

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")


class _KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v1."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        *((f"{what}_{axis}", ctypes.c_uint) for what in ("grid", "block") for axis in "xyz"),
        ("shared", ctypes.c_uint),
        ("arguments", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
    )


class Launch:
    """One kernel with its arguments, ready to be queued many times at little host cost."""

    def __init__(
        self,
        cuda: Cuda,
        function: ctypes.c_void_p,
        grid: int,
        block: int,
        arguments: Sequence[ctypes.c_uint64 | ctypes.c_uint32],
    ) -> None:
        self._cuda = cuda
        self._keep = list(arguments)
        pointers = (ctypes.c_void_p * len(self._keep))(*(ctypes.addressof(a) for a in self._keep))
        self.node = _KernelNode(function, grid, 1, 1, block, 1, 1, 0, ctypes.cast(pointers, ctypes.c_void_p), None)
        one, zero = ctypes.c_uint(1), ctypes.c_uint(0)
        shape = (ctypes.c_uint(grid), one, one, ctypes.c_uint(block), one, one)
        self._arguments = (function, *shape, zero, None, pointers, None)

    def __call__(self) -> None:
        self._cuda._call("cuLaunchKernel", *self._arguments)


class GraphLaunch:
    """A chain of kernels that is queued with one call."""

    def __init__(self, cuda: Cuda, launches: Sequence[Launch]) -> None:
        self._cuda = cuda
        self._keep = list(launches)
        graph, self._exec, before = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        cuda._call("cuGraphCreate", ctypes.byref(graph), ctypes.c_uint(0))
        for number, launch in enumerate(launches):
            node, waits = ctypes.c_void_p(), ctypes.c_size_t(1 if number else 0)
            parameters = ctypes.byref(launch.node)
            cuda._call("cuGraphAddKernelNode", ctypes.byref(node), graph, ctypes.byref(before), waits, parameters)
            before = node
        cuda._call("cuGraphInstantiateWithFlags", ctypes.byref(self._exec), graph, ctypes.c_ulonglong(0))

    def __call__(self) -> None:
        self._cuda._call("cuGraphLaunch", self._exec, None)
