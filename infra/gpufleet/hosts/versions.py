"""Comparing versions field by field, and taking package versions apart. "570.26" is older than "570.124.06"."""

from __future__ import annotations

import re

BRANCH = re.compile(r"\d{3}")
VERSION = re.compile(r"\d{3}(?:\.\d+){1,2}")
DOTTED = re.compile(r"\d+(?:\.\d+)+")


def fields(version: str) -> tuple[int, ...]:
    """The numbers of a version; anything after the first character that fits none is left out."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version.strip())
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def at_least(version: str, minimum: str) -> bool:
    """Whether `version` is `minimum` or newer."""
    return fields(version) >= fields(minimum)


def branch_of(version: str) -> int:
    """580 of 580.126.09; 0 when the text is no version."""
    numbers = fields(version)
    return numbers[0] if numbers else 0


def upstream(package_version: str) -> str:
    """The vendor's version in a package version: 580.95.05 of 580.95.05-0ubuntu1 and of 3:580.95.05-1.el9."""
    return re.split(r"[-~+]", package_version.rpartition(":")[2], maxsplit=1)[0]


def within(version: str, first: str | None, last: str | None, fixed_in: str | None = None) -> bool:
    """Whether a version lies in a range of known_bad.yaml: ends included, a short end stands for its whole family."""
    numbers = fields(version)
    if first is not None and numbers < fields(first):
        return False
    if last is not None and numbers[: len(fields(last))] > fields(last):
        return False
    return fixed_in is None or numbers < fields(fixed_in)
