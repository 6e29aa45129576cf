"""Scenario files: what a host is made of, what is installed on it, what goes wrong. Format: README.md."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from gpufleet.catalog import gpus as catalog

from . import paths, root
from .errors import TwinError

FOLDER = paths.PACKAGE / "scenarios"
HARDWARE = paths.PACKAGE / "data" / "gpus.yaml"
RUNTIMES = ("none", "containerd", "containerd2", "k3s", "rke2", "crio", "docker")
HEADERS = ("none", "matching", "newer")
DEFAULT = "t4"

# key -> value when a scenario does not say. An unknown key is an error.
DEFAULTS: dict[str, Any] = {
    "description": "",
    "gpus": [],
    "nvswitch": None,
    "fabric": {"settle_seconds": 1},
    "in_tree_drivers": [],
    "secure_boot": {"uefi": True, "enabled": False, "confirm_enrollment": False},
    "kernel": {"headers": "none", "compiler": "12.2.0 (Debian 12.2.0-14)"},
    "runtime": "none",
    "os": "debian-12",
    "packages": [],
    "keep_sources": False,
    "runfile": None,
    "files": {},
    "modes": {},
    "masked_units": [],
    "kernel_log": [],
    "failures": {},
    "ecc_errors": {},
    "dmi": {"sys_vendor": "Twin", "product_name": "GPU server"},
    "other_pci": [],
    "apt_lock_seconds": 0,
}


@dataclass(frozen=True)
class Scenario:
    """A scenario with all defaults filled in."""

    name: str
    values: Mapping[str, Any]

    @property
    def suite(self) -> str:
        """The Debian suite of the host's root."""
        return SUITES.get(self.values["os"], root.SUITE)

    def guest(self, host: str) -> dict[str, Any]:
        """Return what the host's own tools read: every GPU with its hardware facts."""
        values = self.values
        keys = ("fabric", "in_tree_drivers", "secure_boot", "kernel", "kernel_log", "failures", "ecc_errors", "dmi",
                "other_pci")  # fmt: skip
        found = {key: copy.deepcopy(values[key]) for key in keys}
        found["gpus"] = _gpus(values["gpus"], host)
        found["nvswitches"], found["infiniband"] = _switches(values["nvswitch"])
        found["fabric"]["present"] = bool(values["nvswitch"])
        found["fabric"]["subnet_manager"] = bool(found["infiniband"])
        return found


def names() -> list[str]:
    """Return the scenarios that come with the twin."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def load(what: str | Mapping[str, Any]) -> Scenario:
    """Return a scenario by name, file or content. Raises TwinError that names what is wrong."""
    if isinstance(what, Mapping):
        name, raw = str(what.get("extends", "inline")), dict(what)
    else:
        name, raw = _read(what or DEFAULT)
    chain = [raw]
    while "extends" in chain[-1]:
        if len(chain) > 5:
            raise TwinError(f"scenario {name}: extends goes in a circle")
        chain.append(_read(chain[-1]["extends"])[1])
    values: dict[str, Any] = copy.deepcopy(DEFAULTS)
    for layer in reversed(chain):
        values = merge(values, {key: value for key, value in layer.items() if key != "extends"})
    return Scenario(name, check(name, values))


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` on top: mappings key by key, everything else replaced."""
    found = dict(copy.deepcopy(base))
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = merge(found[key], value) if both else copy.deepcopy(value)
    return found


def _read(what: str) -> tuple[str, dict[str, Any]]:
    file = Path(what) if what.endswith((".yaml", ".yml")) else FOLDER / f"{what}.yaml"
    if not file.is_file():
        raise TwinError(f"no scenario {what!r}; known: {', '.join(names())}, or the path of a YAML file")
    raw = yaml.safe_load(file.read_text())
    if not isinstance(raw, dict):
        raise TwinError(f"{file}: a mapping is expected")
    return file.stem, raw


