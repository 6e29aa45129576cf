"""Rules about the raw values of the operator's chart: keys, types, and what they do to the plan's promise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gpufleet.catalog import component
from gpufleet.catalog.charts import GPU_OPERATOR, ChartTable, chart_table, chart_tables
from gpufleet.catalog.operator_switches import idle, options, promises
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.path import join_path
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet
from gpufleet.parts.chart_values import Fault, Wrong, compare, effective, get_value
from gpufleet.routes.operator import DERIVED_PATHS
from gpufleet.rules.operator import RENDERED_EMPTY
from gpufleet.stackfile.software import OperatorRoute

GF250 = rule(
    "GF250", Severity.ERROR,
    title="The chart has no value {key}; it does nothing.",
    reason="Helm passes every key to the chart, and the chart reads those that it knows. A misspelt one is not missed.",
    because="It is not among the values of the chart {chart}. Helm passes it on, and no template reads it.",
    remedy="Write the key that is meant, or remove it.",
    do="{remedy_text}",
    source="GPUO (values.yaml); HELM-DOC (values)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {driver: {rdma: {enable: true}}}}
    """,
    fix=("enable: true", "enabled: true"),
)

GF251 = rule(
    "GF251", Severity.ERROR,
    title="{expected} is expected here.",
    reason="The chart puts the value into the ClusterPolicy, or reads keys below it. Another shape stops helm or the "
    "API server, or is read as something else: templates take any text for true, `\"false\"` too.",
    remedy="Write it in the shape that the chart expects.",
    do="Write e.g. `{example}`.",
    source="GPUO (values.yaml, crds)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {driver: true}}
    """,
    fix=("driver: true", "driver: {rdma: {enabled: true}}"),
)

GF252 = rule(
    "GF252", Severity.ERROR,
    title="This value takes away what the plan promises.",
    reason="The plan says what the nodes offer; with this value they would not.",
    remedy="Remove it, or write {allowed_words}.",
    source="GPUO (templates, state_manager.go)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {gpuCluster: {deployCR: true}}}
    """,
    fix=("deployCR: true", "deployCR: false"),
)

GF253 = rule(
    "GF253", Severity.NOTE,
    title="The values are not compared with the keys of chart {value}: no table has this release.",
    reason="Keys come and go between releases, so those of another one would not do.",
    remedy="Compare them with the values.yaml of the release, or use {known}.",
    source="GPUO (values.yaml)",
    wrong="gpufleet:stack: {kind: operator, version: v25.10.1, values: {driver: {rdma: {enabled: true}}}}",
    right="gpufleet:stack: {kind: operator, version: v26.7.0, values: {driver: {rdma: {enabled: true}}}}",
)

GF254 = rule(
    "GF254", Severity.WARNING,
    title="{key} has no effect in this stack.",
    reason="The part that it is about does not run.",
    remedy="Remove it.",
    source="GPUO (state_manager.go)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {vgpuManager: {enabled: true}}}
    """,
    fix=("enabled: true", "enabled: false"),
)

GF255 = rule(
    "GF255", Severity.ERROR,
    title="The plan decides {value}.",
    reason="Sharing and MIG of the pools decide what plugin and feature discovery read. A variable or option beside it "
    "would contradict it, or the operator would write over it.",
    remedy="Remove it, and change the sharing of the pools.",
    source="GPUO (object_controls.go); PLUGIN",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack:
          kind: operator
          values: {devicePlugin: {env: [{name: MIG_STRATEGY, value: mixed}]}}
    """,
    fix=("name: MIG_STRATEGY, value: mixed", 'name: PASS_DEVICE_SPECS, value: "true"'),
)


@check("stack", GF250, GF251, GF253)
def known_values(fleet: Fleet) -> Iterator[Finding]:
    """Keys and types, by the table of the chart's release.

    Without one, what has been a map in every release still has to be one: the plan writes below it.
    """
    route = fleet.stack.stack
    if not isinstance(route, OperatorRoute) or not route.values:
        return
    release = _release(route)
    table = chart_table(GPU_OPERATOR, release)
    if table is None:
        known = [t.release for t in chart_tables(GPU_OPERATOR)]
        yield GF253.at("stack.version", value=release, known=" or ".join(known))
    for fault in compare(route.values, table or chart_tables(GPU_OPERATOR)[0]):
        if (table is not None or _in_every_release(fault)) and not _is_told(fault):
            yield _finding(fault, release)


def _release(route: OperatorRoute) -> str:
    return route.version or component(GPU_OPERATOR).version


def _in_every_release(fault: Fault) -> bool:
    """Parts of the chart, and lists of variables, have had their shape all along."""
    return fault.section or (fault.wrong is Wrong.SHAPE and "env" in fault.path)


