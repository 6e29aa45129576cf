"""What one case of a rule says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpufleet.findings.registry import find

from tests.unit.rules.examples import as_changes

Told = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Case:
    """`wrong` and `right` change a base of `samples`; without a base they are the examples of the rule."""

    code: str
    path: str
    base: str = ""
    wrong: dict[str, Any] = field(default_factory=dict)
    right: dict[str, Any] = field(default_factory=dict)
    value: str | None = None
    allowed: tuple[str, ...] | None = None
    closest: str | None = None
    says: str = ""
    also: Told = ()
    right_also: Told = ()

    def __post_init__(self) -> None:
        if not self.base:
            rule = find(self.code)
            base, wrong = as_changes(rule.wrong)
            same, right = as_changes(rule.right)
            assert base == same, "both examples are of one kind of stack"
            for name, value in (("base", base), ("wrong", wrong), ("right", right)):
                object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return f"{self.code} {self.path} {self.base}"
