"""Versions that are known to fail, wherever they are written: charts, values, images, and the driver of the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.catalog import KnownBad, Place, default_flavour, driver_branch, gpu_models, known_to_fail
from gpufleet.catalog.known_bad import USUAL_SOCKET
from gpufleet.catalog.versions import fields
from gpufleet.device_plugin import NodeLayout
from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import PathParts
from gpufleet.findings.registry import finding
from gpufleet.lint.config import Checked
from gpufleet.lint.document import Document, Kind, entries, get, text_at, texts, truth
from gpufleet.lint.gather import Gathered
from gpufleet.lint.pods import containers, told_virtual_gpus

#: Kind -> (place of the chart's name, place of its version); `*`: any entry of a list.
_HOLDERS: dict[str, tuple[tuple[PathParts, PathParts], ...]] = {
    "HelmRelease": ((("spec", "chart", "spec", "chart"), ("spec", "chart", "spec", "version")),),
    "HelmChart": ((("spec", "chart"), ("spec", "version")),),
    "Application": tuple(
        ((*where, "chart"), (*where, "targetRevision"))
        for where in (("spec", "source"), ("spec", "sources", "*"))
    ),
    "ApplicationSet": tuple(
        (("spec", "template", *where, "chart"), ("spec", "template", *where, "targetRevision"))
        for where in (("spec", "source"), ("spec", "sources", "*"))
    ),
    "HelmChartProxy": ((("spec", "chartName"), ("spec", "version")),),
    "Kustomization": ((("helmCharts", "*", "name"), ("helmCharts", "*", "version")),),
    "ClusterProfile": ((("spec", "helmCharts", "*", "chartName"), ("spec", "helmCharts", "*", "chartVersion")),),
    "Release": ((("spec", "forProvider", "chart", "name"), ("spec", "forProvider", "chart", "version")),),
    "ClusterConfig": (
        (
            ("spec", "extensions", "helm", "charts", "*", "chartname"),
            ("spec", "extensions", "helm", "charts", "*", "version"),
        ),
    ),
}  # fmt: skip
#: Chart -> component whose version the chart's is.
_CHARTS = {
    "gpu-operator": "gpu-operator", "nvidia-device-plugin": "k8s-device-plugin", "dcgm-exporter": "dcgm-exporter",
}  # fmt: skip
#: Part of the operator's values -> component whose version it sets.
_PARTS = {
    "devicePlugin": "k8s-device-plugin", "dcgmExporter": "dcgm-exporter", "driver": "driver",
    "toolkit": "container-toolkit",
}  # fmt: skip
_IMAGES = ("k8s-device-plugin", "dcgm-exporter")
#: API group of a holder -> distributions that have it.
_DISTRIBUTIONS = {"helm.cattle.io": ("k3s", "rke2"), "k0s.k0sproject.io": ("k0s",)}
_TAG = re.compile(r"(?:.*/)?([\w-]+):v?(\d[\w.+-]*)")


@dataclass(frozen=True)
class _Written:
    """A version at its place, and the values that go with it."""

    component: str
    version: str
    document: Document
    path: PathParts
    values: Document | None = None
    spec: Item | None = None  # the root of the values
    uses: frozenset[str] = frozenset()
    distributions: frozenset[str] = frozenset()


def check_known_bad(
    run: Gathered, checked: list[Checked], node: NodeLayout | None, driver: str | None
) -> Iterator[Finding]:
    """Every version in the documents, and the driver that the user names, against the table."""
    gpus, about = _gpus(node), _about(run)
    for one in _written(run):
        uses = one.uses | about | _uses(run, checked, one)
        place = Place(gpus=gpus, modules=_modules(one, gpus), distributions=one.distributions, uses=uses)
        for row in known_to_fail(one.component, one.version, place):
            item = get(one.document.root, *one.path)
            yield one.document.found(_code(row), one.path, item, **_details(one.component, one.version, row))
    if driver is None or not fields(driver):
        return
    for row in known_to_fail("driver", driver, Place(gpus=gpus, modules=_flavour(driver, gpus), uses=about)):
        details = _details("driver", driver, row)
        domains = [d for d in run.documents if d.api_kind == "ComputeDomain"]
        for document in domains if "compute-domains" in row.applies.get("uses", ()) else ():
            yield document.found(_code(row), ("kind",), **details)
        for config in (c.config for c in checked if "gpus" in row.applies):
            made = finding(_code(row), config.where, **details)
            yield replace(made, file=config.document.file, line=config.line(1))


def _code(row: KnownBad) -> str:
    return "GF568" if row.severity == "error" else "GF569"


def _details(component: str, version: str, row: KnownBad) -> dict[str, Any]:
    name = "The driver" if component == "driver" else component
    return {"component": name, "value": version, "when": row.when, "because": row.reason, "source": row.source,
            "remedy_text": row.remedy or ""}  # fmt: skip


def _written(run: Gathered) -> Iterator[_Written]:
    for at, document in enumerate(run.documents):
        if document.kind is Kind.OTHER:
            yield from _charts(run, at, document)
        elif document.kind is Kind.OPERATOR_VALUES:
            yield from _parts(document, document.root, ())
        elif document.kind is Kind.CLUSTER_POLICY:
            yield from _parts(document, get(document.root, "spec"), ("spec",))
        elif document.kind is Kind.CHART_VALUES:
            tag = text_at(document.root, "image", "tag")
            if tag:
                yield _Written("k8s-device-plugin", tag, document, ("image", "tag"), document, document.root)
        elif document.kind in (Kind.DAEMON_SET, Kind.WORKLOAD):
            yield from _images(document)


def _charts(run: Gathered, at: int, document: Document) -> Iterator[_Written]:
    group = text_at(document.root, "apiVersion").rpartition("/")[0]
    known = frozenset(_DISTRIBUTIONS.get(group, ()))
    inside = []
    for below in run.documents[at + 1 :]:
        longer = len(below.prefix) > len(document.prefix) and below.prefix[: len(document.prefix)] == document.prefix
        if below.file != document.file or not longer:
            break
        inside.append(below)
    for chart, version in _places(document):
        component = _CHARTS.get(text_at(document.root, *chart).rpartition("/")[2])
        written = text_at(document.root, *version)
        if component is None or not written:
            continue
        entry = next((i + 1 for i, part in enumerate(chart) if isinstance(part, int)), 0)
        start = (*document.prefix, *chart[:entry])
        values = next((d for d in inside if d.prefix[: len(start)] == start), None)
        root = values.root if values else None
        yield _Written(component, written, document, version, values, root, distributions=known)


def _places(document: Document) -> Iterator[tuple[PathParts, PathParts]]:
    for chart, version in _HOLDERS.get(document.api_kind, ()):
        if "*" not in chart:
            yield chart, version
            continue
        i = chart.index("*")
        for n in range(len(entries(document.root, *chart[:i]))):
            yield (*chart[:i], n, *chart[i + 1 :]), (*version[:i], n, *version[i + 1 :])


def _parts(document: Document, root: Item | None, prefix: PathParts) -> Iterator[_Written]:
    """Versions of the operator's parts."""
    for part, component in _PARTS.items():
        version = text_at(root, part, "version")
        if version and truth(root, part, "enabled") is not False:
            yield _Written(component, version, document, (*prefix, part, "version"), document, root)


