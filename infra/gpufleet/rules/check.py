"""All rules over a fleet: each check of the registry, on what it looks at."""

from __future__ import annotations

from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import load, run_checks
from gpufleet.fleet.model import Fleet


def check(fleet: Fleet) -> list[Finding]:
    """Everything that is wrong with a stack, or worth a warning.

    Scopes: `pool` gets every pool, `stack` the fleet; with a kind of cluster before it (`aks pool`) only those of that
    kind, and the kind alone (`aks`) gets its fleets.
    """
    load("gpufleet.rules")
    kind = fleet.place.kind.name
    found: list[Finding] = []
    for pool in fleet.pools:
        found += run_checks(f"{kind} pool", pool)
        found += run_checks("pool", pool)
    found += run_checks(kind, fleet)
    found += run_checks("stack", fleet)
    return found