def check(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values when they make sense. Raises TwinError with every problem found."""
    problems = [f"unknown key {key!r}; known: {', '.join(DEFAULTS)}" for key in values if key not in DEFAULTS]
    hardware = _hardware()
    for entry in values["gpus"]:
        if not isinstance(entry, Mapping) or set(entry) - {"model", "count"}:
            problems.append(f"gpus: {entry!r}: expected {{model: NAME, count: N}}")
        elif entry.get("model") not in hardware["gpus"]:
            problems.append(f"gpus: unknown model {entry.get('model')!r}; known: {', '.join(hardware['gpus'])}")
    if values["nvswitch"] not in (None, *hardware["nvswitches"]):
        problems.append(f"nvswitch: {values['nvswitch']!r}; known: {', '.join(hardware['nvswitches'])}")
    if values["runtime"] not in RUNTIMES:
        problems.append(f"runtime: {values['runtime']!r}; known: {', '.join(RUNTIMES)}")
    if values["kernel"]["headers"] not in HEADERS:
        problems.append(f"kernel.headers: {values['kernel']['headers']!r}; known: {', '.join(HEADERS)}")
    if values["os"] not in OS_RELEASE:
        problems.append(f"os: {values['os']!r}; known: {', '.join(OS_RELEASE)}")
    if problems:
        raise TwinError(f"scenario {name}:\n" + "\n".join(f"  {problem}" for problem in problems))
    return values


def _hardware() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(HARDWARE.read_text())
    return found


def _gpus(entries: list[dict[str, Any]], host: str) -> list[dict[str, Any]]:
    hardware = _hardware()["gpus"]
    found: list[dict[str, Any]] = []
    for entry in entries:
        facts = dict(hardware[entry["model"]])
        model = catalog.gpu_model(facts.pop("catalog"))
        if model is None:
            raise TwinError(f"{HARDWARE.name}: {entry['model']} points at no row of the catalogue")
        architecture = catalog.architectures()[model.architecture]
        mig = {"slices": model.mig_slices, "profiles": dict(model.mig_profiles)}
        for _ in range(entry.get("count", 1)):
            index = len(found)
            found.append({
                **facts,
                "index": index,
                "pci": f"0000:{0x17 + index * 0x11:02x}:00.0",
                "vendor": "10de",
                "class": "030200",
                "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{host}.{index}')}",
                "serial": f"16{uuid.uuid5(uuid.NAMESPACE_DNS, f'serial.{host}.{index}').int % 10**11:011d}",
                "architecture": model.architecture,
                "compute_capability": model.compute_capability or "0.0",
                "modules": model.modules,
                "newest_branch": model.newest_driver_branch,
                "open_since": architecture.open_since_branch,
                "min_driver": model.min_driver,
                "mig": mig if model.mig_capable else None,
                "numa": 0 if index < 4 else 1,
            })  # fmt: skip
    return found


def _switches(generation: str | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the NVSwitch devices on the bus, and the InfiniBand ports that manage switches without devices."""
    if generation is None:
        return [], []
    facts = _hardware()["nvswitches"][generation]
    places = [f"0000:{0xA1 + number:02x}:00.0" for number in range(facts["count"])]
    if "pci_device" in facts:
        same = {"vendor": "10de", "device": facts["pci_device"], "class": "068000", "subsystem": "10de:1796", "numa": 0}
        return [{"pci": place, **same} for place in places], []
    same = {"device": "1021", "subsystem": "15b3:0023", "vpd": f"ConnectX-7 {facts['vpd']}\n", "numa": 0}
    return [], [{"pci": place, "name": f"mlx5_{number}", **same} for number, place in enumerate(places)]


def dump(scenario: Scenario, host: str) -> str:
    """Return the scenario as the JSON file that the host's tools read."""
    return json.dumps(scenario.guest(host), indent=1)


def _os_release(name: str, identity: str, like: str, version: str, codename: str) -> str:
    return (
        f'PRETTY_NAME="{name} {version}"\nNAME="{name}"\nVERSION_ID="{version}"\nVERSION="{version} ({codename})"\n'
        f"VERSION_CODENAME={codename}\nID={identity}\n{f'ID_LIKE={like}' if like else ''}\n"
    )


# Systems that a host really is, with a root of their own; all others have the default root.
SUITES = {"debian-12": "bookworm", "debian-13": "trixie"}
# What /etc/os-release says; None: what the root says. On the others the identity alone is changed.
OS_RELEASE: dict[str, str | None] = {
    "debian-12": None,
    "debian-13": None,
    "ubuntu-22.04": _os_release("Ubuntu", "ubuntu", "debian", "22.04", "jammy"),
    "ubuntu-24.04": _os_release("Ubuntu", "ubuntu", "debian", "24.04", "noble"),
    "ubuntu-26.04": _os_release("Ubuntu", "ubuntu", "debian", "26.04", "resolute"),
}
