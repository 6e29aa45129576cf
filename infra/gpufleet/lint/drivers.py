"""NVIDIADriver objects: what the operator and its CRD make of them (NVIDIA/gpu-operator v26.7.0)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpufleet.catalog import driver_version, operator_drivers
from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.lint.document import Document, Kind, get, pairs, text_at, truth
from gpufleet.lint.gather import Gathered
from gpufleet.lint.tables import table

_FULL = re.compile(r"\d+\.\d+(\.\d+)?")


def check_drivers(run: Gathered) -> Iterator[Finding]:
    """Everything about NVIDIADriver objects."""
    documents = run.of(Kind.DRIVER)
    off = _switched_off(run) if documents else None
    for i, document in enumerate(documents):
        spec = get(document.root, "spec")
        if off is not None:
            yield document.found("GF676", ("kind",), get(document.root, "kind"), value=off)
        yield from _values(document, spec)
        yield from _version(document, spec)
        for other in documents[:i]:
            yield from _same_nodes(document, other)


def _switched_off(run: Gathered) -> str | None:
    """The value that makes the operator pass over these objects; None where nothing does, or nothing is said."""
    found = None
    for document in run.of(Kind.OPERATOR_VALUES, Kind.CLUSTER_POLICY):
        key = "driver.nvidiaDriverCRD.enabled"
        on = truth(document.root, *key.split("."))
        if document.kind is Kind.CLUSTER_POLICY:
            key = "spec.driver.useNvidiaDriverCRD"
            on = truth(document.root, *key.split("."))
        elif truth(document.root, "clusterPolicy", "deployCR") is False:
            on = True  # without a ClusterPolicy nothing holds the controller back
        if on is True:
            return None
        found = key
    return found


def _values(document: Document, spec: Item | None) -> Iterator[Finding]:
    """What the CRD, or the controller, refuses."""
    for key, allowed in table("nvidia_driver")["values"].items():
        item = get(spec, key)
        if item is not None and item.value not in allowed:
            fault = f"{key} is one of {', '.join(allowed)}"
            yield document.found("GF677", ("spec", key), item, value=item.text, fault=fault, allowed=allowed)
    if truth(spec, "default") is True and pairs(spec, "nodeSelector"):
        fault = "the default driver has no nodeSelector"
        item = get(spec, "nodeSelector")
        yield document.found("GF677", ("spec", "nodeSelector"), item, value="default: true", fault=fault)
    for part in ("gds", "gdrcopy"):
        item = get(spec, part, "enabled")
        if truth(spec, "usePrecompiled") is True and item is not None and item.value is True:
            fault = f"{part} does not go with usePrecompiled"
            yield document.found("GF677", ("spec", part, "enabled"), item, value=part, fault=fault)


def _version(document: Document, spec: Item | None) -> Iterator[Finding]:
    """Versions of data centre drivers from NVIDIA's registry; others have lists of their own."""
    item, version = get(spec, "version"), text_at(spec, "version")
    if item is None or not _FULL.fullmatch(version) or text_at(spec, "driverType") not in ("", "gpu"):
        return
    if truth(spec, "usePrecompiled") is True:
        branch = version.partition(".")[0]
        yield document.found("GF678", ("spec", "version"), item, value=version, allowed=[branch], closest=branch)
        return
    listed = operator_drivers()
    if version in listed or not _from_nvidia(spec):
        return
    same = [one for one in listed if driver_version(one).branch == driver_version(version).branch]
    yield document.found(
        "GF217", ("spec", "version"), item, value=version, allowed=listed, closest=same[0] if same else None
    )


def _from_nvidia(spec: Item | None) -> bool:
    repository, image = text_at(spec, "repository"), text_at(spec, "image")
    return f"{repository}/{image}".strip("/") in ("", "driver", "nvcr.io/nvidia/driver", "nvcr.io/nvidia")


def _same_nodes(document: Document, other: Document) -> Iterator[Finding]:
    """Two objects that select the same nodes stop each other. Of one name, they are the same object in two places."""
    if document.name == other.name:
        return
    mine, its = (
        {k: v.value for k, v in pairs(d.root, "spec", "nodeSelector").items()} for d in (document, other)
    )
    defaults = [truth(d.root, "spec", "default") is True for d in (document, other)]
    if mine == its and defaults[0] == defaults[1]:
        what = ", ".join(f"{k}={v}" for k, v in mine.items()) or ("the default" if defaults[0] else "all GPU nodes")
        item = get(document.root, "spec", "nodeSelector")
        yield document.found("GF679", ("spec", "nodeSelector"), item, value=what, other=other.name)
