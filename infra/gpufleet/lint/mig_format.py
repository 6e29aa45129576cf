"""What mig-parted takes as a file of layouts (NVIDIA/mig-parted v0.15.0, api/spec/v1/spec.go, pkg/types)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import closest_match
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import get, pairs

_FILE_KEYS = ("version", "mig-configs")
_ROW_KEYS = ("device-filter", "devices", "mig-enabled", "mig-devices")
_REQUIRED = ("devices", "mig-enabled")
#: `1g.10gb`, `1c.2g.10gb`, `1g.10gb+me`, `1g.24gb-me`.
_PROFILE = re.compile(r"(\d+c\.)?\d+g\.\d+gb([+-][a-z]+([.,][a-z]+)*)?")


@dataclass(frozen=True)
class Fault:
    """Why a file is refused, and the place."""

    path: PathParts
    item: Item
    text: str


def fault_of_file(root: Item) -> Fault | None:
    """What is wrong with the frame of a file."""
    version = get(root, "version")
    if version is None:
        return Fault((), root, "the key version is missing")
    if version.value != "v1":
        return Fault(("version",), version, f"the version is v1, not {version.text}")
    unknown = _unknown(root, _FILE_KEYS)
    if unknown is not None:
        return unknown
    layouts = get(root, "mig-configs")
    if layouts is None or not isinstance(layouts.value, dict) or not layouts.value:
        return Fault(("mig-configs",), layouts or root, "mig-configs holds no layout")
    return None


def fault_of_row(row: Item) -> Fault | None:
    """What is wrong with one entry of a layout."""
    if not isinstance(row.value, dict):
        return Fault((), row, "an entry is a map with devices and mig-enabled")
    unknown = _unknown(row, _ROW_KEYS)
    if unknown is not None:
        return unknown
    for key in _REQUIRED:
        if key not in row.value:
            return Fault((), row, f"the key {key} is missing")
    enabled = row.value["mig-enabled"]
    if not isinstance(enabled.value, bool):
        return Fault(("mig-enabled",), enabled, f"mig-enabled is true or false, not {enabled.text}")
    return _filter(get(row, "device-filter")) or _devices(row.value["devices"]) or _instances(row, enabled.value)


def _unknown(item: Item, known: tuple[str, ...]) -> Fault | None:
    for key, value in pairs(item).items():
        if key not in known:
            near = closest_match(key, known)
            return Fault((key,), value, f"it has no key {key}" + (f"; did you mean {near}?" if near else ""))
    return None


def _filter(item: Item | None) -> Fault | None:
    if item is None or item.value is None:
        return None
    listed = item.value if isinstance(item.value, list) else [item]
    for one in listed:
        if not isinstance(one.value, str):
            return Fault(("device-filter",), one, f"device-filter takes text; put {one.text} in quotes")
    return None


def _devices(item: Item) -> Fault | None:
    whole = isinstance(item.value, list) and all(
        isinstance(one.value, int) and not isinstance(one.value, bool) for one in item.value
    )
    if item.value == "all" or whole:
        return None
    return Fault(("devices",), item, "devices is all or a list of numbers, such as [0, 1]")


def _instances(row: Item, enabled: bool) -> Fault | None:
    instances = get(row, "mig-devices")
    inside = pairs(instances)
    if instances is not None and instances.value is not None and not isinstance(instances.value, dict):
        return Fault(("mig-devices",), instances, "mig-devices is a map of profiles with their numbers")
    if enabled and (instances is None or instances.value is None):
        return Fault((), row, "mig-devices is missing although mig-enabled is true")
    for profile, number in inside.items():
        path = ("mig-devices", profile)
        if not _PROFILE.fullmatch(profile):
            return Fault(path, number, f"{profile} has not the form of a profile, such as 1g.10gb")
        if not isinstance(number.value, int) or isinstance(number.value, bool) or number.value < 0:
            return Fault(path, number, f"the number of {profile} is a whole number, not {number.text}")
    if inside and not any(number.value for number in inside.values()):
        return Fault(("mig-devices",), instances or row, "all numbers are 0")
    if inside and not enabled:
        return Fault(("mig-devices",), instances or row, "mig-devices is set although mig-enabled is false")
    return None
