"""Routes: which GPU software is installed, and with what. One module each."""

from __future__ import annotations

from typing import assert_never

from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.methods.base import Method
from gpufleet.parts.artifact import Artifact
from gpufleet.routes.operator import operator_plan
from gpufleet.routes.plugin import plugin_plan
from gpufleet.stackfile.software import OperatorRoute, PluginRoute


def software(fleet: Fleet) -> tuple[Artifact, ...]:
    """Everything that is installed, in the order of installation: the route, then what methods bring themselves.

    The route comes first: it brings the runtime class, and under the operator the driver.
    """
    route = fleet.stack.stack
    match route:
        case PluginRoute():
            first: Artifact = plugin_plan(fleet, route)
        case OperatorRoute():
            first = operator_plan(fleet, route)
        case _:
            assert_never(route)
    by_method: dict[type[Method], list[FleetPool]] = {}
    for pool in fleet.served:
        by_method.setdefault(type(pool.method), []).append(pool)
    own = (method.artifact(fleet, pools) for method, pools in by_method.items())
    return (first, *(artifact for artifact in own if artifact is not None))
