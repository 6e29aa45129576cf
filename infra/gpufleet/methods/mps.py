"""MPS: processes of several pods run on a GPU at the same time."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from gpufleet.methods.base import GPU, MemoryBound, Replicas, method
from gpufleet.methods.replicated import Replicated

#: Where plugin and MPS control daemon meet on the host; the operator's default as well.
MPS_ROOT = "/run/nvidia/mps"


@method
class Mps(Replicated):
    """MPS: up to `replicas` processes run on a GPU at the same time, each with 1/replicas of memory and threads.

    The split is equal and enforced. The control daemon takes the GPU for itself: whoever uses it past MPS fails.
    """

    strategy: Literal["mps"] = Field(
        description="MPS: processes of several pods run on a GPU at the same time.", examples=["mps"]
    )
    replicas: Replicas = Field(description="How many pods share each GPU.", examples=[4])

    control_daemon: ClassVar[bool] = True

    def plugin_config(self) -> dict[str, Any]:
        return {"version": "v1", "flags": {"mpsRoot": MPS_ROOT}, "sharing": {"mps": self.replicated([GPU])}}

    def most_for_one(self, device_gib: float) -> MemoryBound:
        # The daemon of k8s-device-plugin sets a pinned memory limit of memory / replicas (its cmd/mps-control-daemon).
        why = f"The MPS daemon limits each of {self.replicas} clients to its part of the memory."
        return MemoryBound(device_gib / self.replicas, why, " or replicas")


def most_clients(compute_capability: str) -> int:
    """Clients per GPU: 48, or 16 below compute capability 7.5 (NVIDIA/k8s-device-plugin, MPS control daemon)."""
    major, _, minor = compute_capability.partition(".")
    return 48 if (int(major), int(minor or 0)) >= (7, 5) else 16
