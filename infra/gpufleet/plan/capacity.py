"""Capacity that may not be there: zones and surge nodes of scarce GPU sizes."""

from __future__ import annotations

from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.facts import Facts
from gpufleet.stackfile.pools import AksPool, Pool


def check_capacity(pool: Pool, facts: Facts, path: str) -> list[Finding]:
    """GPU sizes are offered in some zones of a region, and surge needs free capacity (Azure/AKS#1444, #4818)."""
    if not isinstance(pool, AksPool):
        return []
    found = []
    if set(pool.zones) == {"1", "2", "3"}:
        found.append(finding("GF410", f"{path}.zones", value=list(pool.zones)))
    if facts.size is not None and facts.size.scarce and pool.max_surge.rstrip("%").strip("0") != "":
        found.append(finding("GF411", f"{path}.maxSurge", value=pool.max_surge, size=facts.size.size))
    return found
