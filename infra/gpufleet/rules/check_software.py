"""Plugin and operator: raw values that the plan derives, and versions whose behaviour the plan does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpufleet.catalog import component
from gpufleet.findings.credentials import credentials
from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.chart_values import get_value
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.names import UNSHARED
from gpufleet.routes.operator import DERIVED_PATHS
from gpufleet.stackfile.software import OperatorRoute, PluginRoute
from gpufleet.stackfile.source import PathParts, join_path

#: The chart renders this one as it is; an empty text makes the ClusterPolicy invalid (case NV-10).
_RENDERED_EMPTY: PathParts = ("validator", "plugin")


def check_operator(fleet: Fleet) -> Iterator[Finding]:
    """Raw values of the chart, and its version."""
    route = fleet.stack.stack
    if not isinstance(route, OperatorRoute):
        return
    for path in DERIVED_PATHS:
        if (value := get_value(route.values, path)) is not None:
            yield finding("GF220", f"stack.values.{path}", value=value)
    for parts, value in _leaves(route.values):
        if value is None or (value == "" and parts == _RENDERED_EMPTY):
            yield finding("GF224", join_path(("stack", "values", *parts)), value=value)
    for parts in credentials(route.values, ("stack", "values")):
        yield finding("GF226", join_path(parts))
    known = component("gpu-operator").version
    if route.version and route.version != known:
        yield finding("GF221", "stack.version", value=route.version, known=known)


def _leaves(values: Any, path: PathParts = ()) -> Iterator[tuple[PathParts, Any]]:
    """Every scalar of raw values with its place."""
    if isinstance(values, dict | list):
        for key, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from _leaves(value, (*path, key))
    else:
        yield path, values


def check_plugin(fleet: Fleet) -> Iterator[Finding]:
    """Versions whose behaviour the prediction does not describe, and runtimes that one DaemonSet cannot serve."""
    route = fleet.stack.stack
    if not isinstance(route, PluginRoute):
        return
    known = component("k8s-device-plugin").version
    if route.version and route.version != known:
        yield finding("GF305", "stack.version", value=route.version, known=known)
    by_profile: dict[str, list[FleetPool]] = {}
    for pool in fleet.served:
        by_profile.setdefault(pool.spec.sharing or UNSHARED, []).append(pool)
    for name, pools in by_profile.items():
        if len({pool.runtime_class for pool in pools}) > 1:
            yield finding("GF306", f"{pools[0].path}.nvidiaDefaultRuntime", value=name)
