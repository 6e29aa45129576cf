"""Taints of pools, and the tolerations that follow from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpufleet.findings.finding import Finding, finding
from gpufleet.stackfile.pools import AksPool, Pool

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
#: AKS appends this taint to every spot pool (learn.microsoft.com, AKS spot node pools; case AZ-09).
SPOT_KEY = "kubernetes.azure.com/scalesetpriority"
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
#: AKS refuses other taints under this prefix (Azure/karpenter-provider-azure#1830, 2026-08-05).
_AKS_PREFIX = "kubernetes.azure.com/"
#: Kubernetes itself sets and removes these; a pool that declared them would fight it.
_SYSTEM_KEYS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


@dataclass(frozen=True, order=True)
class Taint:
    """One taint as the node carries it."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, order=True)
class Toleration:
    """What a pod needs to stand one taint, no wider."""

    key: str
    operator: str
    value: str
    effect: str

    def as_dict(self) -> dict[str, str]:
        """The Kubernetes form."""
        base = {"key": self.key, "operator": self.operator, "effect": self.effect}
        return {**base, "value": self.value} if self.operator == "Equal" else base


SPOT_TAINT = Taint(SPOT_KEY, "spot", "NoSchedule")


def parse_taint(text: str) -> Taint:
    """Reads `key=value:Effect` or `key:Effect`.

    Raises:
        ValueError: with the reason, when the text is not a taint.
    """
    body, colon, effect = text.rpartition(":")
    if not colon:
        raise ValueError("The effect is missing.")
    if effect not in EFFECTS:
        near = [e for e in EFFECTS if e.lower() == effect.lower().replace("_", "")]
        other = f"; Kubernetes writes it {near[0]}" if near else ""
        raise ValueError(f"The effect is one of {', '.join(EFFECTS)}{other}.")
    key, _, value = body.partition("=")
    if not _KEY.fullmatch(key):
        raise ValueError("The key is an optional DNS prefix and a name of at most 63 characters.")
    if not _VALUE.fullmatch(value):
        raise ValueError("The value is letters, digits, '-', '_' and '.', at most 63 characters.")
    return Taint(key, value, effect)


def pool_taints(pool: Pool) -> tuple[Taint, ...]:
    """The final taints of a pool's nodes, sorted: those declared, and what AKS adds to spot pools.

    Texts that are not taints are left out; `check_taints` reports them.
    """
    taints = set()
    for text in pool.taints:
        try:
            taints.add(parse_taint(text))
        except ValueError:
            continue
    if isinstance(pool, AksPool) and pool.spot:
        taints.add(SPOT_TAINT)
    return tuple(sorted(taints))


def tolerations(taints: Iterable[Taint]) -> tuple[Toleration, ...]:
    """The smallest set of tolerations that stands all of these taints, sorted."""
    return tuple(sorted({Toleration(t.key, "Equal" if t.value else "Exists", t.value, t.effect) for t in taints}))


def check_taints(pool: Pool, path: str) -> list[Finding]:
    """Taints that are none, that are Kubernetes' own, that stand twice, or that contradict spot."""
    found: list[Finding] = []
    seen: dict[tuple[str, str], str] = {}
    for i, text in enumerate(pool.taints):
        where = f"{path}.taints[{i}]"
        try:
            taint = parse_taint(text)
        except ValueError as reason:
            found.append(finding("GF107", where, value=text, allowed=EFFECTS, why=str(reason)))
            continue
        if (taint.key, taint.effect) in seen:
            why = f"A node holds one taint per key and effect; `{seen[taint.key, taint.effect]}` stands before it."
            found.append(finding("GF108", where, value=text, why=why))
        seen[taint.key, taint.effect] = text
        if taint.key.startswith(_SYSTEM_KEYS):
            why = "The control plane sets and removes it by the state of the node."
            found.append(finding("GF402", where, value=text, whose="Kubernetes", why=why))
        if isinstance(pool, AksPool) and taint.key.startswith(_AKS_PREFIX) and taint.key != SPOT_KEY:
            why = f"AKS keeps the prefix {_AKS_PREFIX} for itself and refuses the pool."
            found.append(finding("GF402", where, value=text, whose="AKS", why=why))
        if taint.key == SPOT_KEY and isinstance(pool, AksPool) and (not pool.spot or taint != SPOT_TAINT):
            found.append(finding("GF401", where, value=text))
    return found
