"""Reads a text the way the device plugin does: sigs.k8s.io/yaml over the v2 line of go-yaml (YAML 1.1), as JSON values.

libyaml does the scanning (go-yaml is a port of it); composing, resolving of scalars, merge keys, duplicates and the
conversion to JSON follow go-yaml, because PyYAML's own rules differ: `1:30` is text there, `08` a float, a merge
key overrides what stands before it. Only the first document is read.
Source: go.yaml.in/yaml v2.4 decode.go, resolve.go; sigs.k8s.io/yaml v1.6.0 yaml.go.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpufleet.device_plugin import golang

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Deeper nesting is refused. Go refuses it at 10,000 levels; no configuration needs more than ten.
MAX_DEPTH = 100

#: go-yaml knows the byte order mark only at the start of a text; inside it is a letter like any other, for libyaml it
#: is not, so a private letter stands in for it.
_BOM, _BOM_INSIDE = "\ufeff", "\uf8fe"

_TAG = "tag:yaml.org,2002:"
_RESOLVABLE = {_TAG + t for t in ("str", "bool", "int", "float", "null", "timestamp")}
_WORDS: dict[str, Any] = {}
for _words, _value in (
    (("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    (("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    (("", "~", "null", "Null", "NULL"), None),
    ((".nan", ".NaN", ".NAN"), float("nan")),
    ((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    (("-.inf", "-.Inf", "-.INF"), float("-inf")),
):
    _WORDS.update(dict.fromkeys(_words, _value))
_DATE = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_CLOCK = r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d+)?"
_TIMESTAMP = re.compile(rf"{_DATE}(?:(?:[Tt]{_CLOCK}(?:Z|[-+]\d\d:\d\d))| {_CLOCK})?", re.ASCII)


class YamlError(ValueError):
    """The text is refused; `line` is 1-based, None where unknown."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class Item:
    """A JSON value with its place: None, bool, int, float, str, a list of items or a map.

    `line` is where the value starts, `key_line` where its key stands (both 1-based); `style` is the quote of a
    scalar ("" when plain), `text` what was written. `span` and `key_span` are character offsets in the text; those of
    a value that comes from an alias or a merge key lie at the anchor.
    """

    value: Any
    line: int
    key_line: int = 0
    text: str = ""
    style: str = ""
    span: tuple[int, int] = (0, 0)
    key_span: tuple[int, int] = (0, 0)
    lost: list[tuple[str, Item]] = field(default_factory=list)
    """Of a map: keys whose value a later equal key replaced."""
    bad_key: int = 0
    """Of a map: the line of a key that JSON cannot have (null, an integer beyond int64), 0 if there is none."""


@dataclass(frozen=True, slots=True)
class Document:
    """The first document of a text; `second_line` is where the next one begins, None if there is none."""

    root: Item | None
    second_line: int | None = None


@dataclass(slots=True)
class _Node:
    kind: str  # scalar, sequence, mapping, alias
    line: int
    value: str = ""
    tag: str = ""
    plain: bool = True
    style: str = ""
    start: int = 0
    end: int = 0
    children: list[_Node] = field(default_factory=list)
    target: _Node | None = None


