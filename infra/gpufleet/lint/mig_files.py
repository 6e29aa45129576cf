"""MIG layouts: the files of mig-parted, and the ConfigMaps and values that bring them to the operator's MIG manager."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gpufleet.catalog import GpuModel, gpu_model, gpu_models
from gpufleet.catalog.mig_placement import fits, most_of
from gpufleet.device_plugin import NodeLayout
from gpufleet.device_plugin.yaml11 import Item, YamlError
from gpufleet.findings.finding import Finding, closest_match
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import Document, Kind, entries, get, pairs, read_inside, text_at
from gpufleet.lint.gather import Gathered
from gpufleet.lint.mig_format import fault_of_file, fault_of_row

LABEL = "nvidia.com/mig.config"
#: The only key that the operator mounts (NVIDIA/gpu-operator, object_controls.go: CONFIG_FILE).
KEY = "config.yaml"
#: The ConfigMap that the operator makes itself.
_OWN = "default-mig-parted-config"
#: What the ClusterPolicy takes as the default (its CRD).
_DEFAULTS = ("all-disabled", "")
_MANY = 4
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class Layouts:
    """One file of layouts. `name` and `key` are those of the ConfigMap that holds it; both empty for a file alone."""

    document: Document
    root: Item
    path: PathParts = ()
    name: str = ""
    key: str = ""

    @property
    def named(self) -> Mapping[str, Item]:
        """The layouts by name."""
        return pairs(self.root, "mig-configs")


@dataclass(frozen=True)
class _Reader:
    """An operator's values, or a ClusterPolicy, and what it says of the MIG manager's configuration."""

    document: Document
    path: PathParts
    config: Item | None
    name: str
    data: Mapping[str, Item] = field(default_factory=dict)


def check_mig_files(run: Gathered, node: NodeLayout | None) -> Iterator[Finding]:
    """Everything about layouts: who reads them, whether mig-parted takes them, whether the GPUs do."""
    files, unread = _files(run)
    yield from unread
    readers = [reader for document in run.documents for reader in _readers(document)]
    read = {reader.name for reader in readers if reader.name}
    for reader in readers:
        yield from _reader(reader, run, files)
    in_use = [one for one in files if one.name and one.name in read]
    selected = set()
    for document in run.of(Kind.NODE):
        label = pairs(document.root, "metadata", "labels").get(LABEL)
        if label is None or not isinstance(label.value, str) or not label.value:
            continue
        selected.add(label.value)
        names = sorted({name for one in in_use for name in one.named})
        if names and label.value not in names:
            path = ("metadata", "labels", LABEL)
            yield document.found("GF651", path, label, value=label.value, allowed=names)
    for one in files:
        faults = list(_faults(one))
        yield from faults
        if not faults and node is not None:
            yield from _on_node(one, node, selected)


def _files(run: Gathered) -> tuple[list[Layouts], list[Finding]]:
    found: list[Layouts] = []
    unread: list[Finding] = []
    for document in run.of(Kind.LAYOUTS):
        found.append(Layouts(document, document.root))
    holders: list[tuple[Document, str, PathParts]] = [(d, d.name, ("data",)) for d in run.of(Kind.CONFIG_MAP)]
    for document in run.of(Kind.OPERATOR_VALUES):
        where = ("migManager", "config")
        holders.append((document, text_at(document.root, *where, "name"), (*where, "data")))
    for document, name, path in holders:
        for key, item in pairs(document.root, *path).items():
            if not isinstance(item.value, str) or "mig-configs" not in item.value:
                continue
            try:
                root = read_inside(item)
            except YamlError as error:
                unread.append(document.found("GF501", (*path, key), item, line=error.line, fault=str(error)))
                continue
            if root is not None and "mig-configs" in pairs(root):
                found.append(Layouts(document, root, (*path, key), name, key))
    return found, unread


def _readers(document: Document) -> Iterator[_Reader]:
    prefix: PathParts
    if document.kind is Kind.OPERATOR_VALUES:
        prefix = ("migManager", "config")
    elif document.kind is Kind.CLUSTER_POLICY:
        prefix = ("spec", "migManager", "config")
    else:
        return
    config = get(document.root, *prefix)
    data = pairs(config, "data") if getattr(get(config, "create"), "value", None) else {}
    yield _Reader(document, prefix, config, text_at(config, "name"), data)


def _reader(reader: _Reader, run: Gathered, files: list[Layouts]) -> Iterator[Finding]:
    default = get(reader.config, "default")
    if default is not None and isinstance(default.value, str) and default.value not in _DEFAULTS:
        path = (*reader.path, "default")
        yield reader.document.found("GF652", path, default, value=default.value, label=LABEL)
    if not reader.name or reader.name == _OWN:
        return
    maps = [d for d in run.of(Kind.CONFIG_MAP) if d.name == reader.name]
    for document in maps:
        yield from _key(document, ("data",), reader.name)
    if reader.data:
        yield from _key(reader.document, (*reader.path, "data"), reader.name)
    elif not maps:
        names = sorted({one.name for one in files if one.document.kind is Kind.CONFIG_MAP})
        if names:
            near = closest_match(reader.name, names) or (names[0] if len(names) == 1 else None)
            item, path = get(reader.config, "name"), (*reader.path, "name")
            yield reader.document.found("GF530", path, item, value=reader.name, allowed=names, closest=near)


def _key(document: Document, path: PathParts, name: str) -> Iterator[Finding]:
    """The one key that is mounted as the manager's file."""
    keys = pairs(document.root, *path)
    if KEY in keys:
        return
    other = next((k for k, v in keys.items() if isinstance(v.value, str) and "mig-configs" in v.value), None)
    where, item = ((*path, other), keys[other]) if other else (path, None)
    yield document.found("GF650", where, item, value=other or ", ".join(keys) or "no key", name=name, key=KEY)


