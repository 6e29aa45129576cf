"""Methods of sharing a GPU, one module each; importing this package makes them known."""

from gpufleet.methods import hami, mig, mps, time_slicing, whole
from gpufleet.methods.base import GPU, MemoryBound, Method, Shared, method

__all__ = ["GPU", "MemoryBound", "Method", "Shared", "hami", "method", "mig", "mps", "time_slicing", "whole"]
