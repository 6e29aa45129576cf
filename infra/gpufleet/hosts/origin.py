"""Where an installed driver came from, and whether the wanted one may be put on top of it."""

from __future__ import annotations

import re
from typing import Any

from .context import Context
from .versions import upstream


def problems(context: Context) -> list[tuple[str, dict[str, Any]]]:
    """What excludes the wanted driver: an installer file and packages, or packages of two origins, are never mixed."""
    method = context.settings["gpu_driver_method"]
    if context.settings["gpu_driver_state"] == "absent" or method == "none":
        return []
    if method == "runfile":
        return [("GF730", {"packages": _listed(context.driver_family)})] if context.driver_family else []
    found: list[tuple[str, dict[str, Any]]] = [("GF729", {})] if context.probe["runfile"] else []
    foreign = _foreign(context, method)
    if foreign:
        words = "; ".join(f"{origin}: {_listed(names)}" for origin, names in foreign.items())
        found.append(("GF730", {"packages": words}))
    return found


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))


def _foreign(context: Context, method: str) -> dict[str, list[str]]:
    """Origin -> installed driver packages that do not come from the wanted source."""
    found: dict[str, list[str]] = {}
    versions = {name: upstream(row["version"]) for name, row in context.packages.items()}
    for row in context.tables.rows("host_kernel", "foreign_packages"):
        if row["manager"] != context.platform.manager or row["method"] == method:
            continue
        own = {v for name, v in versions.items() if row.get("unless") and re.search(row["unless"], name)}
        names = [n for n, version in versions.items() if re.search(row["pattern"], n) and version not in own]
        if names:
            found[row["from"]] = names
    return found
