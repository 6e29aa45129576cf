"""What a running node says about its GPUs, the pods that it waits for, and logins that wait for a person."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from gpufleet.catalog import reading


class NodeCondition(NamedTuple):
    """A condition of a node that means a GPU fault."""

    type: str
    fault: str  # the status that means the fault
    next: str  # what to do about it
    source: str
    as_of: str
    note: str | None = None


class Operand(NamedTuple):
    """A pod of the software that each GPU node runs."""

    id: str
    order: int  # those before it in the table come up before it
    containers: tuple[str, ...]
    daemon_sets: tuple[str, ...]
    checks: Mapping[str, str]  # init container -> the operand that it waits for, or proves
    source: str
    as_of: str
    note: str | None = None


class MigState(NamedTuple):
    """A value of the MIG manager's state label."""

    state: str
    done: bool
    failed: bool
    source: str
    as_of: str


class ExecLogin(NamedTuple):
    """How one login program of kubeconfigs is told to log in."""

    program: str
    option: str
    short: str
    waits: tuple[str, ...]  # ways that wait for a person
    others: tuple[str, ...]
    default: str
    source: str
    as_of: str


@cache
def node_conditions() -> Mapping[str, NodeCondition]:
    """Every condition by its type."""
    return MappingProxyType(
        {row["type"]: NodeCondition(**row) for row in reading.rows("node_health", "node_conditions")}
    )


@cache
def operands() -> Mapping[str, Operand]:
    """Every operand by id, in the order in which they come up."""
    return MappingProxyType(
        {
            row["id"]: Operand(
                **{
                    **row,
                    "order": order,
                    "containers": tuple(row["containers"]),
                    "daemon_sets": tuple(row["daemon_sets"]),
                    "checks": MappingProxyType(row["checks"]),
                }
            )
            for order, row in enumerate(reading.rows("node_health", "operands"))
        }
    )


@cache
def mig_states() -> Mapping[str, MigState]:
    """Every state of the MIG manager."""
    return MappingProxyType({row["state"]: MigState(**row) for row in reading.rows("node_health", "mig_states")})


@cache
def exec_logins() -> Mapping[str, ExecLogin]:
    """Every login program by name."""
    return MappingProxyType(
        {
            row["program"]: ExecLogin(**{**row, "waits": tuple(row["waits"]), "others": tuple(row["others"])})
            for row in reading.rows("node_health", "exec_logins")
        }
    )
