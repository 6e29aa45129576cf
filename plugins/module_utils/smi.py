"""Reading `nvidia-smi -q`: indented text, one block per GPU.

Format seen on driver 580.159.04 with an H200. Lines are `key : value`, blocks are indented by four spaces a level.
"""

from __future__ import annotations

import re
from typing import Any, Iterator

_LINE = re.compile(r"^( *)(\S.*?)(?:\s+: (.*))?$")


def parse(text: str) -> dict[str, Any] | None:
    """The report as {"driver_version", "gpus": [...]}, or None when the text holds no driver version.

    Each GPU: bus_id, name, uuid, persistence (bool), mig_current, mig_pending, ecc_current, ecc_pending (text),
    ecc_uncorrectable (volatile count or None), remap_pending and remap_failed (bool), power_limit_w, power_min_w,
    power_max_w (float or None), memory_mib (int or None), fabric_state, fabric_status, recovery_action (text or None),
    mig_devices (int).
    """
    top = {}
    gpus: list[tuple[str, dict[tuple[str, ...], str]]] = []
    for path, value in _paths(text):
        if path[0].startswith("GPU "):
            if not gpus or gpus[-1][0] != path[0]:
                gpus.append((path[0], {}))
            gpus[-1][1].setdefault(path[1:], value)
        elif len(path) == 1:
            top[path[0]] = value
    if not top.get("Driver Version"):
        return None
    return {"driver_version": top["Driver Version"], "gpus": [_gpu(name[4:], rows) for name, rows in gpus]}


def _paths(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """(path, value) for every line, the path being the names of the blocks around it and its own."""
    stack: list[str] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or line.startswith("="):
            continue
        depth = len(match.group(1)) // 4
        del stack[depth:]
        stack.append(match.group(2).strip())
        yield tuple(stack), (match.group(3) or "").strip()


def _gpu(bus_id: str, rows: dict[tuple[str, ...], str]) -> dict[str, Any]:
    def get(*path: str) -> str | None:
        value = rows.get(path)
        return None if value in (None, "", "N/A", "[N/A]") else value

    def number(*path: str) -> float | None:
        match = re.match(r"-?\d+(?:\.\d+)?", get(*path) or "")
        return float(match.group(0)) if match else None

    power = "GPU Power Readings" if ("GPU Power Readings", "Current Power Limit") in rows else "Power Readings"
    limit = number(power, "Current Power Limit")
    volatile = [
        number(*path)
        for path in rows
        if path[:2] == ("ECC Errors", "Volatile") and len(path) == 3 and "Uncorrectable" in path[2]
    ]
    memory = number("FB Memory Usage", "Total")
    return {
        "bus_id": bus_id,
        "name": get("Product Name"),
        "uuid": get("GPU UUID"),
        "persistence": get("Persistence Mode") == "Enabled",
        "mig_current": get("MIG Mode", "Current"),
        "mig_pending": get("MIG Mode", "Pending"),
        "mig_devices": sum(1 for path in rows if len(path) == 2 and path[0] == "MIG Device" and path[1] == "Index"),
        "ecc_current": get("ECC Mode", "Current"),
        "ecc_pending": get("ECC Mode", "Pending"),
        "ecc_uncorrectable": int(sum(v for v in volatile if v is not None))
        if any(v is not None for v in volatile)
        else None,
        "remap_pending": get("Remapped Rows", "Pending") == "Yes",
        "remap_failed": get("Remapped Rows", "Remapping Failure Occurred") == "Yes",
        "power_limit_w": limit if limit is not None else number(power, "Power Limit"),
        "power_min_w": number(power, "Min Power Limit"),
        "power_max_w": number(power, "Max Power Limit"),
        "memory_mib": int(memory) if memory is not None else None,
        "fabric_state": get("Fabric", "State"),
        "fabric_status": get("Fabric", "Status"),
        "recovery_action": get("GPU Recovery Action"),
    }
