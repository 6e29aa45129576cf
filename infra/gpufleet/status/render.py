"""Prints the status as text."""

from __future__ import annotations

from gpufleet.plan.render import table
from gpufleet.status.compare import Status
from gpufleet.status.node import NodeStatus


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{k}: {v}" for k, v in counts.items()) or "nothing"


def _row(node: NodeStatus) -> tuple[str, ...]:
    return (
        node.node,
        node.pool,
        _counts(node.declared),
        _counts(node.observed),
        node.config or "-",
        "agrees" if node.agrees else "DIFFERS",
    )


def render(status: Status) -> str:
    """A table of nodes, the causes and notes of each, and the result in one line."""
    lines = table(("node", "pool", "declared", "observed", "configuration", ""), [_row(n) for n in status.nodes])
    for node in status.nodes:
        lines += [f"{node.node}: {text}" for text in (*node.causes, *node.notes)]
    lines += list(status.causes)
    right = sum(n.agrees for n in status.nodes)
    verdict = "agrees with" if status.agrees else "DIFFERS from"
    lines.append(f"{status.stack}: the cluster {verdict} the stack file ({right} of {len(status.nodes)} nodes agree).")
    return "\n".join(lines)
