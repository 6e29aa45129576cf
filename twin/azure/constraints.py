"""What the real provider checks by itself, before any call: required, length, pattern, minimum, maximum.

It does not check enum members (the service does) and it drops unknown properties silently. Here they are
refused, so that a test notices; that is the one deliberate difference.
Sources: pulumi-azure-native provider (validateType); REST specification of containerservice 2025-09-01
(agentPoolName, upgrade settings, disk size), of resources and of network.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

from . import schema
from .wire import Unknown

# property path (list positions left out) -> (kind, limit)
PATTERNS: dict[tuple[str, str], str] = {
    ("AgentPool", "agentPoolName"): r"^[a-z][a-z0-9]{0,11}$",
    ("ManagedCluster", "agentPoolProfiles.name"): r"^[a-z][a-z0-9]{0,11}$",
    ("ManagedCluster", "resourceName"): r"^[a-zA-Z0-9]$|^[a-zA-Z0-9][-_a-zA-Z0-9]{0,61}[a-zA-Z0-9]$",
    ("AgentPool", "resourceName"): r"^[a-zA-Z0-9]$|^[a-zA-Z0-9][-_a-zA-Z0-9]{0,61}[a-zA-Z0-9]$",
    ("ResourceGroup", "resourceGroupName"): r"^[-\w\._\(\)]+$",
}
LENGTHS: dict[str, tuple[int, int]] = {"resourceGroupName": (1, 90), "resourceName": (1, 63)}
RANGES: dict[str, tuple[int, int]] = {
    "upgradeSettings.drainTimeoutInMinutes": (1, 1440),
    "upgradeSettings.nodeSoakDurationInMinutes": (0, 30),
    "osDiskSizeGB": (0, 2048),
}

Failure = tuple[str, str]


def check(kind: str, props: dict[str, Any]) -> list[Failure]:
    """All (property, reason) pairs at once; unknown values are skipped."""
    fields = schema.resource_fields(kind)
    return _object(kind, fields, props, "", "")


def _object(kind: str, fields: schema.Fields, value: dict[str, Any], path: str, flat: str) -> list[Failure]:
    out: list[Failure] = []
    for name in sorted(fields.required - value.keys()):
        out.append((_join(path, name), f"missing required property '{_join(path, name)}'"))
    for name, child in value.items():
        where, flat_where = _join(path, name), _join(flat, name)
        if name not in fields.shapes:
            near = difflib.get_close_matches(name, fields.shapes, 1)
            out.append((where, f"unknown property '{where}' of {kind}"
                               + (f", did you mean '{_join(path, near[0])}'?" if near else "")
                               + " (the real provider would drop it silently)"))
        else:
            out += _value(kind, schema.shape(fields.shapes[name]), child, where, flat_where)
    return out


def _value(kind: str, shape: schema.Shape, value: Any, path: str, flat: str) -> list[Failure]:
    if value is None or isinstance(value, Unknown):
        return []
    if shape.kind == "object":
        if not isinstance(value, dict):
            return [(path, f"'{path}' should be an object")]
        return _object(kind, schema.object_fields(shape), value, path, flat)
    if shape.kind == "list":
        if not isinstance(value, list):
            return [(path, f"'{path}' should be an array")]
        inner = schema.shape(shape.child)
        return [f for i, child in enumerate(value) for f in _value(kind, inner, child, f"{path}[{i}]", flat)]
    if shape.kind == "map":
        if not isinstance(value, dict):
            return [(path, f"'{path}' should be a map")]
        inner = schema.shape(shape.child)
        return [f for key, child in value.items() for f in _value(kind, inner, child, f"{path}.{key}", f"{flat}.*")]
    return _scalar(kind, shape, value, path, flat)


def _scalar(kind: str, shape: schema.Shape, value: Any, path: str, flat: str) -> list[Failure]:
    wanted = shape.scalar
    good = {int: isinstance(value, int) and not isinstance(value, bool), str: isinstance(value, str),
            bool: isinstance(value, bool), float: isinstance(value, (int, float)) and not isinstance(value, bool)}
    if wanted in good and not good[wanted]:
        return [(path, f"'{path}' should be of type {wanted.__name__}, got {type(value).__name__}")]
    out: list[Failure] = []
    pattern = PATTERNS.get((kind, flat))
    if pattern and not re.search(pattern, value):
        out.append((path, f"'{path}' does not match expression '{pattern}'"))
    if flat in LENGTHS and not LENGTHS[flat][0] <= len(value) <= LENGTHS[flat][1]:
        out.append((path, f"'{path}' should have a length of {LENGTHS[flat][0]} to {LENGTHS[flat][1]}"))
    for suffix, (low, high) in RANGES.items():
        if (flat == suffix or flat.endswith("." + suffix)) and not low <= value <= high:
            out.append((path, f"'{path}' should be in the range of {low} to {high}"))
    return out


def enum_failures(kind: str, props: dict[str, Any]) -> list[tuple[str, Any, tuple[str, ...]]]:
    """(path, value, allowed) of each value that is not a member of its enum: for the service, not for Check."""
    out: list[tuple[str, Any, tuple[str, ...]]] = []

    def walk(shape: schema.Shape, value: Any, path: str) -> None:
        if isinstance(value, Unknown) or value is None:
            return
        if shape.kind == "object" and isinstance(value, dict):
            fields = schema.object_fields(shape)
            for name, child in value.items():
                if name in fields.shapes:
                    walk(schema.shape(fields.shapes[name]), child, _join(path, name))
        elif shape.kind == "list" and isinstance(value, list):
            for index, child in enumerate(value):
                walk(schema.shape(shape.child), child, f"{path}[{index}]")
        elif shape.allowed and value not in shape.allowed:
            out.append((path, value, shape.allowed))

    for name, annotation in schema.resource_fields(kind).shapes.items():
        if name in props:
            walk(schema.shape(annotation), props[name], name)
    return out


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
