"""The nodes of a stack's pools, as lint needs them: layout and driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpufleet.compiled import compile_file
from gpufleet.device_plugin import NodeLayout
from gpufleet.lint.gather import operator_env
from gpufleet.lint.node import UNKNOWN_PRODUCT
from gpufleet.plan.facts import Facts, pool_facts
from gpufleet.plan.mig import layout, release_strategy
from gpufleet.plan.pool_driver import pool_driver
from gpufleet.plan.taints import Taint, pool_taints
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.pools import Pool
from gpufleet.stackfile.project import project
from gpufleet.stackfile.sharing import Mig
from gpufleet.stackfile.software import OperatorRoute
from gpufleet.teams.cuda import KnownDriver


@dataclass(frozen=True)
class PoolNode:
    """A node of a pool: its layout with the MIG instances that the stack cuts, what is known of its driver, its taints,
    and the environment that the stack gives the plugin there."""

    name: str
    node: NodeLayout
    driver: KnownDriver | None
    taints: tuple[Taint, ...]
    env: dict[str, str] = field(default_factory=dict)


def pools_of(stack: str | None, file: Path | None, pool: str | None) -> list[PoolNode]:
    """A node of every pool whose hardware the catalogue knows.

    Raises:
        ValueError: no such stack or pool, the stack file has errors, or nothing is known about its hardware.
    """
    try:
        path = file or project().find(stack or "")
        compiled = compile_file(path)
    except LookupError as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}") from None
    if compiled.stack is None:
        raise ValueError(f"{path} has errors; see gpufleet plan")
    found: list[PoolNode] = []
    for one in compiled.stack.pools:
        if pool is not None and one.name != pool:
            continue
        facts = pool_facts(one)
        node = _node(one, compiled.stack, facts)
        if node is not None:
            env = _env(compiled.stack)
            found.append(PoolNode(one.name, node, pool_driver(one, facts), pool_taints(one), env))
    if not found:
        raise ValueError(f"{path} has no pool {pool}" if pool else f"{path}: the hardware of no pool is known")
    return found


def _node(pool: Pool, stack: Stack, facts: Facts) -> NodeLayout | None:
    if facts.gpus is None:
        return None
    model, spec = facts.model, stack.sharing.get(pool.sharing or "")
    product = (model.product if model else None) or UNKNOWN_PRODUCT
    capability = None
    if model and model.compute_capability:
        major, _, minor = model.compute_capability.partition(".")
        capability = (int(major), int(minor))
    cut = (layout(spec, model) or {}) if isinstance(spec, Mig) else {}
    each = tuple(profile for profile, count in cut.items() for _ in range(count))
    mig = dict.fromkeys(range(facts.gpus), each) if each else {}
    return NodeLayout(facts.gpus, product, model.memory_mib if model else None, mig, capability)


def _env(stack: Stack) -> dict[str, str]:
    """The operator's DaemonSet has an environment that beats the file; the standalone plugin is given a file alone."""
    if not isinstance(stack.stack, OperatorRoute):
        return {}
    return {**operator_env(None), "MIG_STRATEGY": release_strategy(stack)}
