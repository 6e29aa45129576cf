"""Names and namespaces as Kustomize changes them: namePrefix, nameSuffix, namespace, and the names that follow.

Rules of kubernetes-sigs/kustomize: api/internal/builtins/PrefixTransformer.go (kinds that keep their names),
api/internal/konfig/builtinpluginconsts/namereference.go (names in pods of Kubernetes' own kinds follow, no others).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import Document, entries, get, pairs, text_at
from gpufleet.lint.flavors import QUEUE_LABEL
from gpufleet.lint.pods import pod_path, pod_spec
from gpufleet.lint.recognise import POD_PATHS

_KEEP_THEIR_NAMES = ("CustomResourceDefinition", "APIService", "Namespace")
#: Kinds without a namespace, of those that lint reads.
_OF_THE_CLUSTER = frozenset({
    "Namespace", "Node", "ClusterPolicy", "NVIDIADriver", "DeviceClass", "ClusterQueue", "ResourceFlavor", "Cohort",
    "CustomResourceDefinition", "APIService", "RuntimeClass", "PriorityClass", "StorageClass", "ClusterRole",
    "ClusterRoleBinding",
})  # fmt: skip
_CONFIG_MAP_KEYS = ("configMap", "configMapRef", "configMapKeyRef")

#: Kind and name -> the name after all Kustomizations.
Renamed = Mapping[tuple[str, str], str]


def renames(owner: Document) -> bool:
    """Whether a Kustomization changes names or namespaces."""
    return any(text_at(owner.root, key) for key in ("namePrefix", "nameSuffix", "namespace"))


def renamed(owner: Document, document: Document) -> Document:
    """A document with its name and namespace after a Kustomization."""
    metadata = pairs(document.root, "metadata")
    name, namespace = document.name, text_at(owner.root, "namespace")
    line = document.root.line
    changed = dict(metadata)
    if name and document.api_kind not in _KEEP_THEIR_NAMES:
        new = text_at(owner.root, "namePrefix") + name + text_at(owner.root, "nameSuffix")
        changed["name"] = replace(metadata["name"], value=new)
    if namespace and document.api_kind not in _OF_THE_CLUSTER:
        changed["namespace"] = replace(metadata.get("namespace", Item("", line, line)), value=namespace)
    root = replace(
        document.root,
        value={**pairs(document.root), "metadata": replace(_metadata(document), value=changed)},
    )
    return replace(document, root=root, given_name=document.given_name or name)


def _metadata(document: Document) -> Item:
    return get(document.root, "metadata") or Item({}, document.root.line)


def following(document: Document, names: Renamed) -> Document:
    """A pod of Kubernetes' own kinds with the new names of the ConfigMaps that it calls."""
    maps = {old: new for (kind, old), new in names.items() if kind == "ConfigMap"}
    if document.api_kind not in POD_PATHS or not maps:
        return document
    return replace(document, root=_follow(document.root, maps, ""))


def _follow(item: Item, maps: Mapping[str, str], key: str) -> Item:
    if isinstance(item.value, list):
        return replace(item, value=[_follow(entry, maps, key) for entry in item.value])
    if not isinstance(item.value, dict):
        return item
    inside = {name: _follow(value, maps, name) for name, value in item.value.items()}
    called = inside.get("name")
    if key in _CONFIG_MAP_KEYS and called is not None and called.value in maps:
        inside["name"] = replace(called, value=maps[called.value])
    return replace(item, value=inside)


def left_behind(document: Document, names: Renamed, kept: frozenset[tuple[str, str]]) -> Iterator[Finding]:
    """Names that Kustomize does not change where they are called, although it changes the object. `kept` are kinds and
    names that an object still has."""
    for kind, path in _calls(document):
        name = text_at(document.root, *path)
        new = names.get((kind, name))
        if new is not None and (kind, name) not in kept:
            yield document.found("GF682", path, get(document.root, *path), value=name, kind=kind, new=new, closest=new)


def _calls(document: Document) -> Iterator[tuple[str, PathParts]]:
    """Places of names that Kustomize knows nothing of: kind of the object, and where it is called."""
    yield "LocalQueue", ("metadata", "labels", QUEUE_LABEL)
    if document.api_kind == "LocalQueue":
        yield "ClusterQueue", ("spec", "clusterQueue")
    if document.api_kind in ("ClusterQueue", "Cohort"):
        for i, group in enumerate(entries(document.root, "spec", "resourceGroups")):
            for j in range(len(entries(group, "flavors"))):
                yield "ResourceFlavor", ("spec", "resourceGroups", i, "flavors", j, "name")
    path = pod_path(document) or ()
    for i in range(len(entries(pod_spec(document), "resourceClaims"))):
        yield "ResourceClaimTemplate", (*path, "resourceClaims", i, "resourceClaimTemplateName")
        yield "ResourceClaim", (*path, "resourceClaims", i, "resourceClaimName")
