"""Taints that cannot be read, that Kubernetes sets itself, that stand twice, or that the place refuses."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.taints import EFFECTS, parse_taint

#: Kubernetes itself sets and removes these; a pool that declared them would fight it.
_SYSTEM_KEYS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


def check_taints(pool: FleetPool, fleet: Fleet) -> Iterator[Finding]:
    """The declared taints of one pool."""
    place, seen = fleet.place, dict[tuple[str, str], str]()
    for i, text in enumerate(pool.spec.taints):
        where = f"{pool.path}.taints[{i}]"
        try:
            taint = parse_taint(text)
        except ValueError as reason:
            yield finding("GF107", where, value=text, allowed=EFFECTS, why=str(reason))
            continue
        if (taint.key, taint.effect) in seen:
            why = f"A node holds one taint per key and effect; `{seen[taint.key, taint.effect]}` stands before it."
            yield finding("GF108", where, value=text, why=why)
        seen[taint.key, taint.effect] = text
        if taint.key.startswith(_SYSTEM_KEYS):
            why = "The control plane sets and removes it by the state of the node."
            yield finding("GF402", where, value=text, whose="Kubernetes", why=why)
        reserved = next((prefix for prefix in place.reserved_taints if taint.key.startswith(prefix)), None)
        if reserved and taint.key not in place.restated_taints:
            why = f"{place.owner_of_nodes} keeps the prefix {reserved} for itself and refuses the pool."
            yield finding("GF402", where, value=text, whose=place.owner_of_nodes, why=why)
