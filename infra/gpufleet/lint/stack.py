"""The nodes of a stack's pools, as lint needs them: layout and driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpufleet.catalog.cuda import KnownDriver
from gpufleet.compiled import compile_file
from gpufleet.device_plugin import NodeLayout
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.lint.gather import operator_env
from gpufleet.lint.node import UNKNOWN_PRODUCT
from gpufleet.parts.taints import Taint
from gpufleet.stackfile.project import project


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
    fleet = compiled.fleet
    if fleet is None:
        raise ValueError(f"{path} has errors; see gpufleet plan")
    found: list[PoolNode] = []
    for one in fleet.pools:
        node = _node(one) if pool in (None, one.name) else None
        if node is not None:
            found.append(PoolNode(one.name, node, one.driver, one.taints, _env(fleet)))
    if not found:
        raise ValueError(f"{path} has no pool {pool}" if pool else f"{path}: the hardware of no pool is known")
    return found


def _node(pool: FleetPool) -> NodeLayout | None:
    gpus, model = pool.hardware.gpus, pool.hardware.model
    if gpus is None:
        return None
    product = (model.product if model else None) or UNKNOWN_PRODUCT
    capability = None
    if model and model.compute_capability:
        major, _, minor = model.compute_capability.partition(".")
        capability = (int(major), int(minor))
    each = tuple(profile for profile, count in (pool.layout or {}).items() for _ in range(count))
    mig = dict.fromkeys(range(gpus), each) if each else {}
    return NodeLayout(gpus, product, model.memory_mib if model else None, mig, capability)


def _env(fleet: Fleet) -> dict[str, str]:
    """The plugin's environment: variables of the operator, which override the file; none for the standalone plugin."""
    if fleet.release is None:
        return {}
    return {**operator_env(None), "MIG_STRATEGY": fleet.release.mig_strategy}
