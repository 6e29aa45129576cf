"""Taints of pools, and the tolerations that follow from them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


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


def declared_taints(texts: Iterable[str]) -> set[Taint]:
    """The taints that a pool declares. Texts that are not taints are left out; a rule reports them."""
    taints = set()
    for text in texts:
        with contextlib.suppress(ValueError):
            taints.add(parse_taint(text))
    return taints


def tolerations(taints: Iterable[Taint]) -> tuple[Toleration, ...]:
    """The smallest set of tolerations that stands all of these taints, sorted."""
    return tuple(sorted({Toleration(t.key, "Equal" if t.value else "Exists", t.value, t.effect) for t in taints}))


def in_words(toleration: Mapping[str, str]) -> str:
    """`sku=gpu:NoSchedule`."""
    value = f"={toleration['value']}" if toleration.get("value") else ""
    return f"{toleration['key']}{value}:{toleration['effect']}"
