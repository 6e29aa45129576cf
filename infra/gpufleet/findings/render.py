"""Findings as text. Other forms (SARIF, messages of Ansible) belong here too; JSON is `Finding.as_dict`."""

from __future__ import annotations

from collections.abc import Iterable

from gpufleet.findings.finding import Finding, Severity


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
