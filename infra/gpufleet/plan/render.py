"""The plan in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpufleet.findings.finding import Finding, Severity, printable, told
from gpufleet.findings.render import head, summary, text
from gpufleet.fleet.model import NodeRuntime
from gpufleet.plan.model import Plan, PoolPlan


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Left-aligned columns, two blanks between them."""
    lines = [list(head), *[list(r) for r in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    out = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    return [out[0], "  ".join("-" * w for w in widths), *out[1:]]


def _count(pool: PoolPlan) -> str:
    if pool.node_count is None:
        return "by selector"
    low, high = pool.node_count
    return str(low) if low == high else f"{low} to {high}"


def offers(pool: PoolPlan) -> str:
    """`nvidia.com/gpu: 8`, or why nothing is offered."""
    if pool.profile is None:
        return "nothing"
    if not pool.node.known:
        return "unknown: the catalogue does not know how many GPUs the size has"
    return ", ".join(f"{name}: {count}" for name, count in pool.node.resources.items())


def memory(by_resource: Mapping[str, float]) -> str:
    """`20 GiB`; where resources differ `mig-1g.10gb: 10 GiB, mig-3g.40gb: 40 GiB`."""
    if len(set(by_resource.values())) <= 1:
        return next((f"{gib:g} GiB" for gib in by_resource.values()), "-")
    return ", ".join(f"{name.removeprefix('nvidia.com/')}: {gib:g} GiB" for name, gib in by_resource.items())


def pool_table(plan: Plan) -> list[str]:
    """One line per pool: nodes, GPUs, profile, and what each node will offer."""
    rows = []
    for pool in plan.pools:
        gpus = "?" if pool.gpus_per_node is None else str(pool.gpus_per_node)
        rows.append(
            (
                pool.name,
                _count(pool),
                f"{gpus} x {pool.gpu or '?'}",
                pool.profile or "-",
                offers(pool),
                memory(pool.node.memory_gib_by_resource),
            )
        )
    return table(("pool", "nodes", "GPUs per node", "sharing", "each node offers", "memory per pod"), rows)


def _runtime(runtime: NodeRuntime) -> str:
    way = {"cdi": "GPUs as CDI devices", "envvar": "GPUs by environment variable"}[runtime.strategy]
    named = f"the runtime class {runtime.runtime_class}" if runtime.runtime_class else "no runtime class"
    return f"{way}, default {runtime.default}, pods name {named}"


def _details(pool: PoolPlan) -> list[str]:
    lines = [f"{pool.name}:"]
    if pool.resource:
        lines += [f"  {word:<11} {text}" for word, text in pool.resource.lines()]
    lines.append(f"  driver      {pool.driver}")
    if pool.runtime:
        lines.append(f"  runtime     {_runtime(pool.runtime)}")
    if pool.nodes:
        lines.append(f"  nodes       {', '.join(pool.nodes)}")
    if pool.taints:
        lines.append(f"  taints      {', '.join(pool.taints)}")
    labels = [f"{k}={v}" for k, v in pool.node.labels.items()]
    lines += [f"  {'labels' if i == 0 else '':<11} {label}" for i, label in enumerate(labels)]
    if pool.autoscaling:
        a = pool.autoscaling
        pods = "1 pod" if a.pods_per_node == 1 else f"{a.pods_per_node} pods"
        nodes = f"{a.min_nodes} to {a.max_nodes} nodes"
        lines.append(f"  autoscaler  {nodes}, {pods} per node, {a.pods_at_min} to {a.pods_at_max} pods")
        if a.nodes_started > a.nodes_needed_for_one_nodeful:
            lines.append(
                f"              from zero, {a.pods_per_node} pods may start {a.nodes_started} nodes where"
                f" {a.nodes_needed_for_one_nodeful} would do"
            )
    return lines


def render(name: str, plan: Plan | None, found: Sequence[Finding]) -> str:
    """Diagnostics, then the plan where there is one, then a line that counts."""
    blocks: list[str] = []
    shown = told(found)
    counted = [d for d in found if d.severity is not Severity.NOTE]
    blocks += [text(d) for d in shown if d.acknowledged is None]
    blocks += [printable(f"{head(d)}: acknowledged, {d.acknowledged}") for d in shown if d.acknowledged is not None]
    if plan is None:
        return "\n\n".join([*blocks, f"{name}: {summary(counted)}. Nothing was planned."])
    title = f"stack {name}: {plan.cluster.title()}, {plan.route} route"
    blocks.append("\n".join([title, "", *pool_table(plan)]))
    made = [f"  {word:<11} {text}" for word, text in plan.cluster.lines()]
    blocks += ["\n".join([f"cluster {plan.cluster.name}:", *made])] if made else []
    blocks += ["\n".join(_details(pool)) for pool in plan.pools]
    software = [line for artifact in plan.software for line in artifact.lines()]
    teams = [line for team in plan.teams for line in team.lines()]
    blocks += ["\n".join(part) for part in (software, teams) if part]
    if plan.images:
        unknown = [f"  unknown: {words}" for words in plan.images_unknown]
        blocks.append("\n".join(["images:", *[f"  {image}" for image in plan.images], *unknown]))
    blocks.append(f"{name}: {summary(counted)}.")
    return "\n\n".join(blocks)
