"""What one case of a rule says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Told = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Case:
    code: str
    path: str
    base: str
    wrong: dict[str, Any]
    right: dict[str, Any] = field(default_factory=dict)
    value: str | None = None
    allowed: tuple[str, ...] | None = None
    closest: str | None = None
    says: str = ""
    also: Told = ()
    right_also: Told = ()

    def __str__(self) -> str:
        return f"{self.code} {self.path} {self.base}"
