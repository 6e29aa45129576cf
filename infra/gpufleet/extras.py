"""Parts of an install that commands need beyond PyYAML and pydantic."""

from __future__ import annotations

import importlib.util

#: Extra of the package -> what it brings to import.
EXTRAS = {
    "deploy": ("pulumi", "pulumi_kubernetes", "kubernetes"),
    "azure": ("pulumi_azure_native",),
    "status": ("kubernetes",),
    "hosts": ("ansible",),
    "bench": ("matplotlib",),
}


class MissingExtraError(Exception):
    """An extra is not installed; the text says which, and how to install it."""


def missing(extra: str, who: str) -> str | None:
    """One sentence when `extra`, which `who` needs, is not installed; else None."""
    if all(importlib.util.find_spec(module) for module in EXTRAS[extra]):
        return None
    return f"""{who} needs the extra "{extra}": pip install 'gpufleet[{extra}]'"""


def require(extra: str, who: str) -> None:
    """Goes on only with the extra.

    Raises:
        MissingExtraError: it is not installed.
    """
    problem = missing(extra, who)
    if problem:
        raise MissingExtraError(problem)
