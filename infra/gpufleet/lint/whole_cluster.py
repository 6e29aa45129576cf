"""Findings about objects of the whole cluster, quotas and queues: they hold where they hold on every pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpufleet.findings.finding import Finding

#: Codes of such findings.
CODES = frozenset({"GF431", "GF670"})


def on_all(pools: Sequence[Sequence[Finding]]) -> list[Finding]:
    """Each finding of these codes that all pools have, once, with what any pool would allow."""
    found: dict[tuple[str, str | None, str], list[Finding]] = {}
    for pool in pools:
        for one in pool:
            if one.code in CODES:
                found.setdefault((one.code, one.file, one.path), []).append(one)
    merged = []
    for same in found.values():
        if len(same) == len(pools):
            allowed = tuple(dict.fromkeys(word for one in same for word in one.allowed))
            merged.append(replace(same[0], allowed=allowed))
    return merged
