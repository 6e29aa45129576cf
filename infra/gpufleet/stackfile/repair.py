"""What stands in for wrong values, so that the rules can look at the rest of a stack file.

A model that was repaired is never planned or deployed: it only lets one run report all there is to report.
"""

from __future__ import annotations

import copy
from typing import Any

from gpufleet.findings.path import PathParts
from gpufleet.stackfile.kinds import KINDS

#: Stands in for a text.
UNREAD = "unread"
_TEAM = {"name": UNREAD, "namespace": UNREAD, "pools": [UNREAD]}


def _stand_ins(section: str) -> dict[str, Any]:
    """Required keys of a section with what stands in for them; what is wrong there has been reported."""
    if section == "teams":
        return dict(_TEAM)
    return {key: value for kind in KINDS.values() for key, value in kind.stand_ins.get(section, {}).items()}


def at(data: Any, path: PathParts) -> Any:
    """The value at a path, or None."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def repair(data: dict[str, Any], kind: str, path: PathParts, keys: tuple[str, ...] = (), word: Any = None) -> None:
    """Changes `data` so that one error of pydantic is gone.

    Args:
        kind: pydantic's error type, or a code.
        path: the place that the error is about.
        keys: of a conflict between keys, those keys.
        word: an allowed word to write instead of the wrong one.
    """
    container = at(data, path)
    if kind == "GF110" and isinstance(container, dict) and any(k in container for k in keys):
        for key in keys:
            container.pop(key, None)
        return
    instead = next((k.neither[frozenset(keys)] for k in KINDS.values() if frozenset(keys) in k.neither), None)
    if kind == "GF110" and instead is not None and isinstance(container, dict):
        container.update(copy.deepcopy(dict(instead)))
        return
    if word is not None:
        at(data, path[:-1])[path[-1]] = word
        return
    _replace(data, path, kind)


def _replace(data: dict[str, Any], path: PathParts, kind: str) -> None:
    if not path:
        return
    section, last = path[0], path[-1]
    parent = at(data, path[:-1])
    required = _stand_ins(str(section))
    if len(path) == 1 and section in ("cluster", "stack"):
        data[str(section)] = _section(data, str(section))
    elif kind == "extra_forbidden" and isinstance(parent, dict):
        parent.pop(last, None)
    elif isinstance(parent, dict) and last in required and len(path) == (2 if section == "cluster" else 3):
        parent[last] = copy.deepcopy(required[str(last)])
    elif kind == "missing" and len(path) > 2 and last in (inner := _stand_ins(f"{section}.{path[1]}")):
        parent[last] = inner[str(last)]
    elif kind == "missing":
        _replace(data, path[:-1], "incomplete")
    elif isinstance(parent, dict):
        parent.pop(last, None)
    elif isinstance(parent, list) and isinstance(last, int) and last < len(parent):
        # Items of sections are dropped; others keep their place, so that paths of their neighbours stay right.
        parent[last] = None if len(path) == 2 else "1" if kind == "literal_error" else UNREAD


def _section(data: dict[str, Any], section: str) -> dict[str, Any]:
    pools = data.get("pools")
    rows = [p for p in pools if isinstance(p, dict)] if isinstance(pools, list) else []
    if section == "stack":
        return {"kind": "operator" if any(p.get("driver") == "operator" for p in rows) else "plugin"}
    kind = guess_kind(data)
    return {"kind": kind, **copy.deepcopy(dict(KINDS[kind].stand_ins.get("cluster", {})))}


def guess_kind(data: dict[str, Any]) -> str:
    """The kind of cluster that the first pool looks like."""
    pools = data.get("pools")
    first = pools[0] if isinstance(pools, list) and pools else None
    if not isinstance(first, dict):
        return next(iter(KINDS))
    marked = [name for name, kind in KINDS.items() if kind.marks & first.keys()]
    return (marked or [name for name, kind in KINDS.items() if not kind.marks] or list(KINDS))[0]
