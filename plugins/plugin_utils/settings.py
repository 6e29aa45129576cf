"""The variables of all roles: defaults, types and choices from the roles' argument_specs, values from the host."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.gpufleet.hosts.plugins.plugin_utils import needs

try:
    from gpufleet.catalog.reading import Tables, read_yaml, tables_in
except ImportError as error:
    raise AnsibleError(f"{error}. {needs.GPUFLEET}") from None

ROLES = Path(__file__).resolve().parents[2] / "roles"

# What the roles and playbooks remember between their tasks; a test compares this with their files.
INTERNAL = (
    "gpu_container_toolkit_boot",
    "gpu_container_toolkit_decision",
    "gpu_container_toolkit_effective",
    "gpu_container_toolkit_key",
    "gpu_driver_decision",
    "gpu_driver_exchange",
    "gpu_driver_kernels",
    "gpu_driver_key",
    "gpu_driver_new_kernels",
    "gpu_fabric_decision",
    "gpu_health_decision",
    "gpu_health_facts",
    "gpu_health_smoke",
    "gpu_hosts_group",
    "gpu_mig_decision",
    "gpu_mig_pending",
    "gpu_preflight_result",
    "gpu_probe_kept",
)
_PREFIXES = tuple(f"{role}_" for role in (
    "gpu_container_toolkit", "gpu_driver", "gpu_fabric", "gpu_health", "gpu_mig", "gpu_preflight",
))  # fmt: skip
_FORMS = {
    "gpu_container_toolkit_version": (r"|v?\d+\.\d+\.\d+(-\S+)?", "a version such as 1.20.0"),
    "gpu_container_toolkit_runtime_name": (r"[A-Za-z0-9_-]+", "a name of letters, digits, - and _"),
    "gpu_driver_runfile_sha256": (r"|[0-9A-Fa-f]{64}", "a SHA-256 of 64 hexadecimal digits"),
    "gpu_health_lock_clocks": (r"|\d+(,\d+)?", "one or two clocks in MHz such as 1200,1410"),
    "gpu_mig_manager_version": (r"|v?\d+\.\d+\.\d+(-\S+)?", "a version such as 0.15.0"),
    "gpu_preflight_cuda_target": (r"|\d+(\.\d+)?", "a CUDA version such as 12.8"),
}
_LOWEST = {
    "gpu_fabric_ready_timeout": 0,
    "gpu_health_power_limit_watts": 0,
    "gpu_lock_timeout": 0,
    "gpu_mig_start_timeout": 1,  # systemd takes 0 for no limit
    "gpu_preflight_gpu_count": 0,
    "gpu_preflight_min_free_mib": 0,
    "gpu_reboot_timeout": 1,
}
_OVERRIDE = ("version", "branch", "flavour", "runfile_sha256")
_LAYOUT = ("devices", "device-filter", "mig-enabled", "mig-devices")
_PROFILE: dict[str, type] = {
    **{f"{kind}_{key}": str for kind in ("cuda", "toolkit") for key in ("url", "suite", "key", "key_url")},
    **{f"{kind}_{key}": list for kind in ("cuda", "toolkit") for key in ("components", "key_fingerprints")},
    "runfile_url": str,
    "allowed_hosts": list,
}


@cache
def specification() -> dict[str, dict[str, Any]]:
    """Every variable of every role with its type, default and choices. A test keeps defaults/main.yml equal to this."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(ROLES.glob("gpu*/meta/argument_specs.yml")):
        for name, option in read_yaml(path)["argument_specs"]["main"]["options"].items():
            found[name] = {key: value for key, value in option.items() if key != "description"}
    return found


def defaults() -> dict[str, Any]:
    """Every variable with its default."""
    return {name: option["default"] for name, option in specification().items()}


def settings_of(variables: dict[str, Any]) -> dict[str, Any]:
    """Defaults overlaid with those of `variables` that a role knows."""
    return {name: variables.get(name, value) for name, value in defaults().items()}


def of_task(action: Any, variables: dict[str, Any]) -> tuple[dict[str, Any], list[str], Tables]:
    """(the variables of a task's host in their types, what is wrong with them, the tables that they name)."""
    # One call: the templar resolves nested variables of the inventory.
    given = {name: action._templar.template(value) for name, value in settings_of(variables).items()}
    wanted, wrong = checked(overridden(given))
    return wanted, wrong, tables_in(str(wanted.get("gpu_catalog_dir") or ""))


