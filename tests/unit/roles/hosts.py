"""Readings of hosts for tests: a bare Ubuntu server with one T4, and changes to it."""

from __future__ import annotations

import fnmatch
from typing import Any

from ansible_collections.gpufleet.hosts.plugins.module_utils import openpgp
from ansible_collections.gpufleet.hosts.plugins.plugin_utils.settings import defaults
from gpufleet.catalog.packages import reported_packages, vendor_packages
from gpufleet.catalog.reading import STANDARD, Tables
from gpufleet.hosts.context import Answer, Context
from gpufleet.hosts.reading import Key, Reading
from gpufleet.hosts.settings import Settings

KERNEL = "6.8.0-45-generic"
TODAY = "2026-11-30"


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes` laid over it, mappings key by key."""
    result = dict(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict) and value:
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def gpu(device: str, slot: str = "0000:17:00.0", driver: str | None = None, subsystem: str = "0000") -> dict[str, Any]:
    """One GPU as the probe reports it."""
    return {"slot": slot, "device": device, "class": "030200", "driver": driver, "subsystem": subsystem}


def gpus(device: str, count: int) -> list[dict[str, Any]]:
    """Several GPUs of one kind."""
    return [gpu(device, f"0000:{17 + n:02x}:00.0") for n in range(count)]


def probe(**changes: Any) -> dict[str, Any]:
    """The reading of a bare server; `changes` are laid over it."""
    base: dict[str, Any] = {
        "schema": 1,
        "system": {
            "id": "ubuntu",
            "version_id": "24.04",
            "name": "Ubuntu 24.04",
            "architecture": "x86_64",
            "python": "3.12.3",
            "manager": "apt",
            "date": TODAY,
            "sqv": False,
            "crypto_policy": False,
            "lock": 0,
            "cloud_init_running": False,
            "unfinished": [],
            "free_mib": {"/usr": 50000, "/var": 50000},
            "unattended_blacklist": [],
            "in_cluster": False,
        },
        "kernel": {
            "release": KERNEL,
            "cmdline": "quiet",
            "compiler": "13",
            "gcc": "13",
            "modules": {},
            "secure_boot": False,
            "mok": {},
            "headers": True,
            "module_file": None,
            "log": [],
            "initramfs_tool": True,
            "initramfs": {"path": f"/boot/initrd.img-{KERNEL}", "mtime": 100.0},
        },
        "hardware": {
            "gpus": [gpu("1eb8")],
            "nvswitches": [],
            "switch_ports": [],
            "nvswitch_devices": [],
            "device_files": [],
        },
        "driver": None,
        "library": None,
        "runfile": False,
        "smi": None,
        "holders": [],
        "packages": {},
        "sources": [],
        "keyrings": {},
        "units": {},
        "boot_cycles": [],
        "files": {},
        "mig": {},
        "time_slice": [],
        "runtime": {
            "sockets": [],
            "containerd": None,
            "containerd_dump": None,
            "containerd_default": None,
            "embedded_containerd": None,
            "docker": False,
            "crio": False,
            "crio_version": None,
            "nvidia_runtime": None,
            "nvidia_ctk": False,
            "drop_ins": {},
            "cdi_specs": [],
            "cri_runtimes": None,
        },
    }
    return merged(base, changes)


def host(
    reading: dict[str, Any] | None = None,
    resolved: dict[str, Any] | None = None,
    tables: Tables = STANDARD,
    **variables: Any,
) -> Context:
    """A host with a reading and variables; what is not given is as in the defaults."""
    unknown = set(variables) - set(defaults())
    assert not unknown, f"no such variables: {unknown}"
    settings = Settings.model_validate({**defaults(), **variables})
    keys = {text: tuple(Key(**key) for key in openpgp.keys(text.encode())) for text in settings.key_texts}
    answered = Answer.model_validate(resolved or {})
    return Context(Reading.model_validate(reading or probe()), settings, tables, answered, "2.19.14", keys)


def answered(*arguments: Any, **more: Any) -> Answer:
    """The repositories' answer as decisions get it."""
    return Answer.model_validate(answer(*arguments, **more))


def package(version: str, *, hold: bool = False, state: str = "installed") -> dict[str, Any]:
    """An installed package."""
    return {"version": version, "hold": hold, "state": state}


def packages(version: str, *names: str, hold: bool = True, revision: str = "-1") -> dict[str, Any]:
    """Several installed packages at one version."""
    return {name: package(version + revision, hold=hold) for name in names}


def file(text: str, mode: str = "0644", mtime: float = 50.0) -> dict[str, Any]:
    """A file as the probe reports it."""
    return {"text": text, "mode": mode, "mtime": mtime, "sha256": ""}


def unit(active: str = "active", enabled: str = "enabled", **more: Any) -> dict[str, Any]:
    """A unit as the probe reports it."""
    base = {
        "load": "loaded",
        "active": active,
        "enabled": enabled,
        "result": "success",
        "reload": False,
        "since": 10.0,
        "start_limit": "1min 30s",
    }
    return {**base, **more}


def codes(problems: list[Any]) -> list[str]:
    """The codes of problems or findings, sorted."""
    return sorted(problem.code for problem in problems)


def answer(
    want: list[dict[str, Any]], missing: tuple[str, ...] = (), revision: str = "-1", **more: Any
) -> dict[str, Any]:
    """What the module `resolve` answers when it finds all of `want` but the missing ones."""
    found = [
        {"name": w["name"], "version": f"{w['version']}{revision}" if w["version"] else "9-1", "part": w["part"]}
        for w in want
        if w["name"] not in missing and not w.get("optional")
    ]
    return {
        "request": want,
        "packages": found,
        "missing": list(missing),
        "available": {},
        "unknown": [],
        "errors": [],
        **more,
    }


def interesting(name: str) -> bool:
    """Whether the roles let the probe report a package, and the resolver read it."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in (*reported_packages(), *vendor_packages()))
