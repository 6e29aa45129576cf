"""Which configuration is used where: names, namespaces, keys, defaults, node labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpufleet.catalog import gpu_model
from gpufleet.device_plugin.yaml11 import Item, YamlError, read
from gpufleet.findings.finding import Finding, closest_match
from gpufleet.lint.document import Document, Kind, entries, get, pairs, text_at
from gpufleet.lint.gather import Gathered, KeySet, Reader
from gpufleet.lint.pods import containers, is_image, pod_path
from gpufleet.lint.recognise import looks_like_config, text_is_config

LABEL = "nvidia.com/device-plugin.config"
_UNSET = "default"
#: Namespaces in which nobody installs the operator.
_NOT_THE_OPERATORS = ("default", "kube-system", "kube-public")
#: More names than a reader would look through are not listed.
_MANY = 20
#: Keys that people name after GPUs, also those that the catalogue does not have.
_MODEL = re.compile(
    r"(?i)((tesla|nvidia|quadro|geforce)-)?(rtx.*|gtx.*|([abhlp]\d{2,4}s?|v100|t4|l4|a2|p4|gh200|gb[23]00)([-.].*)?)"
)


def check_selection(run: Gathered) -> Iterator[Finding]:
    """Everything about names that must agree between documents."""
    selected = _selected(run)
    for keys in run.key_sets:
        meant = any(looks_like_config(item) for item in keys.keys.values())  # written as a map instead of a text
        if keys.configs or meant or keys.document.kind is not Kind.CONFIG_MAP:
            yield from _key_set(keys)
            yield from _model_names(keys, selected)
    for reader in run.readers:
        yield from _reader(reader, run)
    for document in run.of(Kind.NODE):
        yield from _label(document, ("metadata", "labels"), run)
    for document in run.of(Kind.WORKLOAD, Kind.DAEMON_SET):
        yield from _label(document, (*(pod_path(document) or ()), "nodeSelector"), run)


def _key_set(keys: KeySet) -> Iterator[Finding]:
    for key, item in keys.keys.items():
        if not isinstance(item.value, str):
            why = "The API server takes only text in a ConfigMap."
            if keys.document.kind is not Kind.CONFIG_MAP:
                why = "The chart puts it into a ConfigMap, which takes only text."
            yield keys.document.found("GF539", (*keys.path, key), item, key=key, because=why)
    holder = get(keys.document.root, *keys.path)
    for key, old in holder.lost if holder is not None else ():
        yield keys.document.found("GF504", (*keys.path, key), old, value=key)


def _selected(run: Gathered) -> set[str]:
    """Keys that something selects: defaults and node labels."""
    found = {"default"}
    for reader in run.readers:
        found.add(text_at(reader.document.root, *reader.path, "default"))
    for document in run.of(Kind.NODE):
        found.add(text_at(document.root, "metadata", "labels", LABEL))
    return found


def _model_names(keys: KeySet, selected: set[str]) -> Iterator[Finding]:
    for key in keys.configs:
        if key not in selected and (gpu_model(key) is not None or _MODEL.fullmatch(key)):
            yield keys.document.found("GF538", (*keys.path, key), keys.keys[key], value=key)


def _maps(run: Gathered, name: str) -> list[KeySet]:
    return [k for k in run.by_name.get(name, ()) if k.document.kind is Kind.CONFIG_MAP]


def _reader(reader: Reader, run: Gathered) -> Iterator[Finding]:
    """The ConfigMap that a reader names exists, is where it is needed, and has the keys that are asked for."""
    root, path = reader.document.root, reader.path
    named = [k for k in run.by_name.get(reader.config_map, ()) if k.document is reader.document and k.keys]
    own = [k for k in run.by_name.get("", ()) if k.document is reader.document and k.keys]
    keys = next(iter(named or own), None) if reader.container is None else None
    name = get(root, *path, "name")
    if reader.container is None and reader.config_map:
        same = _maps(run, reader.config_map)
        if same:
            keys = keys or same[0]
            yield from _operator_namespace(reader, same, name, run)
        elif keys is None and run.config_maps:
            yield from _missing(reader, name, (*path, "name"), run)
    default = get(root, *path, "default") if reader.container is None else None
    if default is not None and isinstance(default.value, str) and default.value and keys is not None:
        yield from _default(reader, default, keys)


def by_operator(document: Document) -> bool:
    """An object that the GPU Operator made from its ClusterPolicy."""
    owners = entries(document.root, "metadata", "ownerReferences")
    return any(text_at(o, "kind") == "ClusterPolicy" for o in owners)


def _operator_namespace(reader: Reader, same: list[KeySet], name: Item | None, run: Gathered) -> Iterator[Finding]:
    """The operator's pods mount ConfigMaps of its own namespace; where that is, its other objects tell."""
    if reader.kind not in (Kind.OPERATOR_VALUES, Kind.CLUSTER_POLICY):
        return
    homes = [d.namespace for d in run.documents if d.namespace and (by_operator(d) or _runs_operator(d))]
    homes = homes or [reader.document.namespace]  # of a cluster-wide object it says nothing, but people write it
    there = [k.namespace for k in same]
    path = (*reader.path, "name")
    if homes[0]:
        if all(there) and not set(there) & set(homes):
            yield reader.document.found("GF531", path, name, value=reader.config_map, here=homes[0], there=there[0])
    elif all(t in _NOT_THE_OPERATORS for t in there):
        yield reader.document.found("GF553", path, name, value=reader.config_map, there=there[0])