def _images(document: Document) -> Iterator[_Written]:
    for container in containers(document):
        match = _TAG.match(container.image.partition("@")[0])
        if match is None or match[1] not in _IMAGES:
            continue
        told = told_virtual_gpus(entries(container.item, "env"), container.words)
        uses = frozenset({"virtual-gpus"} if told else ())
        yield _Written(match[1], match[2], document, (*container.path, "image"), document, None, uses)


def _about(run: Gathered) -> frozenset[str]:
    """What the documents are about beside the versions."""
    found = set()
    for document in run.documents:
        if document.api_kind == "ComputeDomain":
            found.add("compute-domains")
        if document.api_kind == "PrometheusRule" and any("XID_ERRORS" in text for text in texts(document.root)):
            found.add("xid-alerts")
    return frozenset(found)


def _uses(run: Gathered, checked: list[Checked], one: _Written) -> frozenset[str]:
    """What the values that go with a version ask for."""
    uses = set()
    spec = one.spec
    if one.component in ("gpu-operator", "dcgm-exporter") and spec is not None:
        exporter = spec if one.document.kind is Kind.OTHER and one.component == "dcgm-exporter" else None
        exporter = exporter or get(spec, "dcgmExporter")
        words = texts(get(exporter, "args"))
        if told_virtual_gpus(entries(exporter, "env") or entries(exporter, "extraEnv"), words):
            uses.add("virtual-gpus")
    if one.component == "container-toolkit":
        for entry in entries(spec, "toolkit", "env"):
            if text_at(entry, "name") == "RUNTIME_CONFIG_SOURCE" and text_at(entry, "value").startswith("file"):
                uses.add("runtime-config-file")
    if one.component == "gpu-operator":
        if truth(spec, "toolkit", "enabled") is not False:
            uses.add("operator-toolkit")
        for entry in entries(spec, "toolkit", "env"):
            if text_at(entry, "name") == "CONTAINERD_SOCKET" and text_at(entry, "value") not in ("", USUAL_SOCKET):
                uses.add("another-socket")
        if truth(spec, "driver", "enabled") is not False:
            uses.add("driver-container")
    own_plugin = one.component == "gpu-operator" and bool(text_at(spec, "devicePlugin", "version"))
    if one.values is not None and not own_plugin and _mps_by_label(run, checked, one.values):
        uses.add("mps-by-label")
    return frozenset(uses)


def _mps_by_label(run: Gathered, checked: list[Checked], document: Document) -> bool:
    """Whether a node label may choose between a configuration with MPS and one without."""
    for reader in run.readers:
        if reader.document is not document or reader.file is not None:
            continue
        own = next((keys for keys in run.key_sets if keys.document is document and keys.configs), None)
        keys = own or run.named(reader.config_map)
        if keys is None:
            continue
        kinds = {
            c.prediction.strategy == "mps"
            for c in checked
            if c.config.document is keys.document and c.config.path[: len(keys.path)] == keys.path
        }
        if kinds == {True, False}:
            return True
    return False


def _gpus(node: NodeLayout | None) -> frozenset[str]:
    """The model of the node's GPUs, where its product is that of one model alone."""
    found = [m.id for m in gpu_models().values() if node is not None and m.product == node.product]
    return frozenset(found if len(found) == 1 else ())


def _modules(one: _Written, gpus: frozenset[str]) -> str | None:
    if one.component != "driver":
        return None
    said = text_at(one.spec, "driver", "kernelModuleType")
    return said if said in ("open", "proprietary") else _flavour(one.version, gpus)


def _flavour(version: str, gpus: frozenset[str]) -> str | None:
    """The modules that an installation takes by itself; None where the GPU or the branch is not known."""
    branch = driver_branch(fields(version)[0]) if fields(version) else None
    models = [gpu_models()[gpu] for gpu in gpus]
    return default_flavour(models, branch.branch) if branch and models else None
