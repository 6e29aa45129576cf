"""Findings about objects of the whole cluster: quotas, queues, MIG layouts. They hold where they hold on every pool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpufleet.catalog import gpu_model
from gpufleet.findings.finding import Finding, closest_match

if TYPE_CHECKING:
    from gpufleet.lint.run import Report

_COUNTED = frozenset({"GF431", "GF670"})
#: A layout that the GPUs do not take, for one reason or another.
_MISFIT = ("GF310", "GF311", "GF312")
_CUT = frozenset({*_MISFIT, "GF655", "GF656"})
#: Codes of such findings.
CODES = _COUNTED | _CUT
_LAYOUT = re.compile(r"(.*mig-configs.+?)\[\d+\]")

Spot = tuple[str, str | None, str]


def on_all(reports: Sequence[Report]) -> list[Finding]:
    """Each finding of these codes that all pools have, once, with what any pool would allow.

    A layout is for the pools with MIG; those without do not count.
    """
    able = [report for report in reports if _has_mig(report)] or list(reports)
    return _on_all(reports, _COUNTED) + _on_all(able, _CUT)


def _has_mig(report: Report) -> bool:
    model = gpu_model(report.node.product) if report.node is not None else None
    return model is None or bool(model.mig_profiles)


def _on_all(reports: Sequence[Report], codes: frozenset[str]) -> list[Finding]:
    found: dict[Spot, dict[int, Finding]] = {}
    for i, report in enumerate(reports):
        for one in report.found:
            if one.code in codes:
                found.setdefault(_spot(one), {}).setdefault(i, one)
    merged = []
    for same in found.values():
        if len(same) == len(reports):
            allowed = tuple(dict.fromkeys(word for one in same.values() for word in one.allowed))
            more = allowed != same[0].allowed
            closest = closest_match(same[0].value, allowed) if more else None
            merged.append(replace(same[0], allowed=allowed, closest=closest or same[0].closest))
    return merged


def _spot(one: Finding) -> Spot:
    layout = _LAYOUT.match(one.path) if one.code in _CUT else None
    return "misfit" if one.code in _MISFIT else one.code, one.file, layout[1] if layout else one.path
