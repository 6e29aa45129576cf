"""Diagnostics: everything gpufleet says about an input, collected and reported together.

A code is `GF` and three digits, stable for ever; its fixed texts (title, reason, remedy, severity) are rows of
`codes.yaml` tables, from which docs/diagnostics.md is generated. A call site adds what it knows: path, value,
what is allowed, details.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gpufleet.findings.credentials import redacted

#: Packages that bring a `codes.yaml`; each owns a range of numbers.
CODE_TABLES = ("findings", "deploy", "lint", "inventory", "advise")

_PACKAGE = Path(__file__).resolve().parents[1]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SHOWN_CHARS = 120


class Severity(StrEnum):
    """Errors stop everything; warnings may be acknowledged in the stack file; notes inform."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Code:
    """The fixed part of a diagnostic: one row of a code table."""

    id: str
    severity: Severity
    title: str
    reason: str
    remedy: str


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


@cache
def codes() -> Mapping[str, Code]:
    """All known codes by id.

    Raises:
        ValueError: two tables claim one code.
    """
    table: dict[str, Code] = {}
    for package in CODE_TABLES:
        path = _PACKAGE / package / "codes.yaml"
        if not path.is_file():
            continue
        for code, row in yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER).items():
            if code in table:
                raise ValueError(f"code {code} stands in two tables")
            table[code] = Code(
                code, Severity(row["severity"]), row["title"], row["reason"].strip(), row["remedy"].strip()
            )
    return table


def show(value: object) -> str:
    """A value as one short line of JSON-like text, without credentials."""
    value = redacted(value)
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    text = " ".join(text.split()) if text else '""'
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


_UNSET = object()


def finding(
    code: str,
    path: str,
    *,
    value: object = _UNSET,
    allowed: Iterable[str] = (),
    **details: object,
) -> Finding:
    """A diagnostic of a known code; `details` fill the placeholders of its texts.

    Raises:
        KeyError: unknown code or a placeholder without a detail (a bug of the caller).
    """
    row = codes()[code]
    options = tuple(str(a) for a in allowed)
    shown = None if value is _UNSET else show(value)
    fill = {"value": shown, "path": path, **{k: v if isinstance(v, str) else show(v) for k, v in details.items()}}
    return Finding(
        code=code,
        severity=row.severity,
        path=path,
        message=row.title.format(**fill),
        reason=row.reason.format(**fill),
        remedy=row.remedy.format(**fill),
        value=shown,
        allowed=options,
        closest=closest_match(value, options) if value not in (_UNSET, None) and options else None,
    )


def acknowledge(found: Iterable[Finding], acknowledged: Mapping[str, str]) -> list[Finding]:
    """Marks warnings whose code the stack file acknowledges with a reason; errors and notes stay as they are."""
    return [
        replace(d, acknowledged=acknowledged[d.code])
        if d.severity is Severity.WARNING and d.code in acknowledged
        else d
        for d in found
    ]


def errors(found: Iterable[Finding]) -> list[Finding]:
    """Only the errors, order kept."""
    return [d for d in found if d.severity is Severity.ERROR]


def text(d: Finding) -> str:
    """Readable form: one head line, then indented value, allowed, reason, remedy."""
    where = d.path or "(stack file)"
    if d.file:
        where += f"  {d.file}" + (f":{d.line}" if d.line else "")
    lines = [f"{d.severity.value} {d.code} {where}", f"    {d.message}"]
    if d.value is not None:
        lines.append(f"    found:   {d.value}")
    if d.allowed:
        lines.append("    allowed: " + ", ".join(d.allowed))
    if d.closest and d.closest != d.value:
        lines.append(f"    closest: {d.closest}")
    lines += [f"    why:     {d.reason}", f"    do:      {d.remedy}"]
    if d.acknowledged:
        lines.append(f"    acknowledged: {d.acknowledged}")
    return "\n".join(lines)


def summary(found: Iterable[Finding]) -> str:
    """`2 errors, 1 warning` or `no errors or warnings`."""
    counts = dict.fromkeys(Severity, 0)
    for d in found:
        counts[d.severity] += 1
    parts = [f"{n} {s.value}{'s' if n != 1 else ''}" for s, n in counts.items() if n]
    return ", ".join(parts) if parts else "no errors or warnings"
