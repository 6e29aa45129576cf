"""Findings as text. Other forms (SARIF, messages of Ansible) belong here too; JSON is `Finding.as_dict`."""

from __future__ import annotations

from collections.abc import Iterable

from gpufleet.findings.finding import Finding, Severity, printable


def head(d: Finding) -> str:
    """Severity, code and place in one line."""
    where = d.path or "(stack file)"
    if d.file:
        where += f"  {d.file}" + (f":{d.line}" if d.line else "")
    return printable(f"{d.severity.value} {d.code} {where}")


def text(d: Finding) -> str:
    """Readable form: one head line, then indented value, allowed, reason, remedy."""
    lines = [head(d), f"    {d.message}"]
    if d.value is not None:
        lines.append(f"    found:   {d.value}")
    if d.allowed:
        lines.append("    allowed: " + ", ".join(d.allowed))
    if d.closest and d.closest != d.value:
        lines.append(f"    closest: {d.closest}")
    lines += [f"    why:     {d.reason}", f"    do:      {d.remedy}"]
    if d.acknowledged:
        lines.append(f"    acknowledged: {d.acknowledged}")
    return printable("\n".join(lines))


def summary(found: Iterable[Finding]) -> str:
    """`2 errors, 1 warning`, `no errors or warnings`; acknowledged warnings are counted as such."""
    counts = dict.fromkeys(Severity, 0)
    accepted = 0
    for d in found:
        accepted += d.acknowledged is not None
        counts[d.severity] += d.acknowledged is None
    parts = [f"{n} {s.value}{'s' if n != 1 else ''}" for s, n in counts.items() if n] or ["no errors or warnings"]
    if accepted:
        parts.append(f"{accepted} acknowledged")
    return ", ".join(parts)