def _faults(one: Layouts) -> Iterator[Finding]:
    """What mig-parted refuses. One wrong layout makes it refuse the whole file."""
    fault = fault_of_file(one.root)
    if fault is not None:
        yield one.document.found("GF653", (*one.path, *fault.path), fault.item, fault=fault.text)
        return
    for name, item in one.named.items():
        path = (*one.path, "mig-configs", name)
        rows = item.value if isinstance(item.value, list) else []
        if not rows:
            yield one.document.found("GF653", path, item, fault=f"the layout {name} has no entry")
        for i, row in enumerate(rows):
            fault = fault_of_row(row)
            if fault is not None:
                yield one.document.found("GF653", (*path, i, *fault.path), fault.item, fault=fault.text)
        if one.name and not _LABEL_VALUE.fullmatch(name):
            yield one.document.found("GF654", path, item, value=name, label=LABEL)


@dataclass(frozen=True)
class _Misfit:
    """A part of a layout that the GPUs of the node do not take."""

    layout: str
    path: PathParts
    item: Item
    code: str
    value: str
    most: str = ""
    anywhere: bool = True
    """Whether some GPU of the catalogue takes it."""


def _on_node(one: Layouts, node: NodeLayout, selected: set[str]) -> Iterator[Finding]:
    """Places every layout on the node's GPUs.

    NVIDIA's own file has the layouts of all its GPUs side by side. So where some layouts fit, the others may be meant
    for other nodes; unless a node's label selects one, or no GPU takes it.
    """
    model = gpu_model(node.product)
    if model is None:
        return
    misfits: dict[str, list[_Misfit]] = {}
    cuts = [name for name, item in one.named.items() if any(_profiles(row) for row in entries(item))]
    for name, item in one.named.items():
        for i, row in enumerate(entries(item)):
            path = (*one.path, "mig-configs", name, i)
            yield from _devices(one.document, (*path, "devices"), row, node)
            misfit = _misfit(name, path, row, model)
            if misfit is not None:
                misfits.setdefault(name, []).append(misfit)
    others = [name for name in cuts if name not in misfits]
    left = []
    for name, each in misfits.items():
        for misfit in each:
            if others and name not in selected and misfit.anywhere:
                left.append(misfit)
                continue
            known = [f"{p} (up to {n})" for p, n in model.mig_profiles.items()]
            details = {"allowed": known} if misfit.code == "GF311" else {"most": misfit.most} if misfit.most else {}
            yield one.document.found(misfit.code, misfit.path, misfit.item, value=misfit.value, gpu=model.id, **details)
    if left:
        every = list(dict.fromkeys(misfit.layout for misfit in left))
        names = ", ".join(every[:_MANY]) + (f" and {len(every) - _MANY} more" if len(every) > _MANY else "")
        yield one.document.found("GF655", left[0].path, left[0].item, value=names, gpu=model.id)


def _devices(document: Document, path: PathParts, row: Item, node: NodeLayout) -> Iterator[Finding]:
    for i, item in enumerate(entries(row, "devices")):
        if isinstance(item.value, int) and item.value >= node.gpus:
            yield document.found("GF656", (*path, i), item, value=item.value, gpus=node.gpus)


def _profiles(row: Item) -> dict[str, int]:
    if getattr(get(row, "mig-enabled"), "value", None) is not True:
        return {}
    return {k: v.value for k, v in pairs(row, "mig-devices").items() if isinstance(v.value, int) and v.value > 0}


def _misfit(name: str, path: PathParts, row: Item, model: GpuModel) -> _Misfit | None:
    """The first thing in a row that the GPU does not take. A row with a filter is for GPUs that lint cannot tell."""
    wanted = _profiles(row)
    if not wanted or get(row, "device-filter") is not None or any("c." in profile for profile in wanted):
        return None
    inside = get(row, "mig-devices")
    if inside is None:
        return None
    if not model.mig_profiles:
        if model.mig_capable is not False or not entries(row, "devices"):
            return None  # `devices: all` passes over GPUs without MIG
        return _Misfit(name, (*path, "devices"), row, "GF310", name)
    # GPUs that the catalogue does not know may have profiles that it does not know.
    able = [m for m in gpu_models().values() if all(m.mig_profile(profile) for profile in wanted)]
    anywhere = not able or any(fits(other, wanted) is not False for other in able)
    for profile, count in wanted.items():
        most, item, where = most_of(model, profile), pairs(inside)[profile], (*path, "mig-devices", profile)
        if most is None:
            return _Misfit(name, where, item, "GF311", profile, "", anywhere)
        if count > most:
            return _Misfit(name, where, item, "GF312", f"{count} x {profile}", str(most), anywhere)
    if fits(model, wanted) is False:
        text = ", ".join(f"{n} x {p}" for p, n in sorted(wanted.items()))
        return _Misfit(name, (*path, "mig-devices"), inside, "GF312", text, "fewer of them together", anywhere)
    return None
