"""Rules about the GPU Operator's version and its raw Helm values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpufleet.catalog import component
from gpufleet.findings.credentials import credentials
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.path import PathParts, join_path
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet
from gpufleet.parts.chart_values import get_value
from gpufleet.routes.operator import DERIVED_PATHS
from gpufleet.stackfile.software import OperatorRoute

GF220 = rule(
    "GF220", Severity.ERROR,
    title="This Helm value is derived from the stack file.",
    reason="Driver, toolkit, runtime class, sharing and tolerations must agree with the pools; a raw value could "
    "contradict them.",
    remedy="Remove it, and change the pool, the sharing profile or the taint that it follows from.",
    source="GPUO",
    wrong="gpufleet:stack: {kind: operator, values: {driver: {enabled: false}}}",
    right="gpufleet:stack: {kind: operator, values: {driver: {rdma: {enabled: true}}}}",
)

GF221 = rule(
    "GF221", Severity.WARNING,
    title="Operator {value} is not the version that gpufleet's rules describe ({known}).",
    reason="Values, defaults and supported systems differ between releases.",
    remedy="Leave `version` out, or check the release notes and acknowledge this.",
    source="GPUO",
    wrong="gpufleet:stack: {kind: operator, version: v26.3.3}",
    right="gpufleet:stack: {kind: operator, version: v26.7.0}",
)

GF224 = rule(
    "GF224", Severity.ERROR,
    title="The value {value} does nothing here.",
    reason="Null never reaches the chart, and an empty text that the chart renders makes the ClusterPolicy invalid "
    "(NVIDIA/gpu-operator#1745).",
    remedy="Remove the key, or write the value that is meant.",
    source="NVIDIA/gpu-operator#1745; NVIDIA/gpu-operator#1993",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {toolkit: {installDir: null}}}
    """,
    fix=("installDir: null", "installDir: /opt/nvidia"),
)

GF226 = rule(
    "GF226", Severity.ERROR,
    title="A credential stands in the stack file in clear.",
    reason="A stack file is reviewed and committed, and its values appear in plans.",
    remedy="Put it into a Kubernetes Secret of the operator's namespace, and name the Secret in the values.",
    source="PULUMI-DOC (secrets); K8S-DOC (secrets)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {driver: {env: [{name: NGC_API_KEY, value: abc}]}}}
    """,
    fix=("env: [{name: NGC_API_KEY, value: abc}]", "licensingConfig: {secretName: licence}"),
)


#: The chart renders this one as it is; an empty text makes the ClusterPolicy invalid (case NV-10).
RENDERED_EMPTY: PathParts = ("validator", "plugin")


@check("stack", GF220, GF221, GF224, GF226)
def release(fleet: Fleet) -> Iterator[Finding]:
    """Raw values of the chart, and its version."""
    route = fleet.stack.stack
    if not isinstance(route, OperatorRoute):
        return
    for path in DERIVED_PATHS:
        if (value := get_value(route.values, path)) is not None:
            yield GF220.at(f"stack.values.{path}", value=value)
    for parts, value in _leaves(route.values):
        if value is None or (value == "" and parts == RENDERED_EMPTY):
            yield GF224.at(join_path(("stack", "values", *parts)), value=value)
    for parts in credentials(route.values, ("stack", "values")):
        yield GF226.at(join_path(parts))
    known = component("gpu-operator").version
    if route.version and route.version != known:
        yield GF221.at("stack.version", value=route.version, known=known)


def _leaves(values: Any, path: PathParts = ()) -> Iterator[tuple[PathParts, Any]]:
    """Every scalar of raw values with its place."""
    if isinstance(values, dict | list):
        for key, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from _leaves(value, (*path, key))
    else:
        yield path, values
