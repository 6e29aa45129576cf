"""Findings about a host: built from the table of codes, sorted, printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpufleet.catalog.reading import Row, Tables, kept
from gpufleet.hosts.work import Problem

_ORDER = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class HostFinding:
    """One finding about a host, with its text filled in."""

    code: str
    severity: str
    title: str
    message: str
    reason: str
    remedy: str


@kept
def _texts(tables: Tables) -> Mapping[str, Row]:
    return {row["code"]: row for row in tables.rows("host_findings", "findings")}


def finding(problem: Problem, tables: Tables) -> HostFinding:
    """The finding of a problem. Raises KeyError for a code without a row in host_findings.yaml."""
    row, values = _texts(tables)[problem.code], problem.values
    text = {part: row[part].format(**values) for part in ("message", "reason", "remedy")}
    return HostFinding(problem.code, values.get("severity", row["severity"]), row["title"], **text)


def ordered(findings: Iterable[HostFinding]) -> list[HostFinding]:
    """Errors first, then by code; the same finding once."""
    return sorted(set(findings), key=lambda f: (_ORDER[f.severity], f.code, f.message))


def accept(findings: Iterable[HostFinding], accepted: Mapping[str, str]) -> list[HostFinding]:
    """Turn warnings whose code is accepted with a reason into notes. Errors cannot be accepted."""
    reasons = {code: why.strip() for code, why in accepted.items() if why.strip()}
    return ordered(
        replace(f, severity="note", remedy=f"Accepted: {reasons[f.code]}")
        if f.severity == "warning" and f.code in reasons else f
        for f in findings
    )  # fmt: skip


def text(findings: Iterable[HostFinding]) -> str:
    """The findings for a person, three lines each."""
    return "\n".join(
        f"{f.code} {f.severity}: {f.title}: {f.message}\n      {f.reason}\n      {f.remedy}" for f in findings
    )


def count(findings: Iterable[HostFinding], severity: str) -> int:
    """How many findings have the severity."""
    return sum(1 for item in findings if item.severity == severity)