def _events(text: str) -> Iterator[Any]:
    """Events of libyaml, its errors as YamlError."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise YamlError("invalid UTF-8") from None
    body = text.removeprefix(_BOM)
    if body.startswith(_BOM):
        raise YamlError("two byte order marks", 1)
    try:
        yield from yaml.parse(body.replace(_BOM, _BOM_INSIDE), Loader=_LOADER)
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
        raise YamlError(problem, mark.line + 1 if mark else None) from None


def _compose(events: Iterator[Any], bom: int) -> tuple[_Node | None, int | None]:
    """The node tree of the first document, and the line of the document after it; `bom` characters came before."""
    anchors: dict[str, _Node] = {}
    top = _Node("sequence", 1)
    stack, flow = [top], [False]
    for event in events:
        mark: Any = event.start_mark
        last: Any = event.end_mark
        line = int(mark.line) + 1
        if isinstance(event, yaml.DocumentStartEvent):
            if event.version not in (None, (1, 1)):
                raise YamlError("found incompatible YAML document", line)
        elif isinstance(event, yaml.DocumentEndEvent):
            break
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            stack.pop().end = last.index + bom
            flow.pop()
        elif isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent, yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            if isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchors:
                    raise YamlError(f"unknown anchor '{event.anchor}' referenced", line)
                node = _Node("alias", line, event.anchor, target=anchors[event.anchor])
            elif isinstance(event, yaml.ScalarEvent):
                style = event.style or ""
                value = event.value.replace(_BOM_INSIDE, _BOM)
                if event.implicit[0] and flow[-1] and "?" in value:
                    raise YamlError("did not find expected ',' or ']'", line)  # go-yaml ends the word at the mark
                node = _Node("scalar", line, value, event.tag or "", bool(event.implicit[0]), style)
            else:
                node = _Node("sequence" if isinstance(event, yaml.SequenceStartEvent) else "mapping", line)
            node.start, node.end = mark.index + bom, last.index + bom
            if node.kind != "alias" and event.anchor:
                anchors[event.anchor] = node
            stack[-1].children.append(node)
            if node.kind in ("sequence", "mapping"):
                stack.append(node)
                flow.append(bool(getattr(event, "flow_style", False)))
                if len(stack) > MAX_DEPTH:
                    raise YamlError("exceeded max depth", line)
    if not top.children:
        return None, None
    return top.children[0], _next_document(events)


def _next_document(events: Iterator[Any]) -> int | None:
    """Line of the following document, if any; what cannot be scanned there is never read by the plugin either."""
    try:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                mark: Any = event.start_mark
                return int(mark.line) + 1
    except YamlError as error:
        return error.line
    return None


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day = (int(match[i]) for i in (1, 2, 3))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    clock = [int(part) for part in match.groups()[3:] if part is not None] or [0, 0, 0]
    return 1 <= month <= 12 and 1 <= day <= days[month - 1] and clock[0] < 24 and clock[1] < 60 and clock[2] < 60


def resolve(text: str) -> Any:
    """The value of a plain scalar under YAML 1.1 as go-yaml has it: None, bool, int, float or str.

    Timestamps stay text; base-60 numbers are text; underscores in numbers are dropped.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        number = golang.parse_float(text)
        return text if number is None else number
    if text[0] not in "+-0123456789" or _is_timestamp(text):
        return text
    plain = text.replace("_", "")
    whole = golang.parse_int(plain)
    if whole is not None:
        return whole
    number = golang.parse_float(plain)
    return text if number is None else number


def _kind(value: Any) -> str:
    return {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value), "str")


def _scalar(node: _Node) -> Any:
    """The value of a scalar with its tag.

    Raises:
        YamlError: the text does not fit the tag.
    """
    if not node.tag:
        return resolve(node.value) if node.plain else node.value
    if node.tag == _TAG + "binary":
        try:
            return base64.b64decode("".join(node.value.split("\n")), validate=True).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            raise YamlError("!!binary value contains invalid base64 data", node.line) from None
    if node.tag not in _RESOLVABLE or node.tag == _TAG + "str":
        return node.value
    wanted = node.tag.removeprefix(_TAG)
    value = resolve(node.value)
    if wanted == "timestamp" and _is_timestamp(node.value):
        return node.value
    if wanted == "float" and _kind(value) == "int" and value <= golang.INT64_MAX:
        return float(value)
    if _kind(value) != wanted:
        raise YamlError(f"cannot decode !!{_kind(value)} `{node.value}` as a !!{wanted}", node.line)
    return value