def _runs_operator(document: Document) -> bool:
    return any(is_image(c.image, "operator") and not c.init for c in containers(document))


def _default(reader: Reader, default: Item, keys: KeySet) -> Iterator[Finding]:
    if default.value in keys.keys:
        return
    why = "config-manager fails on it: the init container of the plugin never ends, on every node without a label."
    if "\n" in default.value or _is_configuration(default.value):
        why = "The default is the name of a key, not the text of a configuration. " + why
    found = keys.name or ".".join(str(p) for p in keys.path)
    names: dict[str, Any] = {"value": default.value, "name": found, "allowed": list(keys.keys)}
    yield reader.document.found("GF532", (*reader.path, "default"), default, because=why, **names)


def _is_configuration(text: str) -> bool:
    try:
        root = read(text).root
    except YamlError:
        return False
    return root is not None and isinstance(root.value, dict) and text_is_config(text)


def _missing(reader: Reader, item: Item | None, path: tuple[str | int, ...], run: Gathered) -> Iterator[Finding]:
    names = run.config_maps
    near = closest_match(reader.config_map, names)
    yield reader.document.found(
        "GF530",
        path,
        item,
        value=reader.config_map,
        allowed=names if len(names) <= _MANY else (),
        closest=near or (names[0] if len(names) == 1 else None),
    )


def check_mounted_map(
    document: Document, config_map: str, item: Item, path: tuple[str | int, ...], run: Gathered
) -> Iterator[Finding]:
    """A ConfigMap that a pod mounts: it is among what was given, in the same namespace."""
    same = _maps(run, config_map)
    here = document.namespace or _UNSET
    if same and not any((k.namespace or _UNSET) == here for k in same):
        there = same[0].namespace or _UNSET
        yield document.found("GF531", path, item, value=config_map, here=here, there=there)
    if not same and run.config_maps:
        reader = Reader(document, document.kind, config_map, document.namespace, (), {})
        yield from _missing(reader, item, path, run)


def _label(document: Document, place: tuple[str, ...], run: Gathered) -> Iterator[Finding]:
    """NV-09: the label of a node names a key; so does a selector on that label."""
    label = pairs(document.root, *place).get(LABEL)
    sets = run.with_configs
    if label is None or not isinstance(label.value, str) or not label.value or not sets:
        return
    if not any(label.value in k.keys for k in sets):
        known = sorted({key for k in sets for key in k.keys})
        name = ", ".join(sorted({k.name or "of the chart" for k in sets}))
        why = "config-manager fails on it: the plugin's init container never ends on this node, or its sidecar exits."
        if document.kind is not Kind.NODE:
            why = "On a node with this label the plugin does not start, so no such node offers GPUs."
        path = (*place, LABEL)
        yield document.found("GF532", path, label, value=label.value, name=name, because=why, allowed=known)
