"""How a GPU gets into a container: one decision per operator release, one per pool. Table: container_runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpufleet.catalog import component, distribution
from gpufleet.catalog.container_runtime import container_runtime, operator_cdi
from gpufleet.fleet.model import Cdi, FleetPool, NodeRuntime, Release
from gpufleet.parts.chart_values import get_value
from gpufleet.places.base import Place
from gpufleet.stackfile.pool import Pool
from gpufleet.stackfile.software import OperatorRoute

NVIDIA_RUNTIME_CLASS = "nvidia"
#: The handler of a container runtime that nobody changed.
PLAIN = "runc"


def toolkit_of(pool: Pool, place: Place[Any, Any]) -> str:
    """Who brings NVIDIA's container toolkit to the nodes of a pool: operator, image, or host."""
    if pool.driver in place.with_toolkit:
        return "image"
    return "operator" if pool.driver == "operator" else "host"


def release_cdi(route: OperatorRoute, toolkit: bool, pools: Sequence[FleetPool]) -> Cdi:
    """Whether a release uses CDI; `toolkit` is whether it installs the container toolkit.

    A plugin that hands out GPUs by environment variable cannot work with the operator's toolkit in CDI mode, which
    knows only the device `all` (Project-HAMi/HAMi#1106), so CDI is off there unless the stack file says otherwise.
    """
    known = operator_cdi(route.version or component("gpu-operator").version)
    stated = get_value(route.values, "cdi.enabled")
    by_variable = toolkit and any(pool.served and pool.method.own_plugin for pool in pools)
    enabled = stated if isinstance(stated, bool) else known.cdi and not by_variable
    return Cdi(
        enabled=enabled,
        devices=enabled and known.cdi_devices,
        nri=get_value(route.values, "cdi.nriPluginEnabled") is True,
        known=known,
    )


def node_runtime(pool: FleetPool, release: Release | None, distribution_name: str) -> NodeRuntime | None:
    """How a GPU gets into a container on the nodes of a pool; None where it does not.

    k3s and RKE2 write containerd's file themselves, so the operator's toolkit cannot change the default there.
    """
    if not pool.served:
        return None
    plugin = "own" if pool.method.own_plugin else "standalone" if release is None else "operator"
    toolkit = toolkit_of(pool.spec, pool.place)
    cdi = release.cdi if release else None
    row = container_runtime(plugin, toolkit, bool(cdi and cdi.devices), bool(cdi and cdi.nri))
    if row is None:
        return None
    known = distribution(distribution_name)
    keeps = row.default == "own" or (known is not None and known.detects_runtime)
    default = pool.place.default_runtime(pool.spec) if keeps else row.default
    needed = row.pods == "unless-default" and default == PLAIN
    return NodeRuntime(toolkit, row.strategy, row.hook, default, NVIDIA_RUNTIME_CLASS if needed else None)

