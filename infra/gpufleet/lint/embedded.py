"""Documents inside other objects: chart values of Helm controllers, pods of custom resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gpufleet.device_plugin.yaml11 import Item, YamlError
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import PathParts
from gpufleet.findings.registry import finding
from gpufleet.lint.document import BLOCKS, MOST_LEVELS, Document, Kind, entries, get, read_inside, text_at
from gpufleet.lint.dynamo import dynamo_pods
from gpufleet.lint.lone import lone_containers
from gpufleet.lint.parameters import parameters, with_parameters
from gpufleet.lint.recognise import kind_of
from gpufleet.lint.unknown import OF_NODES, unknown

_ARGO = tuple(
    ((*where, "helm", key), (*where, "chart"))
    for where in (("spec", "source"), ("spec", "sources", "*"))
    for key in ("valuesObject", "values")
)
#: Kind -> places of chart values, as a map or as a text, each with the place of the chart's name. `*`: any entry.
_VALUES: dict[str, tuple[tuple[PathParts, PathParts], ...]] = {
    "HelmRelease": ((("spec", "values"), ("spec", "chart", "spec", "chart")),),
    "HelmChart": ((("spec", "valuesContent"), ("spec", "chart")),),
    "HelmChartConfig": ((("spec", "valuesContent"), ("metadata", "name")),),
    "Application": _ARGO,
    "ApplicationSet": tuple((("spec", "template", *v), ("spec", "template", *c)) for v, c in _ARGO),
    "HelmChartProxy": ((("spec", "valuesTemplate"), ("spec", "chartName")),),
    "Kustomization": ((("helmCharts", "*", "valuesInline"), ("helmCharts", "*", "name")),),
    "ClusterProfile": ((("spec", "helmCharts", "*", "values"), ("spec", "helmCharts", "*", "chartName")),),
    "Release": ((("spec", "forProvider", "values"), ("spec", "forProvider", "chart", "name")),),
    "ClusterConfig": (
        (
            ("spec", "extensions", "helm", "charts", "*", "values"),
            ("spec", "extensions", "helm", "charts", "*", "chartname"),
        ),
    ),
}
#: The same in files that are no objects: Fleet's fleet.yaml, helmfile.yaml.
_IN_FILES: tuple[tuple[PathParts, PathParts], ...] = (
    (("helm", "values"), ("helm", "chart")),
    (("releases", "*", "values", "*"), ("releases", "*", "chart")),
)
_CHARTS = {
    "gpu-operator": Kind.OPERATOR_VALUES,
    "nvidia-device-plugin": Kind.CHART_VALUES,
    "node-feature-discovery": Kind.NFD_VALUES,
    "hami": Kind.HAMI_VALUES,
    "dra-driver-nvidia-gpu": Kind.DRA_VALUES,
    "nvidia-dra-driver-gpu": Kind.DRA_VALUES,
}
#: Keys beside the chart's name that hold its release.
_RELEASE = ("version", "targetRevision", "chartVersion")
#: Values that single parameters next to them override.
_WITH_PARAMETERS = ("values", "valuesObject", "valuesContent")
_OURS = frozenset(_CHARTS.values())


@dataclass(frozen=True)
class Embedded:
    """Documents inside a document, and what could not be read or was not looked at."""

    documents: tuple[Document, ...] = ()
    found: tuple[Finding, ...] = ()


def embedded(document: Document) -> Embedded:
    """What an object of a kind that lint does not know by itself holds for it."""
    if document.kind is Kind.UNKNOWN:
        inside = _all_values(document, _IN_FILES)
        return replace(inside, documents=(*inside.documents, *_of_subcharts(document)))
    if document.kind is not Kind.OTHER or document.api_kind in ("CustomResourceDefinition", *OF_NODES):
        return Embedded()
    inside = _all_values(document, _VALUES.get(document.api_kind, ()))
    documents, found = list(inside.documents), list(inside.found)
    documents += [_as_pod(document, path, item) for path, item in _pods(document.root, ())]
    documents += [*dynamo_pods(document), *lone_containers(document)]
    if not documents:
        found += unknown(document)
    return Embedded(tuple(documents), tuple(found))


def _all_values(document: Document, places: Iterable[tuple[PathParts, PathParts]]) -> Embedded:
    documents: list[Document] = []
    found: list[Finding] = []
    for one in places:
        for path, chart in _expanded(document.root, *one):
            beside = (text_at(document.root, *chart[:-1], key) for key in _RELEASE)
            release = next((text for text in beside if text), "")
            try:
                documents += _values(document, path, text_at(document.root, *chart), release)
            except YamlError as error:
                holder = get(document.root, *path)
                line = error.line if holder is None or holder.style in BLOCKS else holder.line
                if holder is not None and isinstance(holder.value, str) and "{{" in holder.value:
                    found.append(replace(finding("GF503", ""), file=document.file, line=line))
                else:
                    found.append(document.found("GF501", path, line=line, fault=str(error)))
    return Embedded(tuple(documents), tuple(found))


def _of_subcharts(document: Document) -> Iterator[Document]:
    """The values of our chart as a dependency: they stand below its name in the values of the outer chart."""
    for name, kind in _CHARTS.items():
        item = get(document.root, name)
        if item is not None and isinstance(item.value, dict):
            # `enabled` is the condition of the dependency, a value of the chart around it.
            root = replace(item, value={k: v for k, v in item.value.items() if k != "enabled"})
            yield replace(document, root=root, kind=kind, prefix=(*document.prefix, name))


def _expanded(root: Item, path: PathParts, chart: PathParts) -> Iterator[tuple[PathParts, PathParts]]:
    if "*" not in path:
        yield path, chart
        return
    at = path.index("*")
    for i in range(len(entries(root, *path[:at]))):
        same = (*chart[:at], i, *chart[at + 1 :]) if chart[at : at + 1] == ("*",) else chart
        yield from _expanded(root, (*path[:at], i, *path[at + 1 :]), same)


def _values(document: Document, path: PathParts, chart: str, release: str) -> Iterator[Document]:
    item = get(document.root, *path)
    kind = _CHARTS.get(chart.rpartition("/")[2])
    if chart and kind is None and document.api_kind != "HelmChartConfig":
        return
    beside = parameters(document, *path[:-1]) if kind is not None and path[-1] in _WITH_PARAMETERS else []
    alone = beside and path[-1] != "valuesObject" and get(document.root, *path[:-1], "valuesObject") is None
    if item is None and not alone:
        return
    inside = replace(document, prefix=(*document.prefix, *path))
    if item is None:
        root = None
    elif isinstance(item.value, str):
        root = read_inside(item)
        inside = replace(inside, text="\n" * item.line + item.value, shift=None)
    else:
        root = item
    root = with_parameters(root, beside)
    if root is None or not isinstance(root.value, dict):
        return
    named, kind = kind is not None, kind or kind_of(root)
    if kind in _OURS:
        yield replace(inside, root=root, kind=kind, named=named, release=release)


def _pods(item: Item, path: PathParts) -> Iterator[tuple[PathParts, Item]]:
    """Every map whose `spec` is that of a pod."""
    if len(path) > MOST_LEVELS:
        return
    if isinstance(item.value, list):
        for i, entry in enumerate(item.value):
            yield from _pods(entry, (*path, i))
    elif isinstance(item.value, dict):
        if any(isinstance(c.value, dict) for c in entries(item, "spec", "containers")):
            yield path, item
            return
        for key, value in item.value.items():
            yield from _pods(value, (*path, key))


def _as_pod(document: Document, path: PathParts, item: Item) -> Document:
    head = {"apiVersion": Item("v1", item.line), "kind": Item("Pod", item.line)}
    root = replace(item, value={**item.value, **head})
    return replace(document, root=root, kind=Kind.WORKLOAD, prefix=(*document.prefix, *path))
