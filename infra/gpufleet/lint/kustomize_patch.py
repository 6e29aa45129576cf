"""Patches as Kustomize applies them: strategic merge, and operations (JSON Patch, RFC 6902)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import MOST_LEVELS, entries, get, pairs, text_at

#: Lists of Kubernetes' own objects that are merged entry by entry, with the key that tells entries apart (Kubernetes
#: API, patchMergeKey). All other lists are replaced.
_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "resourceClaims": "name",
}
_DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder", "$deleteFromPrimitiveList")
_OPERATIONS = ("add", "replace", "remove", "test")


@dataclass(frozen=True)
class Changed:
    """An object after a patch, and the places that have their value from it."""

    root: Item
    places: tuple[PathParts, ...]


def cannot_follow(patch: Item) -> str | None:
    """Why a patch is not followed, or None."""
    if isinstance(patch.value, list):
        for row in patch.value:
            if text_at(row, "op") not in _OPERATIONS:
                return f"Lint does not follow the operation {text_at(row, 'op') or '(none)'}."
        return None
    if _has_directive(patch, 0):
        return "Lint does not follow directives such as $patch."
    return None


def _has_directive(item: Item, level: int) -> bool:
    if level > MOST_LEVELS:
        return True
    inside = item.value
    if isinstance(inside, list):
        return any(_has_directive(entry, level + 1) for entry in inside)
    if not isinstance(inside, dict):
        return False
    return any(key.startswith(_DIRECTIVES) or _has_directive(value, level + 1) for key, value in inside.items())


def merge(root: Item, patch: Item, *, lists: bool) -> Changed:
    """Strategic merge; `lists`: those of Kubernetes' own objects are merged by their keys."""
    places: list[PathParts] = []
    made = _merge(root, patch, (), places, "", lists)
    return Changed(made, tuple(p for p in places if p[:1] not in (("apiVersion",), ("kind",))))


def _merge(old: Item, new: Item, path: PathParts, places: list[PathParts], key: str, lists: bool) -> Item:
    if isinstance(old.value, dict) and isinstance(new.value, dict):
        inside = dict(old.value)
        for name, item in new.value.items():
            here = (*path, name)
            if item.value is None:
                inside.pop(name, None)
            elif name in inside:
                inside[name] = _merge(inside[name], item, here, places, name, lists)
            else:
                places.append(here)
                inside[name] = item
        return replace(old, value=inside)
    by = _MERGE_KEYS.get(key) if lists else None
    if by and isinstance(old.value, list) and isinstance(new.value, list):
        return replace(old, value=_by_key(old.value, new.value, by, path, places, lists))
    if old.value != new.value:
        places.append(path)
    return new


def _by_key(
    old: list[Item], new: list[Item], by: str, path: PathParts, places: list[PathParts], lists: bool
) -> list[Item]:
    found = list(old)
    for entry in new:
        name = getattr(get(entry, by), "value", None)
        same = (i for i, other in enumerate(found) if getattr(get(other, by), "value", None) == name)
        at = next(same, None) if name is not None else None
        if at is None:
            places.append((*path, len(found)))
            found.append(entry)
        else:
            found[at] = _merge(found[at], entry, (*path, at), places, "", lists)
    return found


def operate(root: Item, patch: Item) -> Changed | None:
    """All operations in turn; None where one has no place in the object."""
    places: list[PathParts] = []
    for row in entries(patch):
        steps = [s.replace("~1", "/").replace("~0", "~") for s in text_at(row, "path").split("/")[1:]]
        if text_at(row, "op") == "test":
            continue
        value = get(row, "value")
        if not steps or (value is None and text_at(row, "op") != "remove"):
            return None
        made = _operate(root, steps, text_at(row, "op"), value, (), places)
        if made is None:
            return None
        root = made
    return Changed(root, tuple(places))


def _operate(
    item: Item, steps: list[str], operation: str, value: Item | None, path: PathParts, places: list[PathParts]
) -> Item | None:
    step, rest = steps[0], steps[1:]
    inside: Mapping[str, Item] = pairs(item)
    if isinstance(item.value, dict):
        if rest:
            below = inside.get(step)
            made = _operate(below, rest, operation, value, (*path, step), places) if below is not None else None
            return None if made is None else replace(item, value={**inside, step: made})
        if operation != "add" and step not in inside:
            return None
        if value is None:
            return replace(item, value={k: v for k, v in inside.items() if k != step})
        places.append((*path, step))
        return replace(item, value={**inside, step: value})
    if not isinstance(item.value, list):
        return None
    listed = list(item.value)
    at = len(listed) if step == "-" else int(step) if step.isdigit() else -1
    if rest:
        made = _operate(listed[at], rest, operation, value, (*path, at), places) if 0 <= at < len(listed) else None
        if made is None:
            return None
        listed[at] = made
    elif operation == "add" and 0 <= at <= len(listed) and value is not None:
        listed.insert(at, value)
        places.append((*path, at))
    elif operation == "replace" and 0 <= at < len(listed) and value is not None:
        listed[at] = value
        places.append((*path, at))
    elif operation == "remove" and 0 <= at < len(listed):
        del listed[at]
    else:
        return None
    return replace(item, value=listed)
