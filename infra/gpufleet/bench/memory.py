"""The memory probe's lines as printed text and catalogue rows. Pure functions; memory_run.py says what was done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_FIELDS = (
    "method", "time_slice", "profile", "n", "limit_mib", "contexts_mib", "multiprocessors", "total_mib", "free_mib",
    "taken_mib", "refused", "used_full_mib", "steps", "one_more", "again_mib", "again_refused", "asking_more",
)  # fmt: skip


def text(rows: Iterable[Mapping[str, Any]]) -> str:
    """A block per line for a reader; empty without lines."""
    lines = []
    for row in rows:
        if row["kind"] != "memory":
            continue
        limit = f", limit {row['limit_mib']} MiB each" if row.get("limit_mib") else ""
        contexts = f", contexts {row['contexts_mib']} MiB together" if row.get("contexts_mib") is not None else ""
        one_more = row["one_more"]
        more = f"took {one_more['taken_mib']} MiB" if one_more["started"] else f"did not start: {one_more['reason']}"
        lines += [
            "",
            f"memory {row['method']}, {row['n']} processes{limit}{contexts}",
            f"    shown in total {_all(row['total_mib'])} MiB, free {_all(row['free_mib'])} MiB, "
            f"{row['multiprocessors']} multiprocessors",
            f"    taken in turn {', '.join(map(str, row['taken_mib']))} MiB; then {row['refused'][0]}",
            f"    correct steps meanwhile {', '.join(f'{value:.1f}' for value in row['steps'])}",
            f"    one more process {more}",
        ]
        if "asking_more" in row:
            asked = row["asking_more"]
            got = f"{asked['taken_mib']} MiB" if asked["started"] else asked["reason"]
            lines.append(f"    a client that asks for {asked['asked_mib']} MiB in its environment: {got}")
    return "\n".join(lines)


def _all(values: Iterable[int]) -> str:
    """One value where all are the same, else smallest to largest."""
    low, high = min(values := list(values)), max(values)
    return str(low) if low == high else f"{low} to {high}"


def row(run_id: str, line: Mapping[str, Any], date: str, source: str) -> dict[str, Any]:
    """A row of the catalogue."""
    content = {name: line[name] for name in _FIELDS if line.get(name) is not None}
    content["refused"] = sorted({str(reason) for reason in line["refused"]})  # nearly always the same of all
    words = (run_id, "memory", str(line["method"]), str(line.get("time_slice") or line.get("profile") or ""))
    name = " ".join(word for word in words if word)
    return {"id": f"{name} {line['n']}", "run": run_id, **content, "source": source, "as_of": date}
