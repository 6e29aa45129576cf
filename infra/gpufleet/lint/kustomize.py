"""Kustomizations: generators make ConfigMaps, patches change other objects. What cannot be followed is named.

Rules of kubernetes-sigs/kustomize: api/kv/kv.go (literals), types.Patch (targets), generator names with a hash.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from gpufleet.device_plugin.yaml11 import Item, YamlError
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import Document, Kind, entries, get, pairs, read_inside, text_at, texts, truth
from gpufleet.lint.kustomize_names import Renamed, following, left_behind, renamed, renames
from gpufleet.lint.kustomize_patch import Changed, cannot_follow, merge, operate

_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_GROUP = "kustomize.config.k8s.io"
#: Words that show that a part of a Kustomization is about GPUs. Only such parts are named when lint cannot follow them.
_ABOUT_GPUS = re.compile(r"(?i)nvidia|gpu|\bmig\b|time-?slic|device-?plugin")
#: Keys of patches in older Kustomizations, and the one of today.
_MERGED, _OPERATED, _BOTH = "patchesStrategicMerge", "patchesJson6902", "patches"
#: Parts that change objects in ways that lint does not follow.
_OTHER = ("replacements", "transformers", "generators", "vars")


#: Places of patches in objects of Flux and Argo CD.
_PATCHED: tuple[PathParts, ...] = (
    ("spec", "patches"),
    ("spec", "postRenderers", 0, "kustomize", "patches"),
    ("spec", "source", "kustomize", "patches"),
)


@dataclass(frozen=True)
class _Patch:
    """A patch of a Kustomization: its place, the text's root, its file, and what it is for."""

    owner: Document
    path: PathParts
    item: Item
    root: Item | None
    file: str
    target: Item | None


@dataclass
class _Set:
    """All documents, the texts of their files, and what became of them."""

    documents: list[Document]
    texts: Mapping[str, str]
    found: list[Finding] = field(default_factory=list)
    made: list[Document] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    by: dict[int, str] = field(default_factory=dict)
    """Place of a patched document among all -> folder of the Kustomization that patched it."""
    named_by: dict[int, str] = field(default_factory=dict)
    """The same for names and namespaces."""
    left: dict[int, Renamed] = field(default_factory=dict)
    """Place of a document among all -> what the Kustomizations that changed it renamed, as it stands at the end."""


def follow(documents: list[Document], files: Mapping[str, str]) -> tuple[list[Document], list[Finding]]:
    """The documents after all Kustomizations among them."""
    documents = [_known(d) for d in documents]
    owners = [d for d in documents if is_kustomization(d)]
    told = [note for d in documents if d.kind is Kind.OTHER and not is_kustomization(d) for note in _elsewhere(d)]
    if not owners:
        return documents, told
    run = _Set(list(documents), {_plain(name): text for name, text in files.items()}, told)
    depth = {id(owner): len(_reached(owner, run)) for owner in owners}
    for owner in sorted(owners, key=lambda o: depth[id(o)]):  # a base comes before what builds on it
        _generate(owner, run)
        for patch in _patches(owner, run):
            _apply(patch, run)
        _rename(owner, run)
        _name_others(owner, run)
    kept_names = frozenset((d.api_kind, d.name) for d in (*run.documents, *run.made))
    for i, names in run.left.items():
        run.found += left_behind(run.documents[i], names, kept_names)
    kept = [d for d in run.documents if d.file not in run.used]
    return kept + run.made, run.found


def _elsewhere(document: Document) -> Iterator[Finding]:
    """Patches in objects of other tools (Flux, Argo CD): what they change is in a repository, or in a chart."""
    for path in _PATCHED:
        for i, row in enumerate(entries(document.root, *path)):
            if _about(row):
                why = f"What it changes is not here; {document.api_kind} takes it from elsewhere."
                yield _note(document, (*path, i), row, "This patch", why)


def _known(document: Document) -> Document:
    """A Kustomization needs no kind; its file's name says what it is."""
    unknown = document.kind is Kind.UNKNOWN and is_kustomization(document)
    return replace(document, kind=Kind.OTHER) if unknown else document


