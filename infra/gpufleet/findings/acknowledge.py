"""Acknowledging warnings: a stack file names the code and gives a reason that a reviewer can judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpufleet.findings.finding import Finding, Severity


def acknowledge(found: Iterable[Finding], acknowledged: Mapping[str, str]) -> list[Finding]:
    """Marks warnings whose code the stack file acknowledges with a reason; errors and notes stay as they are."""
    return [
        replace(d, acknowledged=acknowledged[d.code])
        if d.severity is Severity.WARNING and d.code in acknowledged
        else d
        for d in found
    ]