def checked(settings: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """(the settings in their declared types, everything that is wrong with them)."""
    result = ArgumentSpecValidator(specification()).validate(settings)
    return result.validated_parameters, list(result.error_messages)


def unknown(variables: Iterable[str]) -> list[str]:
    """What is wrong with names that begin like a variable of the roles and are none: they would have no effect."""
    known, found = specification(), []
    for name in sorted(set(variables) - set(known) - set(INTERNAL)):
        near = difflib.get_close_matches(name, known, 1, 0.85) if name.startswith("gpu_") else []
        if near or name.startswith(_PREFIXES):
            near = near or difflib.get_close_matches(name, known, 1, 0.6)
            found.append(f"no role knows {name}" + (f"; closest: {near[0]}" if near else ""))
    return found


def malformed(settings: dict[str, Any]) -> list[str]:
    """What types and choices cannot say: forms of texts, bounds of numbers, mirror profiles."""
    found = []
    for name, (pattern, form) in _FORMS.items():
        if not re.fullmatch(pattern, str(settings[name])):
            found.append(f"{name}: {settings[name]!r} is not {form}")
    for name, lowest in _LOWEST.items():
        if settings[name] < lowest:
            found.append(f"{name}: {settings[name]} is less than {lowest}")
    for name, profile in settings["gpu_mirror_profiles"].items():
        found += _profile(f"gpu_mirror_profiles.{name}", profile)
    for name, layout in settings["gpu_mig_layouts"].items():
        found += _layout(f"gpu_mig_layouts.{name}", layout)
    for key in sorted(set(settings["gpu_driver_override"]) - set(_OVERRIDE)):
        found.append(f"gpu_driver_override: no such key {key}; there are: {', '.join(_OVERRIDE)}")
    for name in ("gpu_driver_module_options", "gpu_preflight_accept"):
        for key, value in settings[name].items():
            if not isinstance(value, (str, int, float)) or "\n" in str(value):
                found.append(f"{name}.{key}: {value!r} is not a text of one line")
    return found


def _layout(where: str, layout: Any) -> list[str]:
    """What is wrong with a layout in the form of nvidia-mig-parted."""
    if not isinstance(layout, list) or not all(isinstance(part, dict) for part in layout):
        return [f"{where}: it is not a list of mappings with devices, mig-enabled and mig-devices"]
    found = []
    for number, part in enumerate(layout):
        devices, at = part.get("mig-devices") or {}, f"{where}[{number}]"
        found += [f"{at}: no such key {key}" for key in sorted(map(str, part)) if key not in _LAYOUT]
        if not isinstance(part.get("mig-enabled"), bool):
            found.append(f"{at}.mig-enabled: {part.get('mig-enabled')!r} is neither true nor false")
        whole = part.get("devices", "all")
        if whole != "all" and not (isinstance(whole, list) and all(type(index) is int for index in whole)):
            found.append(f"{at}.devices: {whole!r} is neither all nor a list of GPU numbers")
        if not isinstance(devices, dict):
            found.append(f"{at}.mig-devices: {devices!r} is not a mapping from profile to count")
            continue
        found += [
            f"{at}.mig-devices.{profile}: {count!r} is no count" for profile, count in devices.items()
            if type(count) is not int or count < 1
        ]  # fmt: skip
    return found


def _profile(where: str, profile: Any) -> list[str]:
    if not isinstance(profile, dict):
        return [f"{where}: {profile!r} is not a mapping"]
    found = []
    for key, value in profile.items():
        kind = _PROFILE.get(key)
        if kind is None:
            near = difflib.get_close_matches(str(key), _PROFILE, 1, 0.6)
            found.append(f"{where}: no such key {key}" + (f"; closest: {near[0]}" if near else ""))
        elif not isinstance(value, kind) or (isinstance(value, list) and not all(isinstance(v, str) for v in value)):
            found.append(f"{where}.{key}: {value!r} is not {'a list of texts' if kind is list else 'a text'}")
    return found


def overridden(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with gpu_driver_override applied: it wins over variables of any origin, extra variables included."""
    driver = {f"gpu_driver_{key}": str(value) for key, value in settings["gpu_driver_override"].items()}
    return {**settings, **{name: value for name, value in driver.items() if name in settings}}