def _is_told(fault: Fault) -> bool:
    """Whether GF220 (derived values) or GF224 (empty texts) speaks of the place already."""
    empty = fault.value == "" and fault.path == RENDERED_EMPTY
    return empty or _derived(".".join(map(str, fault.path)))


def _derived(dotted: str) -> bool:
    return any(f"{dotted}.".startswith(f"{path}.") for path in DERIVED_PATHS)


def _finding(fault: Fault, release: str) -> Finding:
    where = join_path(("stack", "values", *fault.path))
    if fault.wrong is not Wrong.UNKNOWN:
        expected = fault.expected[:1].upper() + fault.expected[1:]
        return GF251.at(where, value=fault.value, allowed=fault.allowed, expected=expected, example=fault.example)
    key = str(fault.path[-1])
    near = f"Write `{fault.closest}`, or remove the key." if fault.closest else "Remove the key."
    made = GF250.at(where, value=key, key=key, chart=f"{GPU_OPERATOR} {release}", remedy_text=near)
    return replace(made, allowed=fault.allowed, closest=fault.closest)


@check("stack", GF252, GF254, GF255)
def promise(fleet: Fleet) -> Iterator[Finding]:
    """What the values do to the parts that the plan counts on."""
    route = fleet.stack.stack
    if not isinstance(route, OperatorRoute) or fleet.release is None:
        return
    table = chart_table(GPU_OPERATOR, _release(route)) or chart_tables(GPU_OPERATOR)[0]
    yield from _taken_away(route.values, table)
    yield from _no_gpu_label(route.values, table)
    for row in idle():
        stated = get_value(route.values, row.value)
        if stated is None or not table.has(row.value) or (row.of is not None and stated is not row.of):
            continue
        if row.needs is None or not _on(fleet, route.values, row.needs, table):
            yield GF254.at(f"stack.values.{row.value}", value=stated, key=row.value, because=row.because)
    for listed in options():
        for i, name in _names(get_value(route.values, listed.list)):
            if name in listed.names:
                yield GF255.at(f"stack.values.{listed.list}[{i}]", value=name)


def _taken_away(values: dict[str, Any], table: ChartTable) -> Iterator[Finding]:
    for row in promises():
        stated = get_value(values, row.value)
        if stated is None or isinstance(stated, dict | list) or stated in row.only:
            continue
        if table.has(row.value) and (row.where is None or effective(values, row.where, table) is True):
            words = " or ".join(_word(w) for w in row.only)
            yield GF252.at(f"stack.values.{row.value}", value=stated, because=f"{row.because}.", allowed_words=words)
    for i, made in enumerate(_entries(values.get("extraObjects"))):
        if isinstance(made, dict) and made.get("kind") in ("ClusterPolicy", "GPUCluster"):
            because = "The cluster takes one ClusterPolicy, and the chart makes it from the stack's values."
            words = "objects of other kinds"
            where = f"stack.values.extraObjects[{i}]"
            yield GF252.at(where, value=made["kind"], because=because, allowed_words=words)


def _no_gpu_label(values: dict[str, Any], table: ChartTable) -> Iterator[Finding]:
    """The operator takes a node for a GPU node by a label that feature discovery makes of PCI class and vendor."""
    path = "node-feature-discovery.worker.config.sources.pci"
    if effective(values, "nfd.enabled", table) is not True:
        return
    classes, fields = (get_value(values, f"{path}.{key}") for key in ("deviceClassWhitelist", "deviceLabelFields"))
    if isinstance(classes, list) and not any(str(one).startswith("03") for one in classes):
        because = "Without the PCI classes 0300 and 0302 no GPU is seen, and the operator takes no node for a GPU node."
        where = f"stack.values.{path}.deviceClassWhitelist"
        yield GF252.at(where, value=classes, because=because, allowed_words='["0300", "0302"]')
    if isinstance(fields, list) and set(map(str, fields)) not in ({"vendor"}, {"class", "vendor"}):
        because = "The operator knows GPU nodes by the labels pci-10de.present and pci-0302_10de.present alone."
        where = f"stack.values.{path}.deviceLabelFields"
        yield GF252.at(where, value=fields, because=because, allowed_words="[vendor]")


def _word(word: object) -> str:
    return str(word).lower() if isinstance(word, bool) else str(word)


def _on(fleet: Fleet, values: dict[str, Any], path: str, table: ChartTable) -> bool:
    """Whether a switch is on: as the plan sets it, as the values state it, or by the chart's default."""
    if path == "driver.enabled" and fleet.release is not None:
        return fleet.release.driver
    return effective(values, path, table) is True


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(listed: Any) -> Iterator[tuple[int, str]]:
    """Names of variables, or of options without their values, with their places."""
    for i, entry in enumerate(_entries(listed)):
        name = entry.get("name") if isinstance(entry, dict) else entry
        if isinstance(name, str):
            yield i, name.partition("=")[0]
