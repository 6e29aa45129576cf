"""The roles' plans as their tasks read them."""

from __future__ import annotations

from typing import Any

from gpufleet.hosts import driver as _driver
from gpufleet.hosts import fabric as _fabric
from gpufleet.hosts import health as _health
from gpufleet.hosts import mig as _mig
from gpufleet.hosts import toolkit as _toolkit
from gpufleet.hosts import work
from gpufleet.hosts.context import Context
from gpufleet.hosts.context import undo as _undo
from gpufleet.hosts.work import Request, Work, plain


class Plan(dict[str, Any]):
    """A plan in the form of the fact, with the items of work that it was made of."""

    def __init__(self, made: Work) -> None:
        super().__init__(plain(made))
        self.work = made


def driver(context: Context, **more: Any) -> Plan:
    return Plan(_driver.plan_driver(context, **more))


def fabric(context: Context) -> Plan:
    return Plan(_fabric.plan_fabric(context))


def toolkit(context: Context) -> Plan:
    return Plan(_toolkit.plan_toolkit(context))


def mig(context: Context) -> Plan:
    return Plan(_mig.plan_mig(context))


def health(context: Context) -> Plan:
    return Plan(_health.plan_health(context))


def describe(plan: Plan) -> list[str]:
    return work.describe(plan.work)


def undo(context: Context, plan: Plan) -> Any:
    return plain(_undo(context, plan.work))


def request(found: Request | None) -> dict[str, Any]:
    """A question to the repositories as their module gets it, {} for none."""
    return plain(found) if found else {}


def driver_want(context: Context) -> list[dict[str, Any]]:
    """What the driver asks the repositories for."""
    found: list[dict[str, Any]] = plain(_driver.wanted_packages(context))
    return found


def toolkit_want(context: Context) -> list[dict[str, Any]]:
    """What the toolkit asks the repositories for."""
    found: list[dict[str, Any]] = plain(_toolkit.wanted_packages(context))
    return found
