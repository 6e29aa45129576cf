"""The nodes of a stack's pools, as lint needs them: layout and driver."""

from __future__ import annotations

from pathlib import Path

from infra.cli.stack_option import STACKS, project_root
from infra.lint.node import UNKNOWN_PRODUCT
from infra.plan.cuda import KnownDriver
from infra.plan.device_plugin import NodeLayout
from infra.plan.facts import pool_facts
from infra.plan.pool_driver import pool_driver
from infra.plan.taints import Taint, pool_taints
from infra.stackfile import compile_file

Pools = list[tuple[str, NodeLayout, KnownDriver | None, tuple[Taint, ...]]]


def pools_of(stack: str | None, file: Path | None, pool: str | None) -> Pools:
    """(name, node, what is known of its driver, taints) of every pool whose hardware the catalogue knows.

    Raises:
        ValueError: no such stack or pool, the stack file has errors, or nothing is known about its hardware.
    """
    path = file or project_root() / STACKS / f"Pulumi.{stack}.yaml"
    try:
        compiled = compile_file(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    if compiled.stack is None:
        raise ValueError(f"{path} has errors; see gpufleet plan")
    found: Pools = []
    for one in compiled.stack.pools:
        if pool is not None and one.name != pool:
            continue
        facts = pool_facts(one)
        if facts.gpus is None:
            continue
        model = facts.model
        product = (model.product if model else None) or UNKNOWN_PRODUCT
        memory = model.memory_mib if model else None
        capability = None
        if model and model.compute_capability:
            major, _, minor = model.compute_capability.partition(".")
            capability = (int(major), int(minor))
        node = NodeLayout(facts.gpus, product, memory, compute_capability=capability)
        found.append((one.name, node, pool_driver(one, facts), pool_taints(one)))
    if not found:
        raise ValueError(f"{path} has no pool {pool}" if pool else f"{path}: the hardware of no pool is known")
    return found
