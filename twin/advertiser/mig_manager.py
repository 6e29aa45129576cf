"""The operator's MIG manager: from a node's label to the layout of its GPUs. Pure.

It applies what the label nvidia.com/mig.config names and says in nvidia.com/mig.config.state how that went. The name
is looked up in the file that its pod mounts (`config.yaml` of the operator's migManager.config) or, where there is
none, in what it generates for the node's own GPUs. Kinder than the real one: a change takes no time and stops nobody,
plugins outside the operator see it too, and one that fails for any GPU changes none.
Source: reference A6 (NVIDIA/mig-parted v0.15.0, api/spec/v1: a strict reader; fit is found out when it is applied).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from . import mig
from .discovery import MIG_DISABLED
from .offer import Hardware, product

STATE = "nvidia.com/mig.config.state"
DEFAULT_ENV = "TWIN_MIG_DEFAULT"  # how the stand-in's chart tells what the operator reads in its ClusterPolicy


class SpecError(Exception):
    """The layout cannot be applied; nothing changes."""


@dataclass(frozen=True)
class Entry:
    """What to do with some of a node's GPUs. `profiles`: None for MIG off. `devices`, `models`: None for all."""

    profiles: tuple[str, ...] | None
    devices: tuple[int, ...] | None = None
    models: tuple[str, ...] | None = None  # PCI device ids as in a device-filter: 0x20B010DE


Specs = Mapping[str, list[Entry]]


def generated(table: mig.Table) -> Specs:
    """The configurations that the MIG manager makes for a model by itself: one per profile and three more."""
    kinds = [next((one for one in table if one.startswith(kind)), None) for kind in ("1g.", "1g.", "2g.", "3g.")]
    spread = tuple(one for one in kinds if one)
    out = {MIG_DISABLED: [Entry(None)], "all-enabled": [Entry(())], "all-balanced": [Entry(spread)]}
    return out | {"all-" + one.replace("+", "."): [Entry((one,) * most)] for one, most in table.items()}


def parse(text: str) -> Specs:
    """The configurations of a `config.yaml`, read as strictly as mig-parted reads it. Raises SpecError."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SpecError("error parsing the configuration: " + " ".join(str(error).split())) from error
    top = _known(document, ("version", "mig-configs"), "the configuration")
    if top.get("version") != "v1":
        raise SpecError(f"unknown version: {top.get('version')}")
    configs = top.get("mig-configs")
    if not isinstance(configs, dict) or not all(isinstance(entries, list) for entries in configs.values()):
        raise SpecError("mig-configs must be a map of names to lists")
    return {str(name): [_entry(entry, str(name)) for entry in entries] for name, entries in configs.items()}


def _known(value: Any, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SpecError(f"{where} must be a map")
    if unknown := [str(key) for key in value if key not in keys]:
        raise SpecError(f"unexpected field in {where}: {unknown[0]}")
    return value


def _entry(value: Any, name: str) -> Entry:
    fields = _known(value, ("devices", "device-filter", "mig-enabled", "mig-devices"), name)
    devices, enabled, wanted = fields.get("devices"), fields.get("mig-enabled"), fields.get("mig-devices")
    if devices != "all" and not (isinstance(devices, list) and all(type(one) is int for one in devices)):
        raise SpecError(f"{name}: devices must be 'all' or a list of numbers")
    if not isinstance(enabled, bool):
        raise SpecError(f"{name}: mig-enabled must be true or false")
    if enabled != isinstance(wanted, dict):
        raise SpecError(f"{name}: mig-devices goes with mig-enabled: true, and only with it")
    only = fields.get("device-filter")
    models = None if only is None else (only,) if isinstance(only, str) else tuple(only)
    counts: dict[str, Any] = wanted or {}
    for profile, count in counts.items():
        if not mig.PROFILE.fullmatch(str(profile)) or type(count) is not int or count < 1:
            raise SpecError(f"{name}: not a MIG profile with a number: {profile}: {count}")
    profiles = tuple(profile for profile, count in counts.items() for _ in range(count)) if enabled else None
    return Entry(profiles, None if devices == "all" else tuple(devices), models)


def applied(hardware: Hardware, specs: Specs, name: str) -> mig.Layout:
    """The node's layout once the configuration `name` is applied. Raises SpecError where that fails."""
    row = product(hardware.model)
    table: mig.Table = row.get("mig") or {}
    if name not in specs:
        raise SpecError(f"selected mig-config not present: {name}")
    out = dict(hardware.layout)
    for entry in specs[name]:
        if entry.models is not None and f"0x{row.get('pci', '').upper()}10DE" not in entry.models:
            continue
        for gpu in range(hardware.gpus):
            if entry.devices is not None and gpu not in entry.devices:
                continue
            if entry.profiles is None:
                out.pop(gpu, None)
            elif not table:
                raise SpecError(f"GPU {gpu}: {row['product']} has no MIG")
            elif not mig.fits(entry.profiles, table):
                raise SpecError(f"GPU {gpu}: {row['product']} cannot have {', '.join(entry.profiles)}")
            else:
                out[gpu] = entry.profiles
    return out
