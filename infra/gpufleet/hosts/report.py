"""Findings about a host: built from the table of codes, sorted, printed."""

from __future__ import annotations

from typing import Any

from .catalog import Catalog

_ORDER = {"error": 0, "warning": 1, "note": 2}


def finding(tables: Catalog, code: str, **values: Any) -> dict[str, str]:
    """One finding of host_findings.yaml with its values filled in. Raises KeyError for a code without a row."""
    row = tables.row("host_findings", "findings", "code", code)
    if row is None:
        raise KeyError(code)
    return {
        "code": code,
        "severity": values.pop("severity", row["severity"]),
        "title": row["title"],
        "message": row["message"].format(**values),
        "reason": row["reason"].format(**values),
        "remedy": row["remedy"].format(**values),
    }


def ordered(findings: list[dict[str, str]]) -> list[dict[str, str]]:
    """Errors first, then by code; the same finding once."""
    unique = {tuple(sorted(f.items())): f for f in findings}
    return sorted(unique.values(), key=lambda f: (_ORDER[f["severity"]], f["code"], f["message"]))


def accept(findings: list[dict[str, str]], accepted: dict[str, str]) -> list[dict[str, str]]:
    """Turn warnings whose code is accepted with a reason into notes. Errors cannot be accepted."""
    result = []
    for item in findings:
        why = str(accepted.get(item["code"], "")).strip()
        if item["severity"] == "warning" and why:
            item = {**item, "severity": "note", "remedy": f"Accepted: {why}"}
        result.append(item)
    return ordered(result)


def text(findings: list[dict[str, str]]) -> str:
    """The findings for a person, three lines each."""
    lines = []
    for item in findings:
        lines.append(f"{item['code']} {item['severity']}: {item['title']}: {item['message']}")
        lines.append(f"      {item['reason']}")
        lines.append(f"      {item['remedy']}")
    return "\n".join(lines)


def count(findings: list[dict[str, str]], severity: str) -> int:
    """How many findings have the severity."""
    return sum(1 for item in findings if item["severity"] == severity)
