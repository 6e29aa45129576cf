"""Conditions of a node that speak of a fault of its GPUs. Pure."""

from __future__ import annotations

import re

from gpufleet.catalog import node_conditions
from gpufleet.status.observed import Condition, ObservedNode

_ABOUT_GPUS = re.compile(r"gpu|nvidia|nvlink|nvswitch|infiniband|dcgm|xid", re.IGNORECASE)
_SPEAKS_OF_GPUS = re.compile(r"\bgpus?\b|nvidia|nvlink|nvswitch|infiniband|\bnvrm\b|\bs?xids?\b", re.IGNORECASE)
#: Types of conditions that are good when True. All others follow the node problem detector: True is the problem.
_GOOD = re.compile(
    r"(ready|healthy|ok|available|operational|active|present|passed|succeeded|installed|enabled|loaded|configured"
    r"|provisioned|validated|online)$",
    re.IGNORECASE,
)
_BAD = re.compile(r"(not_?ready|unready|unhealthy|unavailable|inactive)$", re.IGNORECASE)


def gpu_faults(node: ObservedNode) -> list[Condition]:
    """Conditions that mean a GPU fault: those of the catalogue, and others whose words are about GPUs."""
    return [condition for condition in node.conditions if _is_fault(condition)]


def _is_fault(condition: Condition) -> bool:
    if condition.type == "Ready":
        return False
    if (row := node_conditions().get(condition.type)) is not None:
        return condition.status == row.fault
    good = _GOOD.search(condition.type) is not None and not _BAD.search(condition.type)
    if condition.status != ("False" if good else "True"):
        return False
    said = f"{condition.reason} {condition.message}"
    return bool(_ABOUT_GPUS.search(condition.type) or _SPEAKS_OF_GPUS.search(said))


def fault_words(condition: Condition) -> str:
    """Condition, reason, message, and what to do."""
    said = condition.words()
    row = node_conditions().get(condition.type)
    to_do = f"; {row.next}" if row else ""
    return f"GPU fault: condition {condition.type} is {condition.status}" + (f": {said}" if said else "") + to_do
