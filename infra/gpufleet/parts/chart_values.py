"""Values of a Helm chart by dotted path, as the chart's documentation names them."""

from __future__ import annotations

from typing import Any


def get_value(values: Any, path: str) -> Any:
    """The value at a path; None where there is none."""
    for part in path.split("."):
        if not isinstance(values, dict) or part not in values:
            return None
        values = values[part]
    return values


def set_value(values: dict[str, Any], path: str, value: Any) -> None:
    """Sets the value at a path, with the maps that lead to it."""
    *parents, last = path.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
    values[last] = value
