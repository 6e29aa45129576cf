"""The plan in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.render import summary, text
from gpufleet.plan.compile import Plan
from gpufleet.plan.pool_plan import PoolPlan

OWNERS = {
    "aks": "AKS installs it",
    "operator": "the GPU Operator installs it",
    "host": "on the host already (Ansible roles)",
    "managed": "AKS manages it",
    "none": "nobody installs it",
}


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


def pool_table(plan: Plan) -> list[str]:
    """One line per pool: nodes, GPUs, profile, and what each node will offer."""
    rows = []
    for pool in plan.pools:
        gpus = "?" if pool.gpus_per_node is None else str(pool.gpus_per_node)
        memory = pool.node.memory_per_pod_gib
        rows.append(
            (
                pool.name,
                _count(pool),
                f"{gpus} x {pool.gpu or '?'}",
                pool.profile or "-",
                offers(pool),
                "-" if memory is None else f"{memory:g} GiB",
            )
        )
    return table(("pool", "nodes", "GPUs per node", "sharing", "each node offers", "memory per pod"), rows)


def _details(pool: PoolPlan) -> list[str]:
    lines = [f"{pool.name}:"]
    if pool.azure_name:
        lines.append(f"  in Azure    {pool.azure_name} (gpuProfile.driver: {pool.aks_driver})")
    lines.append(f"  driver      {OWNERS[pool.driver_owner]}")
    if pool.nodes:
        lines.append(f"  nodes       {', '.join(pool.nodes)}")
    if pool.taints:
        lines.append(f"  taints      {', '.join(pool.taints)}")
    labels = [f"{k}={v}" for k, v in pool.node.labels.items()]
    lines += [f"  {'labels' if i == 0 else '':<11} {label}" for i, label in enumerate(labels)]
    if pool.autoscaling:
        a = pool.autoscaling
        lines.append(
            f"  autoscaler  {a.min_nodes} to {a.max_nodes} nodes, {a.pods_per_node} pods per node,"
            f" {a.pods_at_min} to {a.pods_at_max} pods"
        )
        if a.nodes_started > a.nodes_needed_for_one_nodeful:
            lines.append(
                f"              from zero, {a.pods_per_node} pods may start {a.nodes_started} nodes where"
                f" {a.nodes_needed_for_one_nodeful} would do"
            )
    return lines


def _software(plan: Plan) -> list[str]:
    lines: list[str] = []
    if plan.plugin:
        lines.append(f"device plugin, namespace {plan.plugin.namespace}:")
        for d in plan.plugin.daemon_sets:
            tolerated = ", ".join(
                f"{t['key']}{'=' + t['value'] if t.get('value') else ''}:{t['effect']}" for t in d.tolerations
            )
            lines += [
                f"  DaemonSet {d.name} on pools {', '.join(d.pools)}",
                f"    configuration {d.config_map.name}, tolerates {tolerated or 'nothing'}"
                + (f", runtime class {d.runtime_class}" if d.runtime_class else ""),
            ]
    if plan.operator:
        o = plan.operator
        driver, toolkit = o.values["driver"]["enabled"], o.values["toolkit"]["enabled"]
        lines += [
            f"GPU Operator {o.version}, namespace {o.namespace}, release {o.release}:",
            f"  driver {'on' if driver else 'off'}, toolkit {'on' if toolkit else 'off'},"
            f" runtime class {o.values['operator']['runtimeClass']}",
            f"  sharing {o.config_map.name}, keys {', '.join(o.config_map.data)}, default {o.default_profile}",
        ]
    return lines


def _teams(plan: Plan) -> list[str]:
    lines = []
    for team in plan.teams:
        quota = ", ".join(f"{k}: {v}" for k, v in team.quota.items()) or "none"
        lines.append(f"team {team.name}, namespace {team.namespace}, quota {quota}")
        for pool in team.pools:
            needs = ", ".join(
                f"{t['key']}{'=' + t['value'] if t.get('value') else ''}:{t['effect']}" for t in pool.tolerations
            )
            selector = ", ".join(f"{k}={v}" for k, v in pool.node_selector.items())
            lines.append(
                f"  on {pool.pool}: ask for {' or '.join(pool.resources)}: 1, nodeSelector {selector},"
                f" tolerate {needs or 'nothing'}"
                + (f", runtimeClassName {pool.runtime_class}" if pool.runtime_class else "")
            )
    return lines


def render(name: str, plan: Plan | None, found: Sequence[Finding]) -> str:
    """Diagnostics, then the plan where there is one, then a line that counts."""
    blocks: list[str] = []
    loud = [d for d in found if d.acknowledged is None]
    blocks += [text(d) for d in loud]
    for d in found:
        if d.acknowledged is not None:
            blocks.append(f"{d.severity.value} {d.code} {d.path}: acknowledged, {d.acknowledged}")
    if plan is None:
        return "\n\n".join([*blocks, f"{name}: {summary(loud)}. Nothing was planned."])
    kind = plan.cluster["kind"]
    where = f"AKS cluster {plan.cluster['name']}" if kind == "aks" else f"existing cluster {plan.cluster['name']}"
    blocks.append("\n".join([f"stack {name}: {where}, {plan.route} route", "", *pool_table(plan)]))
    blocks += ["\n".join(_details(pool)) for pool in plan.pools]
    for part in (_software(plan), _teams(plan)):
        if part:
            blocks.append("\n".join(part))
    if plan.images:
        unknown = [f"  unknown: {words}" for words in plan.images_unknown]
        blocks.append("\n".join(["images:", *[f"  {image}" for image in plan.images], *unknown]))
    loud = [d for d in loud if d.severity is not Severity.NOTE]
    blocks.append(f"{name}: {summary(loud)}.")
    return "\n\n".join(blocks)