def is_kustomization(document: Document) -> bool:
    """Whether a document is a Kustomization; the file's name says so where its kind does not."""
    group = text_at(document.root, "apiVersion").partition("/")[0]
    if document.api_kind in ("Kustomization", "Component"):
        return group in ("", _GROUP)
    return not document.api_kind and posixpath.basename(_plain(document.file)) in _FILES


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return posixpath.normpath(name.replace("\\", "/"))


def _beside(owner: Document, path: str) -> str:
    """The name of a file that a Kustomization calls by a path from its own folder."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(_plain(owner.file)), path))


def _given(owner: Document, path: str, run: _Set) -> str | None:
    """The name of such a file among what was given."""
    wanted = _beside(owner, path)
    return next((d.file for d in run.documents if _plain(d.file) == wanted), None)


def _about(item: Item | None) -> bool:
    return any(_ABOUT_GPUS.search(text) for text in texts(item))


def _note(document: Document, path: PathParts, item: Item | None, what: str, why: str) -> Finding:
    return document.found("GF680", path, item, what=what, because=why)


# Generators.


def _generate(owner: Document, run: _Set) -> None:
    for i, row in enumerate(entries(owner.root, "configMapGenerator")):
        path: PathParts = ("configMapGenerator", i)
        name = text_at(row, "name")
        namespace = text_at(row, "namespace") or text_at(owner.root, "namespace")
        whole = text_at(row, "behavior") in ("", "create")
        data: dict[str, Item] = {}
        from_files: list[tuple[PathParts, str]] = []
        for item in entries(row, "literals"):
            key, value = _literal(item)
            if key:
                data[key] = value
        for j, item in enumerate(entries(row, "files")):
            key, _, place = str(item.value).rpartition("=")
            key = key or posixpath.basename(place)
            file = _given(owner, place, run)
            text = run.texts.get(_plain(file)) if file else None
            if file is None or text is None:
                if _about(row):
                    why = f"The file {place} is not among what was given."
                    run.found.append(_note(owner, (*path, "files", j), item, "This file of a generator", why))
                continue
            run.used.add(file)
            from_files.append((("data", key), file))
            data[key] = Item(text, 0, text=text, style="|")  # its first line is line 1 of the file
        made = _config_map(owner, name if whole else "", namespace, data)
        made = replace(made, prefix=path, from_files=tuple(from_files))
        base = next((i for i, d in enumerate(run.made) if name and name in (d.name, d.given_name)), None)
        if whole or base is None:
            run.made.append(made)
        else:
            run.made[base] = _together(run.made[base], made)
        hashed = whole and truth(row, "options", "disableNameSuffixHash") is not True
        hashed = hashed and truth(owner.root, "generatorOptions", "disableNameSuffixHash") is not True
        if hashed and name and not entries(owner.root, "configurations"):
            run.found += _hash(owner, path, row, name, run)


def _literal(item: Item) -> tuple[str, Item]:
    """Key and value of `key=value`; quotes around the whole value fall away."""
    key, equals, value = str(item.value).partition("=")
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return (key if equals else ""), replace(item, value=value)


def _config_map(owner: Document, name: str, namespace: str, data: dict[str, Item]) -> Document:
    """A ConfigMap. One that is a part of another has no name, since nobody can tell which keys it ends with."""
    line = owner.root.line
    root = {
        "apiVersion": Item("v1", line),
        "kind": Item("ConfigMap", line),
        "metadata": Item({"name": Item(name, line), "namespace": Item(namespace, line)}, line),
        "data": Item(data, line),
    }
    return Document(owner.file, Item(root, line), "", Kind.CONFIG_MAP)


def _together(base: Document, more: Document) -> Document:
    """A generated ConfigMap with the keys that a generator further up merges into it."""
    keys = {**pairs(base.root, "data"), **pairs(more.root, "data")}
    root = replace(base.root, value={**pairs(base.root), "data": Item(keys, base.root.line)})
    theirs = [(("data", key), more.file_of(("data", key))) for key in pairs(more.root, "data")]
    return replace(base, root=root, from_files=(*base.from_files, *theirs))


def _hash(owner: Document, path: PathParts, row: Item, name: str, run: _Set) -> Iterator[Finding]:
    """Kustomize corrects names in pods. In values and ClusterPolicies it leaves them as they are."""
    for document in run.documents:
        prefix: PathParts = ("spec",) if document.kind is Kind.CLUSTER_POLICY else ()
        if document.kind not in (Kind.CLUSTER_POLICY, Kind.OPERATOR_VALUES, Kind.CHART_VALUES):
            continue
        places: list[PathParts] = [("devicePlugin", "config", "name"), ("migManager", "config", "name")]
        if document.kind is Kind.CHART_VALUES:
            places = [("config", "name")]
        if any(text_at(document.root, *prefix, *place) == name for place in places):
            yield owner.found("GF681", (*path, "name"), get(row, "name"), value=name, file=document.file)
            return


# Patches.


def _patches(owner: Document, run: _Set) -> Iterator[_Patch]:
    for key in (_BOTH, _MERGED, _OPERATED):
        for i, row in enumerate(entries(owner.root, key)):
            path: PathParts = (key, i)
            target = get(row, "target")
            inline = row if key == _MERGED else get(row, "patch")
            place = text_at(row, "path")
            if key == _MERGED and isinstance(row.value, str) and "\n" not in row.value and ":" not in row.value:
                inline, place = None, row.value
            if inline is not None and isinstance(inline.value, str):
                where = path if key == _MERGED else (*path, "patch")
                try:
                    yield _Patch(owner, where, inline, read_inside(inline), owner.file, target)
                except YamlError as error:
                    fault = owner.found("GF501", where, inline, line=error.line, fault=str(error))
                    run.found.append(fault)
            elif place:
                file = _given(owner, place, run)
                if file is not None:
                    yield from _of_file(owner, path, row, file, target, run)
                elif _about(row):
                    why = f"The file {place} is not among what was given."
                    run.found.append(_note(owner, path, row, "This patch", why))


def _of_file(
    owner: Document, path: PathParts, row: Item, file: str, target: Item | None, run: _Set
) -> Iterator[_Patch]:
    for document in [d for d in run.documents if d.file == file]:
        yield _Patch(owner, path, row, document.root, file, target)


def _apply(patch: _Patch, run: _Set) -> None:
    """Changes the objects that a patch points at, or says why not."""
    if patch.root is None:
        return
    why = cannot_follow(patch.root)
    found: list[int] = []
    if why is None:
        folder = posixpath.dirname(_plain(patch.owner.file))
        files = _scope(patch.owner, run)
        targets = [
            i
            for i, d in enumerate(run.documents)
            if _plain(d.file) in files and d.file != patch.file and _is_target(d, patch)
        ]
        # Another Kustomization beside this one makes another variant of the same object. One is followed.
        found = [i for i in targets if i not in run.by or _builds_on(patch.owner, run.by[i], run)]
        why = None if found else "What it changes is not among what was given."
        if targets and not found:
            why = "Another Kustomization changes the same object. Lint each of them alone."
        for i in found:
            changed = _changed(run.documents[i], patch)
            if changed is None:
                why = "The object has no such place."
                continue
            run.documents[i] = _with(run.documents[i], changed, patch.file)
            run.by[i] = folder
    if why is not None and _about(patch.root):
        run.found.append(_note(patch.owner, patch.path, patch.item, "This patch", why))
    elif found and patch.file != patch.owner.file:
        run.used.add(patch.file)  # a part of an object; what it means shows in the whole


def _changed(document: Document, patch: _Patch) -> Changed | None:
    if patch.root is None:
        return None
    if isinstance(patch.root.value, list):
        return operate(document.root, patch.root)
    built_in = "." not in text_at(document.root, "apiVersion").rpartition("/")[0].removesuffix(".k8s.io")
    return merge(document.root, patch.root, lists=built_in)


def _with(document: Document, changed: Changed, file: str) -> Document:
    from_files = document.from_files
    if file != document.file:
        from_files = (*from_files, *((path, file) for path in changed.places))
    return replace(document, root=changed.root, shift=None, from_files=from_files)


def _is_target(document: Document, patch: _Patch) -> bool:
    """A patch without a target is for the object whose kind and name it has."""
    if not document.api_kind or is_kustomization(document):
        return False
    wanted = patch.target
    if wanted is None:
        root = patch.root
        name = text_at(root, "metadata", "name")
        return document.api_kind == text_at(root, "kind") and name in (document.name, document.given_name)
    if get(wanted, "labelSelector") is not None or get(wanted, "annotationSelector") is not None:
        return False
    group, _, version = text_at(document.root, "apiVersion").rpartition("/")
    have = {
        "group": group,
        "version": version,
        "kind": document.api_kind,
        "namespace": document.namespace,
    }
    names = {document.name, document.given_name or document.name}
    return any(_fits(text_at(wanted, "name"), name) for name in names) and all(
        _fits(text_at(wanted, key), value) for key, value in have.items()
    )


def _fits(pattern: str, value: str) -> bool:
    try:
        return not pattern or re.fullmatch(pattern, value) is not None
    except re.error:
        return False


def _reached(owner: Document, run: _Set) -> set[str]:
    """The files that a Kustomization builds on, its own among them."""
    by_name = {_plain(d.file): d for d in run.documents if is_kustomization(d)}
    found: set[str] = set()
    waiting = [owner]
    while waiting:
        one = waiting.pop()
        if _plain(one.file) in found:
            continue
        found.add(_plain(one.file))
        for key in ("resources", "bases", "components"):
            for item in entries(one.root, key):
                place = _beside(one, str(item.value))
                found_here = [by_name[p] for p in (posixpath.join(place, f) for f in _FILES) if p in by_name]
                waiting += found_here
                if not found_here:
                    found.add(place)
    return found


def _scope(owner: Document, run: _Set) -> set[str]:
    """The files whose objects a Kustomization changes. A component changes those of whoever takes it in."""
    if owner.api_kind != "Component":
        return _reached(owner, run)
    every = (_reached(one, run) for one in run.documents if is_kustomization(one))
    return {file for files in every if _plain(owner.file) in files for file in files}


def _builds_on(owner: Document, folder: str, run: _Set) -> bool:
    mine = posixpath.dirname(_plain(owner.file))
    return mine == folder or any(posixpath.join(folder, f) in _reached(owner, run) for f in _FILES)


# Names.


def _rename(owner: Document, run: _Set) -> None:
    """Names and namespaces of everything that a Kustomization builds on."""
    if not renames(owner):
        return
    folder, files = posixpath.dirname(_plain(owner.file)), _scope(owner, run)
    names: dict[tuple[str, str], str] = {}
    mine = []
    for i, document in enumerate(run.documents):
        free = i not in run.named_by or _builds_on(owner, run.named_by[i], run)
        if document.api_kind and _plain(document.file) in files and not is_kustomization(document) and free:
            run.documents[i] = made = renamed(owner, document)
            run.named_by[i] = folder
            names[document.api_kind, document.name] = made.name
            mine.append(i)
    for i, document in enumerate(run.made):
        if _plain(document.file) in files and document.name:
            run.made[i] = made = renamed(owner, document)
            names["ConfigMap", document.name] = made.name
    names = {key: new for key, new in names.items() if key[1] != new}
    for i in mine:
        run.documents[i] = following(run.documents[i], names)
        if not entries(owner.root, "configurations"):
            before = {(kind, old): names.get((kind, mid), mid) for (kind, old), mid in run.left.get(i, {}).items()}
            run.left[i] = {**before, **names}


def _name_others(owner: Document, run: _Set) -> None:
    for key in _OTHER:
        item = get(owner.root, key)
        if item is not None and _about(item):
            run.found.append(_note(owner, (key,), item, f"The part {key}", "Lint does not follow it."))
