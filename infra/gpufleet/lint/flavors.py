"""Flavours of Kueue: which nodes they mean, what those offer, and what Kueue adds to the pods that it admits.

Kueue puts a flavour's nodeLabels into the node selector of a pod, and its tolerations beside those of the pod
(kubernetes-sigs/kueue ff69552e79, pkg/podset/podset.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding, closest_match
from gpufleet.lint.document import Document, Kind, entries, get, pairs, text_at
from gpufleet.lint.gather import Gathered
from gpufleet.lint.node_labels import lacks
from gpufleet.lint.offers import HAMI
from gpufleet.lint.place import Place, Taint
from gpufleet.lint.quantity import count
from gpufleet.lint.workload import tolerates

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True)
class Queues:
    """What Kueue adds to pods: the tolerations of all given flavours, None where no flavour is given."""

    tolerations: tuple[Item, ...] | None = None

    @classmethod
    def of(cls, run: Gathered) -> Queues:
        """Of what was given."""
        flavors = [d for d in run.of(Kind.QUEUE) if d.api_kind == "ResourceFlavor"]
        added = tuple(item for d in flavors for item in entries(d.root, "spec", "tolerations"))
        return cls(added if flavors else None)

    def tolerate(self, document: Document, taint: Taint) -> bool:
        """Whether a pod in a queue may get a toleration for a taint. Flavours that are not given may have any."""
        if not text_at(document.root, "metadata", "labels", QUEUE_LABEL):
            return False
        return self.tolerations is None or tolerates(self.tolerations, taint)


def check_flavors(documents: Sequence[Document], places: Sequence[Place]) -> Iterator[Finding]:
    """Flavours whose labels no pool of the stack has, and resources that the pools of a flavour do not offer."""
    if any(place.pool is None for place in places):
        return
    meant: dict[str, list[Place]] = {}
    for document in documents:
        if document.kind is not Kind.QUEUE or document.api_kind != "ResourceFlavor":
            continue
        items = pairs(document.root, "spec", "nodeLabels")
        wanted = {key: item.value for key, item in items.items() if isinstance(item.value, str)}
        fitting = [place for place in places if not lacks(place.labels, wanted)]
        meant[document.name] = fitting
        if wanted and not fitting:
            yield _no_nodes(document, wanted, items, places)
    for document in documents:
        if document.kind is Kind.QUEUE and document.api_kind in ("ClusterQueue", "Cohort"):
            yield from _resources(document, meant, {name for p in places for name, n in p.offers.capacity.items() if n})


def _no_nodes(
    document: Document, wanted: Mapping[str, str], items: Mapping[str, Item], places: Sequence[Place]
) -> Finding:
    nearest = min(places, key=lambda place: len(lacks(place.labels, wanted)))
    keys = lacks(nearest.labels, wanted)
    key, pool = keys[0], nearest.pool
    values = list(dict.fromkeys(p.labels.known[key] for p in places if key in p.labels.known))
    near = closest_match(wanted[key], values) or nearest.labels.known.get(key)
    chosen = ", ".join(f"{k}: {v}" for k, v in (pool.selector if pool else {}).items())
    value = ", ".join(f"{k}={wanted[k]}" for k in keys)
    path = ("spec", "nodeLabels", key)
    return document.found("GF640", path, items[key], value=value, allowed=values, closest=near, selector=chosen)


def _resources(document: Document, meant: Mapping[str, list[Place]], some: set[str]) -> Iterator[Finding]:
    """What a queue gives of a flavour, where all nodes that the flavour means are known to offer none of it. `some` are
    the resources that any pool offers; of others GF670 speaks."""
    for i, group in enumerate(entries(document.root, "spec", "resourceGroups")):
        for j, flavor in enumerate(entries(group, "flavors")):
            places = meant.get(text_at(flavor, "name"), [])
            for k, row in enumerate(entries(flavor, "resources")):
                name, quota = text_at(row, "name"), get(row, "nominalQuota")
                if name not in some or name in HAMI or (quota is not None and count(quota) == 0):
                    continue
                if not places or any(not p.offers.certain or p.offers.capacity.get(name) for p in places):
                    continue
                offered = tuple(dict.fromkeys(word for p in places for word in p.offers.capacity))
                path = ("spec", "resourceGroups", i, "flavors", j, "resources", k, "name")
                pools = ", ".join(p.pool.name for p in places if p.pool)
                yield document.found(
                    "GF641", path, get(row, "name"), value=name, allowed=offered, flavor=text_at(flavor, "name"),
                    pools=pools,
                )  # fmt: skip
