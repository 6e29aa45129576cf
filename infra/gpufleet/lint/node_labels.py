"""Whether the labels of a pool's nodes satisfy what a pod asks of its node: nodeSelector and required node affinity.

The rules are those of Kubernetes: all entries of nodeSelector hold, and of the affinity's terms at least one, with all
of its expressions (Kubernetes documentation, assign-pod-node). Of a label that nobody knows the answer is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import Document, entries, get, pairs, text_at
from gpufleet.lint.place import Labels
from gpufleet.lint.pods import pod_path, pod_spec
from gpufleet.lint.quantity import is_placeholder

#: MiB as the driver reports them: 15360 of a T4 with newer drivers, 15109 with older ones. That much they differ.
_MEMORY, _MEMORY_DIFFERS = "nvidia.com/gpu.memory", 0.05
_AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


@dataclass(frozen=True)
class Miss:
    """What a pod asks for and the nodes do not have: the label's key, the values that would do, and the place."""

    key: str
    wanted: tuple[str, ...]
    operator: str
    path: PathParts
    item: Item

    def __str__(self) -> str:
        if self.operator in ("Exists", "DoesNotExist"):
            return f"{self.key} ({self.operator})"
        if len(self.wanted) == 1 and self.operator == "In":
            return f"{self.key}={self.wanted[0]}"
        return f"{self.key} {self.operator} {', '.join(self.wanted)}"


def misses(document: Document, labels: Labels) -> list[Miss]:
    """Everything that these nodes certainly lack."""
    spec, path = pod_spec(document), pod_path(document) or ()
    found = []
    for key, item in pairs(spec, "nodeSelector").items():
        if isinstance(item.value, str) and _holds(labels, key, "In", (item.value,)) is False:
            found.append(Miss(key, (item.value,), "In", (*path, "nodeSelector", key), item))
    terms = get(spec, *_AFFINITY, "nodeSelectorTerms")
    listed = entries(spec, *_AFFINITY, "nodeSelectorTerms")
    if terms is None or not listed:
        return found
    failed = [_term(term, labels, (*path, *_AFFINITY, "nodeSelectorTerms", i)) for i, term in enumerate(listed)]
    # One term is enough. Where each lacks something, the nearest is told, with all that it lacks.
    return [*found, *sorted(failed, key=len)[0]]


def lacks(labels: Labels, wanted: Mapping[str, str]) -> list[str]:
    """The keys of these labels that the nodes certainly do not carry with these values."""
    return [key for key, value in wanted.items() if _holds(labels, key, "In", (value,)) is False]


def _term(term: Item, labels: Labels, path: PathParts) -> list[Miss]:
    """Everything that makes a term fail for certain."""
    found = []
    for i, wanted in enumerate(entries(term, "matchExpressions")):
        key, operator = text_at(wanted, "key"), text_at(wanted, "operator")
        values = tuple(v.value for v in entries(wanted, "values") if isinstance(v.value, str))
        if _holds(labels, key, operator, values) is False:
            found.append(Miss(key, values, operator, (*path, "matchExpressions", i), wanted))
    return found


def _holds(labels: Labels, key: str, operator: str, values: tuple[str, ...]) -> bool | None:
    there = labels.has(key)
    if there is None or any(is_placeholder(value) for value in values):
        return None
    if operator in ("Exists", "DoesNotExist"):
        return there is (operator == "Exists")
    if key == _MEMORY and there and any(_near(value, labels.known[key]) for value in values):
        return None
    if operator in ("In", "NotIn"):
        return (there and labels.known[key] in values) is (operator == "In")
    if operator in ("Gt", "Lt") and len(values) == 1:
        if not there:
            return False
        try:
            have, bound = int(labels.known[key]), int(values[0])
        except ValueError:
            return False
        return have > bound if operator == "Gt" else have < bound
    return None


def _near(value: str, known: str) -> bool:
    """Whether a number of MiB is another driver's for the same GPU."""
    try:
        return value != known and abs(int(value) - int(known)) <= int(known) * _MEMORY_DIFFERS
    except ValueError:
        return False


def asks_for(document: Document, prefix: str) -> bool:
    """Whether a pod chooses its node by a label whose key begins so."""
    return any(key.startswith(prefix) for key in _keys(pod_spec(document)))


def _keys(spec: Item | None) -> Iterator[str]:
    yield from pairs(spec, "nodeSelector")
    for term in entries(spec, *_AFFINITY, "nodeSelectorTerms"):
        for wanted in entries(term, "matchExpressions"):
            yield text_at(wanted, "key")
