"""What gpufleet says about an input: findings, collected and reported together.

A code is `GF` and three digits, stable for ever. What a code means stands in its rule (`rule.py`); a finding is a rule
at one place of the input.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from gpufleet.findings.credentials import redacted

SHOWN_CHARS = 120


class Severity(StrEnum):
    """Errors stop everything; warnings may be acknowledged in the stack file; notes inform."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One finding.

    `path` is the place in the input (`pools[1].sharing`), `value` the text of what stands there, `allowed` what
    could stand there, `closest` the allowed value most like it. `file` and `line` (1-based) are set where known.
    """

    code: str
    severity: Severity
    path: str
    message: str
    reason: str
    remedy: str
    value: str | None = None
    allowed: tuple[str, ...] = ()
    closest: str | None = None
    file: str | None = None
    line: int | None = None
    acknowledged: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; keys without a value are left out."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items() if v not in (None, ())}


def errors(found: Iterable[Finding]) -> list[Finding]:
    """Only the errors, order kept."""
    return [d for d in found if d.severity is Severity.ERROR]


def told(found: Iterable[Finding]) -> list[Finding]:
    """What a person is told, order kept: notes are about what will be done, so beside errors there are none."""
    found = list(found)
    return [d for d in found if d.severity is not Severity.NOTE] if errors(found) else found


def printable(text: str) -> str:
    """A text without characters that a terminal obeys instead of showing them (control characters, text direction)."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def show(value: object) -> str:
    """A value as one short line of JSON-like text, without credentials."""
    value = redacted(value)
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    text = printable(" ".join(text.split())) if text else '""'
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


#: A shorter text begins too many words by chance.
_BEGINNING = 3


def closest_match(value: object, allowed: Iterable[str]) -> str | None:
    """The allowed word most like `value`, ignoring case and separators, or None.

    Words that begin with it come first: A100 means some A100-..., not A10.
    """

    def plain(word: str) -> str:
        return word.lower().replace("_", "").replace("-", "").replace(" ", "")

    import difflib  # only where something is wrong

    by_plain = {plain(word): word for word in allowed}
    given = plain(str(value))
    longer = [word for word in by_plain if word.startswith(given)] if len(given) >= _BEGINNING else []
    found = difflib.get_close_matches(given, longer, n=1, cutoff=0) or difflib.get_close_matches(given, by_plain, n=1)
    return by_plain[found[0]] if found else None
