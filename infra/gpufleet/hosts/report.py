"""Findings about a host: made of problems, sorted, printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpufleet.findings.acknowledge import acknowledge
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import find
from gpufleet.hosts.work import Problem

_ORDER = list(Severity)


def finding(problem: Problem) -> Finding:
    """The finding of a problem. It has no path: whoever prints it names the host.

    Raises:
        KeyError: no rule has the code, or a text names a value that the problem lacks (a bug of the caller).
    """
    details = {name: str(value) for name, value in problem.values.items()}
    found = find(problem.code).at("", **details)
    return replace(found, severity=problem.values.get("severity", found.severity))


def ordered(found: Iterable[Finding]) -> list[Finding]:
    """Errors first, then by code; the same finding once."""
    return sorted(set(found), key=lambda f: (_ORDER.index(f.severity), f.code, f.message))


def accept(found: Iterable[Finding], accepted: Mapping[str, str]) -> list[Finding]:
    """Turn warnings whose code is accepted with a reason into notes. Errors cannot be accepted."""
    reasons = {code: why.strip() for code, why in accepted.items() if why.strip()}
    return ordered(
        replace(f, severity=Severity.NOTE, remedy=f"Accepted: {f.acknowledged}") if f.acknowledged else f
        for f in acknowledge(found, reasons)
    )


def text(found: Iterable[Finding]) -> str:
    """The findings for a person, three lines each."""
    return "\n".join(f"{f.code} {f.severity.value}: {f.message}\n      {f.reason}\n      {f.remedy}" for f in found)


def as_dict(f: Finding) -> dict[str, str]:
    """A finding as the roles' tasks read it. The message of a rule about hosts is `title: what was seen`."""
    title, _, seen = f.message.partition(": ")
    return {"code": f.code, "severity": f.severity.value, "title": title, "message": seen, "reason": f.reason,
            "remedy": f.remedy}  # fmt: skip


def count(found: Iterable[Finding], severity: Severity) -> int:
    """How many findings have the severity."""
    return sum(1 for item in found if item.severity is severity)
