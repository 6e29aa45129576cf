"""The decision tree: the data that decides, and the same data as a drawing for docs/decision-tree.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpufleet.advise.request import Facts

#: MPS is preferred to time-slicing where it does at least this many times the work.
MPS_GAIN = 1.25


@dataclass(frozen=True)
class Leaf:
    method: str  # as in a stack file: timeSlicing, mps, mig, hami, none
    because: str


@dataclass(frozen=True)
class Question:
    id: str
    text: str
    ask: Callable[[Facts], bool]
    yes: Question | Leaf
    no: Question | Leaf


@dataclass(frozen=True)
class Step:
    """One answered question."""

    question: str
    answer: bool


def _mig(f: Facts) -> bool:
    return f.mig is not None and f.mig.pods >= 2


def _mps_is_better(f: Facts) -> bool:
    sliced, mps = f.time_slicing, f.mps
    if mps.expected is None or sliced.expected is None:
        return False
    if f.request.bound and mps.gpus != sliced.gpus:
        return mps.gpus < sliced.gpus
    return mps.expected.total >= MPS_GAIN * sliced.expected.total


WHOLE = "a pod gets a whole GPU"

_LIMITED = Question(
    "alike",
    "Do all pods need about the same memory?",
    lambda f: f.request.alike,
    yes=Question(
        "mps-limited",
        "Does MPS serve two or more pods per GPU?",
        lambda f: f.mps.pods >= 2,
        yes=Leaf("mps", "MPS limits each pod to an equal part of memory and threads; a fault can still reach others"),
        no=Leaf("none", f"nothing that limits memory serves this request: {WHOLE}"),
    ),
    no=Leaf("hami", "HAMi limits memory and cores to what each pod asks for; its performance was not measured"),
)

TREE = Question(
    "several",
    "Is there more than one pod, and do two fit into the GPU's memory?",
    lambda f: f.request.users > 1 and f.by_memory >= 2,
    yes=Question(
        "fault",
        "Must a fault in one pod never reach another (isolation: fault)?",
        lambda f: f.request.isolation == "fault",
        yes=Question(
            "mig-fault",
            "Has the GPU a MIG profile that holds a pod, at least twice?",
            _mig,
            yes=Leaf("mig", "only MIG keeps memory and faults apart on one GPU"),
            no=Leaf("none", f"only MIG keeps faults apart on one GPU, and it does not fit: {WHOLE}"),
        ),
        no=Question(
            "limit",
            "Must each pod's memory be limited (isolation: memory, or environment: production)?",
            lambda f: f.request.isolation == "memory" or f.request.environment == "production",
            yes=Question(
                "mig-production",
                "Is it production, without a bound (MIG is not measured), on a GPU whose MIG profiles hold two pods?",
                lambda f: f.request.environment == "production" and f.request.bound is None and _mig(f),
                yes=Leaf("mig", "in production the one method that keeps pods apart in hardware comes first"),
                no=_LIMITED,
            ),
            no=Question(
                "sliced",
                "Does time-slicing serve two or more pods per GPU?",
                lambda f: f.time_slicing.pods >= 2,
                yes=Question(
                    "mps-better",
                    f"Does MPS keep the bound on fewer GPUs, or else do {MPS_GAIN:g} times the work?",
                    _mps_is_better,
                    yes=Leaf("mps", "it needs fewer GPUs, or does more work, than time-slicing"),
                    no=Leaf("timeSlicing", "it serves the request and is the simplest method"),
                ),
                no=Question(
                    "mps-only",
                    "Does MPS serve two or more pods per GPU?",
                    lambda f: f.mps.pods >= 2,
                    yes=Leaf("mps", "pods run at the same time instead of in turns"),
                    no=Leaf("none", f"sharing does not serve this request: {WHOLE}"),
                ),
            ),
        ),
    ),
    no=Leaf("none", f"there is nothing to share: {WHOLE}"),
)


def decide(facts: Facts) -> tuple[Leaf, list[Step]]:
    """The leaf, and the answers that lead to it."""
    steps = []
    node: Question | Leaf = TREE
    while isinstance(node, Question):
        answer = node.ask(facts)
        steps.append(Step(node.text, answer))
        node = node.yes if answer else node.no
    return node, steps


def nodes(node: Question | Leaf = TREE) -> Iterator[Question | Leaf]:
    """Every node, parents first."""
    yield node
    if isinstance(node, Question):
        yield from nodes(node.yes)
        yield from nodes(node.no)


def drawing() -> str:
    """The tree as a Mermaid flow chart and as a nested list, which docs/decision-tree.md holds."""
    lines = ["```mermaid", "flowchart TD"]
    _draw(TREE, "", "", lines, {})
    lines += ["```", ""]
    _list(TREE, "", lines)
    return "\n".join(lines)


def _draw(node: Question | Leaf, parent: str, label: str, lines: list[str], seen: dict[str, int]) -> None:
    if isinstance(node, Question):
        name = node.id.replace("-", "_")
        lines.append(f'    {name}{{"{node.text}"}}')
    else:
        seen[node.method] = seen.get(node.method, 0) + 1
        name = f"{node.method}_{seen[node.method]}"
        lines.append(f'    {name}["{node.method}"]')
    if parent:
        lines.append(f"    {parent} -->|{label}| {name}")
    if isinstance(node, Question):
        _draw(node.yes, name, "yes", lines, seen)
        _draw(node.no, name, "no", lines, seen)


def _list(node: Question | Leaf, indent: str, lines: list[str], answer: str = "") -> None:
    prefix = f"{answer}: " if answer else ""
    if isinstance(node, Leaf):
        lines.append(f"{indent}- {prefix}**{node.method}**: {node.because}")
        return
    lines.append(f"{indent}- {prefix}{node.text}")
    _list(node.yes, indent + "  ", lines, "yes")
    _list(node.no, indent + "  ", lines, "no")
