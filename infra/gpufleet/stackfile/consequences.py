"""What is reported only because something else is wrong, and is therefore left out.

A user who corrects the cause sees the rest in the next run, if it is still there. A rule says itself what it needs
(`Rule.needs`); here is when a word is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.findings.finding import Finding
from gpufleet.findings.path import PathParts, split_path
from gpufleet.findings.registry import find


@dataclass(frozen=True)
class Mistakes:
    """Where the stack file is wrong.

    Attributes:
        misshapen: places with a wrong key, type or value; what was read there is a stand-in.
        wrong: these, and places that refer to something that is not there.
        pools: the raw pools, where they are a list of maps.
    """

    misshapen: frozenset[PathParts]
    wrong: frozenset[PathParts]
    pools: tuple[Mapping[str, Any], ...]

    def in_pools(self, *keys: str) -> bool:
        """Whether the pools are not understood, or one of these keys is wrong in any of them."""
        return not self.pools or any(p[:1] == ("pools",) and p[2:] in [(key,) for key in keys] for p in self.wrong)

    def below(self, *start: str | int) -> bool:
        """Whether anything at or below a place is wrong."""
        return any(path[: len(start)] == start for path in self.wrong)


def _value(m: Mistakes, path: PathParts) -> bool:
    return path not in m.misshapen


def _names(m: Mistakes, path: PathParts) -> bool:
    if path[:1] == ("teams",):
        return bool(m.pools) and all(isinstance(pool.get("name"), str) for pool in m.pools)
    return not (path[:1] == ("pools",) and ("sharing",) in m.wrong)


def _profiles(m: Mistakes, path: PathParts) -> bool:
    return not m.in_pools("sharing")


def _offers(m: Mistakes, path: PathParts) -> bool:
    own = path[:1] == ("teams",) and m.below(*path[:2], "pools")
    return not (own or m.below("sharing") or m.in_pools("sharing", "driver", "name"))


def _owner(m: Mistakes, path: PathParts) -> bool:
    return (*path[:2], "driver") not in m.wrong


def _version(m: Mistakes, path: PathParts) -> bool:
    return (*path[:2], "driverVersion") not in m.wrong


def _drivers(m: Mistakes, path: PathParts) -> bool:
    return not m.in_pools("name", "driver", "driverVersion", "driverBranch", "vmSize", "gpu")


def _sources(m: Mistakes, path: PathParts) -> bool:
    return not m.below("hosts")


#: Word of `Rule.needs` -> whether it is known at the place of a finding.
WORDS: dict[str, Callable[[Mistakes, PathParts], bool]] = {
    "value": _value,  # what stands at the place itself
    "names": _names,  # what a name at the place may refer to
    "profiles": _profiles,  # which sharing profile each pool uses
    "offers": _offers,  # what the pools offer, all together
    "owner": _owner,  # the driver owner of the pool
    "version": _version,  # the driver version of the pool
    "drivers": _drivers,  # drivers and GPUs of all pools
    "sources": _sources,  # where hosts take packages from
}


def without_consequences(
    shape: Iterable[Finding], rules: Iterable[Finding], data: Mapping[str, Any]
) -> list[Finding]:
    """Both together, the order kept.

    Args:
        shape: what reading and validation found.
        rules: what references and rules found in the repaired rest.
        data: the raw sections.
    """
    shape, rules = list(shape), list(rules)
    if not shape and not rules:
        return []
    misshapen = frozenset(split_path(d.path) for d in shape)
    unread = {split_path(d.path) for d in (*shape, *rules) if find(d.code).hides}
    rows = data.get("pools")
    understood = isinstance(rows, list) and all(isinstance(pool, dict) for pool in rows)
    mistakes = Mistakes(
        misshapen,
        misshapen | {split_path(d.path) for d in rules if d.code < "GF2"},
        tuple(rows) if understood and rows is not None else (),
    )

    def seen(d: Finding) -> bool:
        """Whether the place of a finding was read at all."""
        path = split_path(d.path)
        return find(d.code).hides or not (path in unread or (d.code == "GF102" and path[:-1] in unread))

    def known(d: Finding) -> bool:
        path = split_path(d.path)
        return all(WORDS[word](mistakes, path) for word in find(d.code).needs)

    return [d for d in shape if seen(d)] + [d for d in rules if seen(d) and known(d)]
