"""Containers of custom resources that stand outside a pod spec: KServe's predictor, Argo's templates, NIM services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import MOST_LEVELS, Document, Kind, entries, get, pairs

#: Fields of a pod spec that such objects have beside the container, or inside it.
_OF_POD = ("nodeSelector", "tolerations", "affinity", "hostUsers", "runtimeClassName")


def lone_containers(document: Document) -> Iterator[Document]:
    """Each map whose `resources` ask for GPUs, as a pod with this container. Places and lines are those of the text."""
    for path, item, around in _found(document.root, document.root, ()):
        at = path if len(path) == 1 or any(get(item, k) for k in _OF_POD) else path[:-1]
        fields = {k: v for k in _OF_POD for v in (get(item, k) or get(around, k),) if v is not None}
        spec = Item({**fields, "containers": Item([item], item.line)}, item.line)
        head = {"apiVersion": Item("v1", item.line), "kind": Item("Pod", item.line), "spec": spec}
        yield replace(
            document,
            root=replace(document.root, value={**pairs(document.root), **head}),
            kind=Kind.WORKLOAD,
            places=((("spec", "containers", 0), path), (("spec",), at)),
        )


def _found(item: Item, around: Item, path: PathParts) -> Iterator[tuple[PathParts, Item, Item]]:
    """Place, map, and the map around it, outside pod specs."""
    if len(path) > MOST_LEVELS:
        return
    if isinstance(item.value, list):
        for i, entry in enumerate(item.value):
            yield from _found(entry, around, (*path, i))
    elif isinstance(item.value, dict):
        if any(isinstance(c.value, dict) for c in entries(item, "spec", "containers")):
            return
        if path and any(
            name.startswith("nvidia.com/") for part in ("limits", "requests") for name in pairs(item, "resources", part)
        ):
            yield path, item, around
            return
        for key, value in item.value.items():
            yield from _found(value, item, (*path, key))
