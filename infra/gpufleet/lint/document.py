"""Files, documents and places: everything that lint reads, with the line of every value.

Texts are read as kubectl, Helm and the device plugin read them (YAML 1.1 of go-yaml), not as Python would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from gpufleet.device_plugin.yaml11 import Item, YamlError, children, read
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import PathParts, join_path
from gpufleet.findings.registry import finding

#: No real object is nested as deeply; API servers refuse such objects.
MOST_LEVELS = 40
#: Styles of texts whose lines are those of the file.
BLOCKS = ("|", ">")
_SEPARATOR = re.compile(r"(?m)^---[ \t]*(?:#[^\n]*)?\r?$")


class Kind(StrEnum):
    """What a document is."""

    CONFIG = "plugin configuration"
    CONFIG_MAP = "ConfigMap"
    OPERATOR_VALUES = "GPU Operator values"
    CHART_VALUES = "device-plugin chart values"
    NFD_VALUES = "Node Feature Discovery chart values"
    HAMI_VALUES = "HAMi chart values"
    DRA_VALUES = "DRA driver chart values"
    CLUSTER_POLICY = "ClusterPolicy"
    DAEMON_SET = "DaemonSet"
    WORKLOAD = "workload"
    NODE = "Node"
    SELECTOR = "object that selects pods"
    LAYOUTS = "MIG layouts"
    QUOTA = "ResourceQuota"
    CLAIM = "claim, claim template, class of devices"
    QUEUE = "queue"
    DRIVER = "NVIDIADriver"
    OTHER = "other object"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Document:
    """One document of a file. `text` is the document alone, after as many line breaks as stand before it there."""

    file: str
    root: Item
    text: str
    kind: Kind = Kind.UNKNOWN
    prefix: PathParts = ()
    shift: int | None = None
    """What makes an offset of `root` one of the file; None where the text stands in a value of another document."""
    places: tuple[tuple[PathParts, PathParts], ...] = ()
    """Places of `root` that stand elsewhere in the text: (here, there)."""
    from_files: tuple[tuple[PathParts, str], ...] = ()
    """Places of `root` whose values stand in another file: a patch."""
    named: bool = False
    """Whether an object or an option says what it is; else its content alone does."""
    release: str = ""
    """The chart's release that an object names beside values."""
    given_name: str = ""
    """metadata.name as it is written, where a Kustomization changes it."""

    @property
    def name(self) -> str:
        """metadata.name; empty if not set."""
        return text_at(self.root, "metadata", "name")

    @property
    def namespace(self) -> str:
        """metadata.namespace; empty if not set."""
        return text_at(self.root, "metadata", "namespace")

    @property
    def api_kind(self) -> str:
        """`kind` of a Kubernetes object."""
        return text_at(self.root, "kind")

    def file_of(self, path: Sequence[str | int]) -> str:
        """The file in which a value stands."""
        whole = tuple(path)
        for place, file in reversed(self.from_files):
            if whole[: len(place)] == place:
                return file
        return self.file

    def found(
        self,
        code: str,
        path: Sequence[str | int],
        item: Item | None = None,
        *,
        closest: str | None = None,
        line: int | None = None,
        **details: object,
    ) -> Finding:
        """A finding at a place in this document; without an item, at the nearest value that exists."""
        place = item if item is not None else nearest(self.root, path)
        at = line or place.key_line or place.line or None
        file = self.file_of(path)
        for here, there in self.places:
            if tuple(path[: len(here)]) == here:
                path = (*there, *path[len(here) :])
                break
        made = finding(code, join_path((*self.prefix, *path)), **details)
        return replace(made, file=file, line=at, closest=closest or made.closest)


def get(item: Item | None, *path: str | int) -> Item | None:
    """The value at a path below an item, or None."""
    for step in path:
        if item is None:
            return None
        if isinstance(step, int):
            inside = isinstance(item.value, list) and 0 <= step < len(item.value)
            item = item.value[step] if inside else None
        else:
            item = item.value.get(step) if isinstance(item.value, dict) else None
    return item


def nearest(item: Item, path: Sequence[str | int]) -> Item:
    """The value at a path; if it does not exist, the nearest value above it."""
    for step in path:
        below = get(item, step)
        if below is None:
            break
        item = below
    return item


def text_at(item: Item | None, *path: str | int) -> str:
    """The string at a path; empty if there is none."""
    found = get(item, *path)
    return found.value if found is not None and isinstance(found.value, str) else ""


def truth(item: Item | None, *path: str | int) -> bool | None:
    """The boolean at a path, or None."""
    found = get(item, *path)
    return found.value if found is not None and isinstance(found.value, bool) else None


def entries(item: Item | None, *path: str | int) -> list[Item]:
    """The list at a path; empty if there is none."""
    found = get(item, *path)
    return found.value if found is not None and isinstance(found.value, list) else []


def pairs(item: Item | None, *path: str | int) -> dict[str, Item]:
    """The map at a path; empty if there is none."""
    found = get(item, *path)
    return found.value if found is not None and isinstance(found.value, dict) else {}


def read_inside(item: Item) -> Item | None:
    """The YAML in a text value; every value in it has its line of the file. None where the text is empty.

    Raises:
        YamlError: the text is no YAML.
    """
    root = read("\n" * item.line + item.value).root  # a block begins on the line after its key
    if root is not None and item.style not in BLOCKS:
        _on_line(root, item.line)
    return root


def _on_line(item: Item, line: int) -> None:
    """Puts a value and all in it on one line: that of the quoted text in which it stands."""
    item.line = line
    item.key_line = line if item.key_line else 0
    item.style = '"' if item.style in BLOCKS else item.style  # a block in it has no lines of the file either
    for inner in children(item):
        _on_line(inner, line)


def texts(item: Item | None) -> Iterator[str]:
    """Every string in a value, at any depth."""
    if item is None:
        return
    if isinstance(item.value, str):
        yield item.value
    elif isinstance(item.value, list):
        for entry in item.value:
            yield from texts(entry)
    elif isinstance(item.value, dict):
        for entry in item.value.values():
            yield from texts(entry)


def split(text: str) -> list[tuple[int, str]]:
    """The documents of a text as kubectl splits them: (offset of the first character, text)."""
    parts, start = [], 0
    for match in _SEPARATOR.finditer(text):
        parts.append((start, text[start : match.start()]))
        start = match.end()
    parts.append((start, text[start:]))
    return parts


def parse(file: str, text: str) -> tuple[list[Document], list[Finding]]:
    """The documents of a file, before their kinds are recognised; and a finding for each that cannot be read."""
    documents: list[Document] = []
    found: list[Finding] = []
    for offset, part in split(text):
        lines = text.count("\n", 0, offset)
        padded = "\n" * lines + part
        try:
            root = read(padded).root
        except YamlError as error:
            template = "{{" in part
            if template and any(told.code == "GF503" for told in found):
                continue  # said once of a file
            made = finding("GF503", "") if template else finding("GF501", "", fault=str(error))
            found.append(replace(made, file=file, line=error.line or lines + 1))
            continue
        if root is not None:
            documents.append(Document(file, root, padded, shift=offset - lines))
    return documents, found
