"""Versions that are known to fail, of every component, and whether they fail at one place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from gpufleet.catalog.gpus import gpu_models
from gpufleet.catalog.reading import STANDARD, Tables, kept, typed
from gpufleet.catalog.versions import fields, within

_NOTHING: Mapping[str, Any] = MappingProxyType({})
#: Where containerd's socket is unless somebody moved it.
USUAL_SOCKET = "/run/containerd/containerd.sock"
_EXPORTER = re.compile(r"v?\d+(?:\.\d+)+-(\d+(?:\.\d+)+)")


class KnownBad(NamedTuple):
    """Versions of a component that are known to fail under a condition."""

    id: str
    component: str
    first: str | None  # lowest version concerned, included; a short one stands for all that begin with it
    last: str | None  # highest version concerned, included
    fixed_in: str | None  # first good version
    severity: str | None  # error, warning; None: no rule reads the row
    when: str
    reason: str
    source: str
    as_of: str
    remedy: str | None = None
    said_by: str | None = None  # why no rule reads the row
    applies: Mapping[str, Any] = _NOTHING  # what must be true beside the version

    def concerns(self, version: str) -> bool:
        """Whether the range holds `version`; a row without any bound holds all versions, none holds other text."""
        own = own_version(self.component, version)
        return bool(fields(own)) and within(own, self.first, self.last, self.fixed_in)

    def met(self, place: Place, tables: Tables = STANDARD) -> bool:
        """Whether every condition of the row is known to hold at a place."""
        return all(_CONDITIONS[name](place, wanted, tables) for name, wanted in self.applies.items())


@dataclass(frozen=True)
class Place:
    """What is known of the place where a version runs; None or empty is unknown.

    `gpus`: rows of gpus.yaml. `mig`: partial where MIG cuts GPUs of the nodes and may leave others whole. `uses`: the
    words of known_bad.yaml.
    """

    gpus: frozenset[str] = frozenset()
    modules: str | None = None
    mig: str | None = None
    kernel: str | None = None
    distributions: frozenset[str] = frozenset()
    runtime: str | None = None
    packages: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()


def _architectures(place: Place, tables: Tables) -> set[str]:
    models = gpu_models(tables)
    return {models[gpu].architecture for gpu in place.gpus if gpu in models}


#: Condition -> whether it is known to hold.
_CONDITIONS: Mapping[str, Callable[[Place, Any, Tables], bool]] = {
    "gpus": lambda place, wanted, _tables: bool(place.gpus & set(wanted)),
    "architectures": lambda place, wanted, tables: bool(_architectures(place, tables) & set(wanted)),
    "modules": lambda place, wanted, _tables: place.modules == wanted,
    "mig": lambda place, wanted, _tables: place.mig == wanted,
    "kernels": lambda place, wanted, _tables: any(within(place.kernel, k, k) for k in wanted if place.kernel),
    "distributions": lambda place, wanted, _tables: bool(place.distributions & set(wanted)),
    "runtime": lambda place, wanted, _tables: place.runtime == wanted,
    "package": lambda place, wanted, _tables: wanted in place.packages,
    "uses": lambda place, wanted, _tables: place.uses >= set(wanted),
}
CONDITIONS = frozenset(_CONDITIONS)


def own_version(component: str, text: str) -> str:
    """The version that the table compares: of a tag of dcgm-exporter, which begins with DCGM's, the second half."""
    match = _EXPORTER.match(text) if component == "dcgm-exporter" else None
    return match[1] if match else text


@kept
def known_bad(tables: Tables) -> tuple[KnownBad, ...]:
    """Every row, for all components."""
    return tuple(typed(KnownBad, row) for row in tables.rows("known_bad", "known_bad"))


def known_to_fail(component: str, version: str, place: Place, tables: Tables = STANDARD) -> tuple[KnownBad, ...]:
    """The faults that a version of a component is known to have at a place, errors first."""
    rows = [
        row for row in known_bad(tables)
        if row.component == component and row.severity and row.concerns(version) and row.met(place, tables)
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda row: row.severity or ""))
