"""Merges the findings of several pools. A finding that holds only on some pools names them."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.findings.finding import Finding, Severity
from gpufleet.lint.document import Kind
from gpufleet.lint.run import Report, in_order
from gpufleet.lint.whole_cluster import CODES, on_all

#: Codes that say that a pod cannot run on a pool. If another pool takes the pod, nothing is wrong.
_KEEP_OFF = frozenset({"GF603", "GF620"})

Spot = tuple[str, str | None, int | None, str]


def merge(reports: list[tuple[str, Report]]) -> list[Finding]:
    """The findings of all pools, each once, sorted by file and line. A single report is returned unchanged."""
    if len(reports) == 1:
        return list(reports[0][1].found)
    pools: dict[Finding, list[str]] = {}
    spots: dict[Spot, set[str]] = {}
    for name, report in reports:
        for one in report.found:
            if one.code in CODES:
                continue
            pools.setdefault(one, []).append(name)
            spots.setdefault(_spot(one), set()).add(name)
    everywhere = {name for name, _ in reports}
    found = on_all([report for _, report in reports])
    for one, names in pools.items():
        merged = one
        if len(names) < len(everywhere):
            merged = replace(merged, message=f"On {_words(names)}: {merged.message}")
        taken = spots[_spot(one)] != everywhere and not _is_daemon_set(one, reports[0][1])
        if one.code in _KEEP_OFF and taken:
            merged = replace(merged, severity=Severity.NOTE)
        found.append(merged)
    return in_order(found)


def _spot(one: Finding) -> Spot:
    return one.code, one.file, one.line, one.path


def _words(names: list[str]) -> str:
    return f"pool {names[0]}" if len(names) == 1 else f"pools {', '.join(names)}"


def _is_daemon_set(one: Finding, report: Report) -> bool:
    """Whether the finding is about a DaemonSet: it must reach every pool, so another pool does not make up for one."""
    before = [d for d in report.documents if d.file == one.file and d.root.line <= (one.line or 0)]
    return bool(before) and before[-1].kind is Kind.DAEMON_SET