class _Decoder:
    """Turns nodes into items; counts like go-yaml, which refuses texts that are mostly alias expansion."""

    def __init__(self) -> None:
        self.count = self.alias_count = self.alias_depth = 0
        self.open: set[int] = set()
        self.depth = 0

    def item(self, node: _Node) -> Item:
        self.count += 1
        self.alias_count += 1 if self.alias_depth else 0
        if self.alias_count > 100 and self.count > 1000 and self.alias_count / self.count > self._ratio():
            raise YamlError("document contains excessive aliasing", node.line)
        if node.kind == "alias":
            return self._alias(node)
        if node.kind == "scalar":
            return Item(_scalar(node), node.line, text=node.value, style=node.style, span=(node.start, node.end))
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise YamlError("exceeded max depth", node.line)
        if node.kind == "sequence":
            out = Item([self.item(child) for child in node.children], node.line)
        else:
            out = Item({}, node.line)
            self._mapping(node, out)
        self.depth -= 1
        out.span = (node.start, node.end)
        return out

    def _ratio(self) -> float:
        low, high = 400_000, 4_000_000
        if self.count <= low:
            return 0.99
        return 0.10 if self.count >= high else 0.99 - 0.89 * (self.count - low) / (high - low)

    def _alias(self, node: _Node) -> Item:
        if id(node) in self.open:
            raise YamlError(f"anchor '{node.value}' value contains itself", node.line)
        assert node.target is not None
        self.open.add(id(node))
        self.alias_depth += 1
        out = self.item(node.target)
        self.alias_depth -= 1
        self.open.discard(id(node))
        return out

    def _mapping(self, node: _Node, out: Item) -> None:
        """Adds the entries of a mapping to `out` in the order of the text. A later equal key replaces the earlier."""
        pairs = iter(node.children)
        for key_node in pairs:
            value_node = next(pairs)
            if _is_merge(key_node):
                self._merge(value_node, out)
                continue
            key = self.item(key_node)
            if isinstance(key.value, (list, dict)):
                raise YamlError("invalid map key", key_node.line)
            value = self.item(value_node)
            name = _key_text(key.value)
            if name is None:
                out.bad_key = out.bad_key or key_node.line
                continue
            if name in out.value:
                out.lost.append((name, out.value[name]))
                del out.value[name]
            value.key_line, value.key_span = key_node.line, (key_node.start, key_node.end)
            out.value[name] = value

    def _merge(self, node: _Node, out: Item) -> None:
        sources = list(reversed(node.children)) if node.kind == "sequence" else [node]
        for source in sources:
            target = source.target if source.kind == "alias" else source
            if target is None or target.kind != "mapping":
                raise YamlError("map merge requires map or sequence of maps as the value", node.line)
            merged = self.item(source)
            out.bad_key = out.bad_key or merged.bad_key
            for name, value in merged.value.items():
                if name in out.value:
                    out.lost.append((name, out.value[name]))
                    del out.value[name]
                out.value[name] = value


def _is_merge(node: _Node) -> bool:
    return node.kind == "scalar" and node.value == "<<" and (node.plain or node.tag == _TAG + "merge")


def _key_text(key: Any) -> str | None:
    """A map key as JSON text; None for keys that JSON cannot have: null, and integers beyond int64."""
    if key is None or (type(key) is int and key > golang.INT64_MAX):
        return None
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else f"{key:g}" if isinstance(key, float) else str(key)


def children(item: Item) -> list[Item]:
    """The values directly inside a map or a list."""
    if isinstance(item.value, dict):
        return list(item.value.values())
    return item.value if isinstance(item.value, list) else []


def _refuse_non_json(item: Item) -> None:
    """JSON has neither infinity nor NaN nor null keys: one anywhere in the text makes the loader fail."""
    if item.bad_key:
        raise YamlError("unsupported map key", item.bad_key)
    if isinstance(item.value, float) and (item.value != item.value or item.value in (float("inf"), float("-inf"))):
        raise YamlError(f"json: unsupported value: {item.text}", item.line)
    for child in children(item):
        _refuse_non_json(child)


def read(text: str) -> Document:
    """The first document of a text.

    Raises:
        YamlError: go-yaml or the conversion to JSON would refuse the text.
    """
    root, second_line = _compose(_events(text), len(text) - len(text.removeprefix(_BOM)))
    if root is None:
        return Document(None)
    item = _Decoder().item(root)
    _refuse_non_json(item)
    return Document(item, second_line)
