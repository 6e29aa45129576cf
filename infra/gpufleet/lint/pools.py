"""What holds on a whole stack: the findings of its pools together, and whether any of them can run each workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpufleet.findings.finding import Finding
from gpufleet.lint.document import Document, Kind
from gpufleet.lint.flavors import check_flavors
from gpufleet.lint.placement import Stay, quota, replicas
from gpufleet.lint.run import Options, Report, in_order
from gpufleet.lint.whole_cluster import CODES, on_all

#: One pool: how it was looked at, and what came of it.
Judged = tuple[Options, Report]


def merge(reports: Sequence[Judged]) -> list[Finding]:
    """The findings of all pools, each once, sorted by file and line. A finding that holds only on some pools names
    them."""
    if len(reports) == 1 and reports[0][0].pool is None:
        return list(reports[0][1].found)
    known = [one for one in reports if one[0].node is not None]
    pools: dict[Finding, list[str]] = {}
    for options, report in known:
        for one in report.found:
            if one.code in CODES:
                continue
            pools.setdefault(one, []).append(_name(options))
    found = on_all([report for _, report in reports])
    found += [_on(one, names, len(known)) for one, names in pools.items()]
    for i, (document, _) in enumerate(reports[0][1].stays):
        found += _placed(document, [(options, report.stays[i][1]) for options, report in reports])
    found += check_flavors(reports[0][1].documents, [report.place for _, report in reports])
    return in_order(found)


def _placed(document: Document, stays: list[tuple[Options, Stay]]) -> Iterator[Finding]:
    """What keeps a workload from running on the stack."""
    fitting = [(options, one) for options, one in stays if one.fits]
    if not fitting:
        options, nearest = min(stays, key=lambda one: one[1].distance)
        where = f"On pool {_name(options)}" if len(stays) == 1 else f"No pool takes this; nearest is {_name(options)}"
        found = [*(one for _, one in nearest.obstacles), *nearest.faults]
        yield from (replace(one, message=f"{where}: {one.message}") for one in found)
        return
    faults: dict[Finding, list[str]] = {}
    for options, one in fitting:
        for fault in one.faults:
            faults.setdefault(fault, []).append(_name(options))
    for fault, names in faults.items():
        yield _on(fault, names, len(fitting))
    if fitting[0][0].pool is not None:
        yield from quota(document, fitting[0][0].pool)
    yield from _capacity(document, fitting)


def _capacity(document: Document, fitting: list[tuple[Options, Stay]]) -> Iterator[Finding]:
    wanted, rooms = replicas(document), [one.room for _, one in fitting]
    if wanted is None or document.kind is not Kind.WORKLOAD or any(room is None for room in rooms):
        return
    most = sum(room for room in rooms if room is not None)
    if wanted > most:
        pools = ", ".join(f"{_name(options)} takes {one.room}" for options, one in fitting)
        yield document.found("GF628", ("spec", "replicas"), value=wanted, most=most, pools=pools)


def _on(one: Finding, names: list[str], every: int) -> Finding:
    if len(names) >= every:
        return one
    words = f"pool {names[0]}" if len(names) == 1 else f"pools {', '.join(names)}"
    return replace(one, message=f"On {words}: {one.message}")


def _name(options: Options) -> str:
    return options.pool.name if options.pool else ""
