"""Comparing versions field by field, never as text: "570.26" is older than "570.124.06"."""

import re
from typing import NamedTuple

_NUMBERS = re.compile(r"v?([0-9]+(?:\.[0-9]+)*)")


class DriverVersion(NamedTuple):
    """A driver version such as 580.126.09. Orders by number: 570.26 < 570.124.06.

    A tuple of its fields; a version with fewer fields sorts before its longer forms, so 580 <= 580.65.06.
    """

    fields: tuple[int, ...]

    @property
    def branch(self) -> int:
        """The first field: 580 of 580.126.09."""
        return self.fields[0]


def driver_version(text: str) -> DriverVersion:
    """Read `580`, `580.126.09` or `v1.20.0`. Raises ValueError on anything else, also on a package revision."""
    match = _NUMBERS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a version: {text!r}")
    return DriverVersion(tuple(int(field) for field in match[1].split(".")))
