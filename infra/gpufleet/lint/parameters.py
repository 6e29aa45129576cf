"""Single values that objects of Helm controllers set by name, as `helm --set` does: `a.b[0].c` = `text`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.lint.document import Document, entries, get, pairs, text_at, truth

_STEP = re.compile(r"((?:\\.|[^.\[\]\\])+)|\[(\d+)\]")
_TYPED = {"true": True, "false": False, "null": None}
_MOST_ENTRIES = 100


def parameters(document: Document, *path: str | int) -> list[tuple[str, Item]]:
    """The parameters beside the values of an Argo CD source (a list), or of a HelmChart (`set`, a map)."""
    found = [
        (text_at(entry, "name"), _typed(value) if truth(entry, "forceString") is not True else value)
        for entry in entries(document.root, *path, "parameters")
        for value in (get(entry, "value"),)
        if text_at(entry, "name") and value is not None
    ]
    return found + [(name, _typed(value)) for name, value in pairs(document.root, *path, "set").items()]


def _typed(item: Item) -> Item:
    """Helm reads true, false, null and whole numbers out of the text."""
    if not isinstance(item.value, str):
        return item
    if item.value in _TYPED:
        return replace(item, value=_TYPED[item.value])
    return replace(item, value=int(item.value)) if re.fullmatch(r"-?(0|[1-9]\d{0,17})", item.value) else item


def with_parameters(root: Item | None, given: Iterable[tuple[str, Item]]) -> Item | None:
    """The values with parameters applied. Without parameters the same object is returned."""
    for name, value in given:
        steps: list[str | int] = [
            int(m[2]) if m[2] is not None else re.sub(r"\\(.)", r"\1", m[1]) for m in _STEP.finditer(name)
        ]
        if steps:
            root = _set(root or Item({}, value.line), steps, value)
    return root


def _set(item: Item | None, steps: list[str | int], value: Item) -> Item:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        listed = list(item.value) if item is not None and isinstance(item.value, list) else []
        if step < _MOST_ENTRIES:
            listed += [Item(None, value.line) for _ in range(step + 1 - len(listed))]
            listed[step] = _set(listed[step], rest, value)
        return replace(item or Item(None, value.line), value=listed)
    inside = dict(item.value) if item is not None and isinstance(item.value, dict) else {}
    inside[step] = _set(inside.get(step), rest, value)
    return replace(item or Item(None, value.line, value.line), value=inside)
