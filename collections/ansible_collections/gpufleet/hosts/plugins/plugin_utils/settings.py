"""The variables of all roles: defaults from the roles' files, overlaid with what the host has."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROLES = Path(__file__).resolve().parents[6] / "roles"


@cache
def defaults() -> dict[str, Any]:
    """Every variable of every role with its default. The roles' defaults/main.yml are the only place of a default."""
    found: dict[str, Any] = {}
    for path in sorted(ROLES.glob("gpu*/defaults/main.yml")):
        found.update(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    return found


def settings_of(variables: dict[str, Any]) -> dict[str, Any]:
    """Defaults overlaid with those of `variables` that a role knows."""
    return {name: variables.get(name, value) for name, value in defaults().items()}


def overridden(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with gpu_driver_override applied: it wins over variables of any origin, extra variables included."""
    driver = {f"gpu_driver_{key}": str(value) for key, value in settings["gpu_driver_override"].items()}
    return {**settings, **{name: value for name, value in driver.items() if name in settings}}
