"""Queues that count GPUs: flavours and queues of Kueue, queues of Volcano, and Volcano's parts of GPUs.

Kueue's rules: kubernetes-sigs/kueue pkg/webhooks/clusterqueue_webhook.go (v1beta1 and v1beta2 alike).
"""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import Document, Kind, entries, get, pairs, text_at, texts
from gpufleet.lint.flavors import QUEUE_LABEL
from gpufleet.lint.gather import Gathered
from gpufleet.lint.names import slip
from gpufleet.lint.offered import VOLCANO, is_meant_as_gpu, never
from gpufleet.lint.offers import Offers
from gpufleet.lint.pods import containers
from gpufleet.lint.quantity import count
from gpufleet.parts.names import PRODUCT_LABEL

#: Kueue's own configuration can count other names than those of nodes (transformations, mappings of device classes).
_KUEUE = "config.kueue.x-k8s.io"
#: Maps of resources in a queue of Volcano.
_OF_VOLCANO: tuple[PathParts, ...] = (("spec", "capability"), ("spec", "deserved"), ("spec", "guarantee", "resource"))


def check_queues(
    run: Gathered, offers: Offers, offered: tuple[str, ...], *, certain: bool, stack: bool
) -> Iterator[Finding]:
    """Everything about queues, and resources of Volcano that no stack installs."""
    queues = run.of(Kind.QUEUE)
    kinds = ("ResourceFlavor", "ClusterQueue", "LocalQueue")
    known = {kind: [d for d in queues if d.api_kind == kind] for kind in kinds}
    told = [text for d in run.of(Kind.CONFIG_MAP) for text in texts(get(d.root, "data")) if _KUEUE in text]
    for document in queues:
        rows: list[tuple[str, PathParts, Item]] = []
        if document.api_kind in ("ClusterQueue", "Cohort"):
            rows = list(_covered(document))
            yield from _groups(document)
            yield from _flavors(document, known["ResourceFlavor"])
        elif document.api_kind == "Queue":
            rows = [(k, (*path, k), v) for path in _OF_VOLCANO for k, v in pairs(document.root, *path).items()]
        elif document.api_kind == "LocalQueue":
            yield from _called(document, ("spec", "clusterQueue"), known["ClusterQueue"], "ClusterQueue")
        elif document.api_kind == "ResourceFlavor":
            yield from _product(document, offers)
        for name, path, item in rows:
            if is_meant_as_gpu(name) and never(name, offered, certain=certain) and not any(name in t for t in told):
                allowed = offered or ("nvidia.com/gpu",)
                yield document.found("GF670", path, item, value=name, allowed=allowed)
    for document in run.documents:
        if document.kind in (Kind.WORKLOAD, Kind.OTHER):
            theirs = {"", document.namespace} if document.namespace else None
            here = [d for d in known["LocalQueue"] if theirs is None or d.namespace in theirs]
            yield from _called(document, ("metadata", "labels", QUEUE_LABEL), here, "LocalQueue")
        if stack and document.kind is Kind.WORKLOAD:
            yield from _volcano(document)


def _covered(document: Document) -> Iterator[tuple[str, PathParts, Item]]:
    """The resources of a queue, each once, without those of which it gives nothing."""
    for i, group in enumerate(entries(document.root, "spec", "resourceGroups")):
        nothing = set()
        for flavor in entries(group, "flavors"):
            for row in entries(flavor, "resources"):
                quota = get(row, "nominalQuota")
                if quota is not None and count(quota) == 0:
                    nothing.add(text_at(row, "name"))
        for j, item in enumerate(entries(group, "coveredResources")):
            if isinstance(item.value, str) and item.value not in nothing:
                yield item.value, ("spec", "resourceGroups", i, "coveredResources", j), item


def _groups(document: Document) -> Iterator[Finding]:
    """Every flavour gives a quota for each covered resource, in the same order."""
    for i, group in enumerate(entries(document.root, "spec", "resourceGroups")):
        covered = [item.value for item in entries(group, "coveredResources")]
        if not any(isinstance(name, str) and is_meant_as_gpu(name) for name in covered):
            continue
        for j, flavor in enumerate(entries(group, "flavors")):
            given = [text_at(row, "name") for row in entries(flavor, "resources")]
            if given != covered:
                path = ("spec", "resourceGroups", i, "flavors", j, "resources")
                item, wanted = get(flavor, "resources"), ", ".join(str(name) for name in covered)
                value = ", ".join(given) or "nothing"
                yield document.found("GF671", path, item, value=value, flavor=text_at(flavor, "name"), covered=wanted)


def _flavors(document: Document, flavors: list[Document]) -> Iterator[Finding]:
    for i, group in enumerate(entries(document.root, "spec", "resourceGroups")):
        for j in range(len(entries(group, "flavors"))):
            path = ("spec", "resourceGroups", i, "flavors", j, "name")
            yield from _called(document, path, flavors, "ResourceFlavor")


def _called(document: Document, path: PathParts, known: list[Document], kind: str) -> Iterator[Finding]:
    """A name that is nearly that of a given object is a slip; any other may be that of one that is not given."""
    name = text_at(document.root, *path)
    names = [d.name for d in known]
    near = slip(name, names) if name and name not in names else None
    if near:
        yield document.found(
            "GF672", path, get(document.root, *path), value=name, kind=kind, allowed=names, closest=near
        )


def _product(document: Document, offers: Offers) -> Iterator[Finding]:
    """A flavour puts its labels into the node selector of pods; sharing changes the product's label."""
    path = ("spec", "nodeLabels", PRODUCT_LABEL)
    value = text_at(document.root, *path)
    if not value or value in offers.products:
        return
    for product in (f"{value}-SHARED", value.removesuffix("-SHARED")):
        if product in offers.products:
            yield document.found("GF619", path, get(document.root, *path), value=value, product=product)


def _volcano(document: Document) -> Iterator[Finding]:
    for container in containers(document):
        for name, item in pairs(container.item, "resources", "limits").items():
            if name.startswith(VOLCANO):
                path = (*container.path, "resources", "limits", name)
                yield document.found("GF673", path, item, value=name)
