"""What is reported only because something else is wrong, and is therefore left out.

A user who corrects the cause sees the rest in the next run, if it is still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.findings.finding import Finding
from gpufleet.stackfile.source import split_path

#: A value with one of these was not read at all: nothing else about it is known.
_UNREAD = ("GF004", "GF006", "GF007", "GF008")
#: Rules that conclude from what all pools and profiles offer together.
_FROM_ALL_POOLS = ("GF222", "GF225", "GF306", "GF317", "GF430", "GF431")
#: Rules that compare images with drivers and GPUs.
_FROM_DRIVERS = ("GF350", "GF351", "GF352", "GF353", "GF354", "GF356")
#: Rules that conclude from where packages come from.
_FROM_SOURCES = ("GF806", "GF807", "GF808")


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
    misshapen = {split_path(d.path) for d in shape}
    unread = {split_path(d.path) for d in (*shape, *rules) if d.code in _UNREAD}
    wrong = misshapen | {split_path(d.path) for d in rules if d.code < "GF2"}
    pools = data.get("pools")
    rows = pools if isinstance(pools, list) else []
    broken = not rows or not all(isinstance(pool, dict) for pool in rows)
    names_unknown = broken or not all(isinstance(pool.get("name"), str) for pool in rows)

    def chosen_wrongly(*keys: str) -> bool:
        return any(path[:1] == ("pools",) and path[2:] in [(key,) for key in keys] for path in wrong)

    profiles_unknown = broken or chosen_wrongly("sharing")
    offers_unknown = broken or chosen_wrongly("sharing", "driver", "name") or any(p[:1] == ("sharing",) for p in wrong)

    drivers_unknown = broken or chosen_wrongly("name", "driver", "driverVersion", "driverBranch", "vmSize", "gpu")

    def follows(d: Finding) -> bool:
        path = split_path(d.path)
        if d.code in _UNREAD:
            return False
        if path in misshapen and d.code not in ("GF108", "GF110"):
            return True  # a stand-in was looked at
        if d.code == "GF109":
            return (path[0] == "teams" and names_unknown) or (path[0] == "pools" and ("sharing",) in wrong)
        if d.code == "GF303":
            return profiles_unknown
        if d.code in _FROM_ALL_POOLS:
            return offers_unknown or any(p[:1] == path[:1] and p[2:3] == ("pools",) and p[1] == path[1] for p in wrong)
        if d.code in _FROM_SOURCES and any(p[:1] == ("hosts",) for p in wrong):
            return True
        if d.code == "GF802":
            return (*path[:2], "driverVersion") in wrong
        if d.code in _FROM_DRIVERS:
            return drivers_unknown
        return "GF2" < d.code < "GF23" and (*path[:2], "driver") in wrong

    def unseen(d: Finding) -> bool:
        path = split_path(d.path)
        return d.code not in _UNREAD and (path in unread or (d.code == "GF102" and path[:-1] in unread))

    return [d for d in shape if not unseen(d)] + [d for d in rules if not unseen(d) and not follows(d)]
