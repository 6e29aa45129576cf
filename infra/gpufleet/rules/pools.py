"""Rules about the capacity that AKS pools ask for."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

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
