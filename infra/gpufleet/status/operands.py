"""The pods of the GPU software on one node: which of them fails, and which only wait for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gpufleet.catalog import operands
from gpufleet.status.observed import OperandPod


def operand_causes(here: Iterable[OperandPod], driver_owner: str) -> list[str]:
    """One line for each pod that is not ready by itself, the first in the order of the catalogue first.

    Pods that wait for it stand in its line: they get ready when it does.
    """
    here = list(here)
    present = {pod.operand for pod in here}
    unready = _unready(here)
    roots = [pod for pod in unready if not _behind(pod, unready)]
    roots.sort(key=lambda pod: (pod.waits, operands()[pod.operand].order))
    behind = [pod for pod in unready if pod not in roots]
    lines = [_line(pod, driver_owner, present) for pod in roots]
    if lines and behind:
        names = " and ".join(filter(None, (", ".join(p.operand for p in behind[:-1]), behind[-1].operand)))
        lines[0] += f"; {names} wait{'s' if len(behind) == 1 else ''} for it"
    return lines


def _unready(here: Iterable[OperandPod]) -> list[OperandPod]:
    """For each operand that has no ready pod, one: of an old and a new one, the new one."""
    found: dict[str, list[OperandPod]] = {}
    for pod in here:
        found.setdefault(pod.operand, []).append(pod)
    chosen = [
        min(pods, key=lambda pod: pod.trouble == "being deleted")
        for pods in found.values()
        if not any(pod.ready for pod in pods)
    ]
    return sorted(chosen, key=lambda pod: operands()[pod.operand].order)


def _behind(pod: OperandPod, unready: list[OperandPod]) -> bool:
    """Whether it is in an init container that waits for an operand, and that one or one before it is not ready."""
    stage = operands()[pod.operand].checks.get(pod.init or "")
    if stage is None:
        return False
    last = operands()[stage].order
    return any(other is not pod and operands()[other.operand].order <= last for other in unready)


def _line(pod: OperandPod, driver_owner: str, present: set[str]) -> str:
    text = f"{pod.operand} pod {pod.name} is not ready" + (f": {pod.trouble}" if pod.trouble else "")
    stage = operands()[pod.operand].checks.get(pod.init or "")
    if stage not in ("driver", "toolkit"):
        return text
    if driver_owner != "operator":
        return text if stage in present else f"{text}; that proves the node's own {stage}: try nvidia-smi on the node"
    return text if "driver" in present else f"{text}, and no driver pod is on the node"
