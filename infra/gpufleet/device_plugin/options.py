"""The option table of the device plugin: places in the file, flags, environment variables, allowed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Keys of levels that ignore case (Go structs), and of levels that do not (custom unmarshallers).
TOP = ("version", "flags", "resources", "sharing", "imex")
SHARING = ("timeSlicing", "mps")
REPLICATED = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
REPLICATED_ROW = ("name", "replicas", "rename", "devices")
RESOURCES = ("gpus", "mig")
RESOURCE_ROW = ("pattern", "name")


@dataclass(frozen=True)
class Option:
    """One option; `path` is None where the file has no place for it."""

    path: str | None
    type: str
    flags: tuple[str, ...]
    env: tuple[str, ...]
    default: Any
    allowed: tuple[str, ...] = ()


@cache
def options() -> tuple[Option, ...]:
    """All options, in the order of the table."""
    text = resources.files(__package__).joinpath("options.yaml").read_text(encoding="utf-8")
    return tuple(
        Option(
            row["path"],
            row["type"],
            tuple(row["flags"]),
            tuple(row["env"]),
            row["default"],
            tuple(row.get("allowed", ())),
        )
        for row in yaml.load(text, Loader=_LOADER)
    )


@cache
def by_path() -> Mapping[str, Option]:
    """Options that have a place in the file, by that place."""
    return {o.path: o for o in options() if o.path is not None}


@cache
def keys_of(parent: str) -> tuple[str, ...]:
    """The keys that the file may have under a struct level such as `flags` or `flags.plugin`."""
    if parent == "":
        return TOP
    if parent == "sharing":
        return SHARING
    if parent == "resources":
        return RESOURCES
    depth = parent.count(".") + 1
    return tuple(dict.fromkeys(p.split(".")[depth] for p in by_path() if p.startswith(parent + ".")))


def takes(place: str, value: Any) -> bool:
    """Whether a place of the schema could hold a value of this shape (map, list or scalar); null fits everywhere."""
    last = place.rpartition(".")[2]
    if place in by_path():
        lists = by_path()[place].type in ("strings", "ints")
        return isinstance(value, list) if lists and not isinstance(value, str) else not isinstance(value, (dict, list))
    if last == "devices":
        return not isinstance(value, dict)
    if place == "resources" or last in (*SHARING, "flags", "sharing", "imex", "plugin", "gfd"):
        return value is None or isinstance(value, dict)
    if last == "resources" or place.startswith("resources."):
        return value is None or isinstance(value, list)
    return not isinstance(value, (dict, list))


@cache
def places_of(key: str) -> tuple[str, ...]:
    """Every place of the schema that has a key of this spelling, ignoring case; used to say where a key belongs."""
    replicated = tuple(f"sharing.{s}" for s in SHARING)
    known = [(parent, k) for parent in ("", "sharing", "resources") for k in keys_of(parent)]
    known += [tuple(p.rsplit(".", 1)) for p in by_path()]  # type: ignore[misc]
    known += [("flags", "plugin"), ("flags", "gfd")]
    known += [(parent, k) for parent in replicated for k in REPLICATED]
    known += [(f"{parent}.resources[]", k) for parent in replicated for k in REPLICATED_ROW]
    return tuple(parent for parent, k in known if k.lower() == key.lower())
