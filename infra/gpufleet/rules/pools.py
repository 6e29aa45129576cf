"""Rules about the capacity that AKS pools ask for."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import FleetPool
from gpufleet.places.aks.model import aks_pool, is_zero

GF410 = rule(
    "GF410", Severity.WARNING,
    title="A GPU size in all three zones is rare.",
    reason="GPU sizes are offered in some zones of a region; the pool fails if one of them lacks the size "
    "(Azure/AKS#1444).",
    remedy="Leave `zones` out, or name those that `az vm list-skus --zone` shows.",
    source="Azure/AKS#1444",
    wrong='gpufleet:pools: [{name: t4, zones: ["3", "1", "2"]}]',
    right='gpufleet:pools: [{name: t4, zones: ["1", "2"]}]',
)

GF411 = rule(
    "GF411", Severity.WARNING,
    title="An upgrade will ask for extra {size} nodes.",
    reason="Surge nodes need quota and free capacity of a scarce size; without them the upgrade fails "
    "(Azure/AKS#4818).",
    remedy="Use `maxSurge: \"0\"` with `maxUnavailable: \"1\"`.",
    source="Azure/AKS#4818; AKS-DOC (upgrade-aks-cluster)",
    wrong="gpufleet:pools: [{name: t4, vmSize: Standard_ND96isr_H100_v5, maxSurge: 33%}]",
    right="gpufleet:pools: [{name: t4, vmSize: Standard_ND96isr_H100_v5, maxSurge: 0%}]",
)


@check("aks pool", GF410, GF411)
def capacity(pool: FleetPool) -> Iterator[Finding]:
    """GPU sizes are offered in some zones of a region, and surge needs free capacity (Azure/AKS#1444, #4818)."""
    spec, size = aks_pool(pool), pool.hardware.size
    if set(spec.zones) == {"1", "2", "3"}:
        yield GF410.at(f"{pool.path}.zones", value=list(spec.zones))
    surge = spec.upgrade_settings[0]
    if size is not None and size.scarce and not is_zero(surge):
        yield GF411.at(f"{pool.path}.maxSurge", value=surge, size=size.size)
