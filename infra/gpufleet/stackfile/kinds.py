"""What a stack file can be made of: kinds of clusters and methods of sharing, each registered by its own module.

The stack file's model is put together from them at its first use, so a new kind of cluster or a new method is known
as soon as its module is imported (`gpufleet.places`, `gpufleet.methods`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.stackfile.base import Model


@dataclass(frozen=True)
class Kind:
    """A kind of cluster as the stack file sees it.

    `marks` are keys that only its pools have. `stand_ins` maps a section (`cluster`, `pools`, and parts such as
    `cluster.existing`) to its required keys, each with what stands in for it while the rest of a broken file is looked
    at. `neither` maps keys of which a pool
    needs one to what stands in where it has none.
    """

    name: str
    stack: type[Model]
    marks: frozenset[str] = frozenset()
    stand_ins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    neither: Mapping[frozenset[str], Mapping[str, Any]] = field(default_factory=dict)


KINDS: dict[str, Kind] = {}
METHODS: dict[str, type[Model]] = {}
_on_change: list[Callable[[], None]] = []


def add_kind(kind: Kind) -> None:
    """Makes `cluster.kind: <name>` known."""
    KINDS[kind.name] = kind
    _changed()


def add_method(name: str, model: type[Model]) -> None:
    """Makes `strategy: <name>` known."""
    METHODS[name] = model
    _changed()


def remove_kind(name: str) -> None:
    """Forgets a kind of cluster; for tests that bring one of their own."""
    KINDS.pop(name, None)
    _changed()


def remove_method(name: str) -> None:
    """Forgets a method; for tests that bring one of their own."""
    METHODS.pop(name, None)
    _changed()


def on_change(forget: Callable[[], None]) -> None:
    """Calls `forget` whenever kinds or methods change: what was put together from them is stale."""
    _on_change.append(forget)


def _changed() -> None:
    for forget in _on_change:
        forget()
