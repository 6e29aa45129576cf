"""nvidia-mig-parted: assert, apply, export and generate-config over a configuration file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import yaml  # copied beside this package when the host is made

from . import base, mig, mig_layout, nvml

EMPTY: dict[str, int] = {}


class Bad(Exception):  # noqa: N818 - the program's own answer
    """The configuration or the host does not allow the request."""


def main_nvidia_mig_parted(arguments: list[str]) -> int:
    """Run nvidia-mig-parted."""
    if arguments[:1] in (["--version"], ["-v"]):
        print("nvidia-mig-parted version 0.15.0")
        return 0
    action = arguments[0] if arguments else ""
    options = _options(arguments[1:])
    try:
        if action == "generate-config":
            print(yaml.safe_dump(generate(), sort_keys=False), end="")
        elif action == "export":
            print(yaml.safe_dump({"version": "v1", "mig-configs": {"current": export()}}, sort_keys=False), end="")
        elif action in ("assert", "apply"):
            wanted = chosen(options)
            if action == "assert":
                check(wanted, mode_only="mode_only" in options)
                print("Selected MIG configuration currently applied")
            else:
                apply(wanted, mode_only="mode_only" in options)
                print("MIG configuration applied successfully")
        else:
            print(f"no such command: {action}", file=sys.stderr)
            return 1
    except (Bad, nvml.Failed, mig_layout.Impossible) as error:
        print(f'time="twin" level=error msg="{error}"', file=sys.stderr)
        return 1
    return 0


def _options(arguments: list[str]) -> dict[str, str]:
    found = {}
    if os.environ.get("MIG_PARTED_CONFIG_FILE"):
        found["file"] = os.environ["MIG_PARTED_CONFIG_FILE"]
    if os.environ.get("MIG_PARTED_SELECTED_CONFIG"):
        found["config"] = os.environ["MIG_PARTED_SELECTED_CONFIG"]
    names = {"-f": "file", "--config-file": "file", "-c": "config", "--selected-config": "config", "-k": "hooks",
             "--hooks-file": "hooks", "-o": "format"}  # fmt: skip
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in names and rest:
            found[names[word]] = rest.pop(0)
        elif word in ("-m", "--mode-only"):
            found["mode_only"] = "1"
    return found


def chosen(options: dict[str, str]) -> list[dict[str, Any]]:
    """Return the selected configuration. Strict, as the original: unknown fields and bad shapes are errors."""
    try:
        text = Path(options["file"]).read_text() if options["file"] != "-" else sys.stdin.read()
        data = yaml.safe_load(text)
    except (KeyError, OSError) as error:
        raise Bad(f"error reading config file: {error}") from None
    except yaml.YAMLError as error:
        raise Bad(f"error parsing config file: {error}") from None
    if not isinstance(data, dict) or data.get("version") != "v1" or not isinstance(data.get("mig-configs"), dict):
        raise Bad("error parsing config file: version v1 and mig-configs expected")
    name = options.get("config", "")
    if name not in data["mig-configs"]:
        raise Bad(f"selected mig-config not present: {name}")
    for entry in data["mig-configs"][name]:
        unknown = set(entry) - {"devices", "mig-enabled", "mig-devices", "device-filter"}
        if unknown or "devices" not in entry or "mig-enabled" not in entry:
            raise Bad(f"error parsing config file: {name}: unknown or missing fields")
        if bool(entry.get("mig-devices")) and not entry["mig-enabled"]:
            raise Bad(f"error parsing config file: {name}: mig-devices with mig-enabled false")
    found: list[dict[str, Any]] = data["mig-configs"][name]
    return found


def _gpus(entry: dict[str, Any]) -> list[dict[str, Any]]:
    wanted, only = entry["devices"], entry.get("device-filter")
    filters = [only] if isinstance(only, str) else only
    found = []
    for gpu in nvml.usable():
        if filters and f"0x{gpu['device'].upper()}10DE" not in [text.upper().replace("0X", "0x") for text in filters]:
            continue
        if wanted == "all" or gpu["index"] in wanted:
            found.append(gpu)
    return found


def _counts(gpu: dict[str, Any]) -> dict[str, int]:
    names = [entry["profile"] for entry in mig_layout.devices(gpu)]
    return {name: names.count(name) for name in sorted(set(names))}


def check(config: list[dict[str, Any]], *, mode_only: bool = False) -> None:
    """Raise Bad when the host is not in the state that the configuration asks for."""
    nvml.connect()
    for entry in config:
        for gpu in _gpus(entry):
            if gpu.get("mig") is None:
                if entry["mig-enabled"]:
                    raise Bad(f"GPU {gpu['index']}: not MIG capable")
                continue
            if mig_layout.enabled(gpu) != entry["mig-enabled"]:
                raise Bad("Assertion failure: selected configuration not currently applied")
            if not mode_only and _counts(gpu) != dict(sorted((entry.get("mig-devices") or EMPTY).items())):
                raise Bad("Assertion failure: selected configuration not currently applied")


def apply(config: list[dict[str, Any]], *, mode_only: bool = False) -> None:
    """Bring mode and instances to what the configuration asks for. Raises Bad when a mode stays pending."""
    nvml.connect()
    if base.failure("mig_apply"):
        raise Bad(str(base.failure("mig_apply")))
    for entry in config:
        for gpu in _gpus(entry):
            if gpu.get("mig") is None:
                if entry["mig-enabled"]:
                    raise Bad(f"GPU {gpu['index']}: not MIG capable")
                continue
            if mig_layout.enabled(gpu) != entry["mig-enabled"]:
                mig.set_mode([gpu], entry["mig-enabled"])
                if mig_layout.enabled(gpu) != entry["mig-enabled"]:
                    raise Bad(f"GPU {gpu['index']}: MIG mode change is pending, reset or reboot required")
            wanted = entry.get("mig-devices") or EMPTY
            if mode_only or _counts(gpu) == dict(sorted(wanted.items())):
                continue
            names = [name for name, count in wanted.items() for _ in range(count)]
            mig_layout.check_fit(gpu, names)
            mig.change(gpu, [])
            mig.create(gpu, names, compute=True)


def export() -> list[dict[str, Any]]:
    """Return the present state as a configuration."""
    nvml.connect()
    found = []
    for gpu in nvml.usable():
        if gpu.get("mig"):
            enabled = mig_layout.enabled(gpu)
            found.append({"devices": [gpu["index"]], "mig-enabled": enabled, "mig-devices": _counts(gpu)})
    return found


def generate() -> dict[str, Any]:
    """Return the configuration file that fits this hardware: all-disabled, all-enabled, one all-PROFILE each."""
    configs: dict[str, Any] = {
        "all-disabled": [{"devices": "all", "mig-enabled": False}],
        "all-enabled": [{"devices": "all", "mig-enabled": True, "mig-devices": {}}],
    }
    for gpu in base.gpus():
        for profile, most in ((gpu.get("mig") or {}).get("profiles") or EMPTY).items():
            configs.setdefault(
                f"all-{profile}", [{"devices": "all", "mig-enabled": True, "mig-devices": {profile: most}}]
            )
    return {"version": "v1", "mig-configs": configs}
