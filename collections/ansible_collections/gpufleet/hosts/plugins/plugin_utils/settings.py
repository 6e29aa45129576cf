"""The variables of all roles: defaults, types and choices from the roles' argument_specs, values from the host."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .catalog import read_yaml

ROLES = Path(__file__).resolve().parents[6] / "roles"


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


def checked(settings: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """(the settings in their declared types, everything that is wrong with them)."""
    result = ArgumentSpecValidator(specification()).validate(settings)
    return result.validated_parameters, list(result.error_messages)


def overridden(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with gpu_driver_override applied: it wins over variables of any origin, extra variables included."""
    driver = {f"gpu_driver_{key}": str(value) for key, value in settings["gpu_driver_override"].items()}
    return {**settings, **{name: value for name, value in driver.items() if name in settings}}
