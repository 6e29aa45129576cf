"""Rules about taints and the tolerations that follow from them."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.parts.taints import EFFECTS, parse_taint, tolerations
from gpufleet.places.aks.model import aks_pool
from gpufleet.places.aks.place import SPOT_KEY, SPOT_TAINT
from gpufleet.stackfile.rules import GF107, GF108

GF401 = rule(
    "GF401", Severity.ERROR,
    title="The spot taint is stated differently from what AKS sets.",
    reason="AKS itself adds kubernetes.azure.com/scalesetpriority=spot:NoSchedule to spot pools, and only to them.",
    remedy="Remove the taint and set `spot: true`.",
    source="AKS-DOC (spot-node-pool)",
    wrong="""
        gpufleet:pools:
          - {name: t4, taints: ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"]}
    """,
    right="""
        gpufleet:pools:
          - {name: t4, taints: ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"], spot: true}
    """,
)

GF402 = rule(
    "GF402", Severity.ERROR,
    title="{value} is a taint of {whose} itself.",
    reason="Kubernetes sets and removes its own taints by the state of the node; AKS refuses other taints under its "
    "prefix.",
    remedy="Use a key of your own.",
    source="K8S-DOC (taint-and-toleration); Azure/karpenter-provider-azure#1830",
    wrong='gpufleet:pools: [{name: t4, taints: ["kubernetes.azure.com/x=z:NoSchedule"]}]',
    right='gpufleet:pools: [{name: t4, taints: ["azure.com/x=z:NoSchedule"]}]',
)

GF440 = rule(
    "GF440", Severity.NOTE,
    title="Pods that ask for {resource} must carry a toleration of their own.",
    reason="Kubernetes' ExtendedResourceToleration, which AKS has on, adds a toleration by itself. Its key is the name "
    "of the requested resource, which is not the key of this taint (Azure/AKS#1449).",
    remedy="Add to the pods: {add}",
    source="Azure/AKS#1449",
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, renameByDefault: true}}
        gpufleet:pools: [{name: t4, sharing: half, taints: ["nvidia.com/gpu=present:NoSchedule"]}]
    """,
    fix=("2, renameByDefault: true", "2"),
)


#: Kubernetes itself sets and removes these; a pool that declared them would fight it.
_SYSTEM_KEYS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


@check("pool", GF107, GF108, GF402)
def declared(pool: FleetPool) -> Iterator[Finding]:
    """The declared taints of one pool."""
    place, seen = pool.place, dict[tuple[str, str], str]()
    for i, text in enumerate(pool.spec.taints):
        where = f"{pool.path}.taints[{i}]"
        try:
            taint = parse_taint(text)
        except ValueError as reason:
            yield GF107.at(where, value=text, allowed=EFFECTS, because=str(reason))
            continue
        if (taint.key, taint.effect) in seen:
            because = f"A node holds one taint per key and effect; `{seen[taint.key, taint.effect]}` stands before it."
            yield GF108.at(where, value=text, because=because)
        seen[taint.key, taint.effect] = text
        if taint.key.startswith(_SYSTEM_KEYS):
            because = "The control plane sets and removes it by the state of the node."
            yield GF402.at(where, value=text, whose="Kubernetes", because=because)
        reserved = next((prefix for prefix in place.reserved_taints if taint.key.startswith(prefix)), None)
        if reserved and taint.key not in place.restated_taints:
            because = f"{place.owner_of_nodes} keeps the prefix {reserved} for itself and refuses the pool."
            yield GF402.at(where, value=text, whose=place.owner_of_nodes, because=because)


@check("aks pool", GF401)
def spot(pool: FleetPool) -> Iterator[Finding]:
    """The spot taint is AKS's: a pool may restate it, as AKS sets it, and only where it is spot."""
    spec = aks_pool(pool)
    for i, text in enumerate(spec.taints):
        try:
            taint = parse_taint(text)
        except ValueError:
            continue
        if taint.key == SPOT_KEY and (not spec.spot or taint != SPOT_TAINT):
            yield GF401.at(f"{pool.path}.taints[{i}]", value=text)


@check("stack", GF440)
def tolerations_of_pods(fleet: Fleet) -> Iterator[Finding]:
    """AKS tolerates a GPU taint only for the resource of that very name (Azure/AKS#1449; case AZ-19)."""
    for pool in fleet.served:
        resources = pool.method.resources
        repelling = [taint for taint in pool.taints if taint.key == "nvidia.com/gpu"]
        if resources == ("nvidia.com/gpu",) or not repelling:
            continue
        value, names = ", ".join(map(str, repelling)), " or ".join(resources)
        add = [t.as_dict() for t in tolerations(repelling)]
        yield GF440.at(f"{pool.path}.taints", value=value, resource=names, add=add)
