"""Typed access to tables.yaml."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def table(name: str) -> Any:
    """One table of tables.yaml as plain data.

    Raises:
        KeyError: there is no such table.
    """
    text = resources.files(__package__).joinpath("tables.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)[name]
