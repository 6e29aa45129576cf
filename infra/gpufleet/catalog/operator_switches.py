"""Values of the operator's chart that decide whether what a plan promises comes true."""

from __future__ import annotations

from typing import NamedTuple

from gpufleet.catalog.reading import table


class Promise(NamedTuple):
    """A value that must stay one of `only`, where the value `where` is true."""

    value: str
    only: tuple[bool | str, ...]
    because: str
    where: str | None = None


class Idle(NamedTuple):
    """A value that does nothing without `needs`. `of`: only this word does nothing."""

    value: str
    because: str
    needs: str | None = None
    of: bool | None = None


class Options(NamedTuple):
    """Names of variables or options in a list of the values that the plan decides itself."""

    list: str
    names: tuple[str, ...]


promises = table("operator_switches", "operator_promises", Promise)
idle = table("operator_switches", "operator_idle", Idle)
options = table("operator_switches", "operator_options", Options)
