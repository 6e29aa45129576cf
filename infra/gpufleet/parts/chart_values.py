"""Values of a Helm chart: by dotted path, as the chart's documentation names them, and against the chart's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from gpufleet.catalog.charts import ChartTable, ChartValue, Parts, Refusal, refusals
from gpufleet.findings.finding import closest_match
from gpufleet.findings.path import PathParts


def get_value(values: Any, path: str) -> Any:
    """The value at a path; None where there is none."""
    for part in path.split("."):
        if not isinstance(values, dict) or part not in values:
            return None
        values = values[part]
    return values


def set_value(values: dict[str, Any], path: str, value: Any) -> None:
    """Sets the value at a path, with the maps that lead to it."""
    *parents, last = path.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
    values[last] = value


def effective(values: Any, path: str, table: ChartTable | None) -> Any:
    """The value that the chart uses at a path: the stated one, or its default."""
    stated = get_value(values, path)
    return stated if stated is not None or table is None else table.default(path)


def refused(values: Any, table: ChartTable) -> Iterator[Refusal]:
    """What a chart, or its program, refuses about values as a whole."""
    for row in refusals():
        if row.chart == table.chart and all(_is(values, path, word, table) for path, word in row.when.items()):
            yield row


def _is(values: Any, path: str, word: bool | str, table: ChartTable) -> bool:
    value = effective(values, path, table) if table.has(path) else None
    if word == "set":
        return value not in (None, "", [], {}, False)
    return (value or False) is word if isinstance(word, bool) else value == word


class Wrong(StrEnum):
    """What is wrong with a value."""

    UNKNOWN = "the chart has no such value"
    SHAPE = "a map, a list or a single value where another of them belongs"
    KIND = "a single value of another type: a text where a number or true and false belong"
    TEXT = "no text where the API server takes nothing else"
    WORD = "a word that is not allowed"


class Fault(NamedTuple):
    """One value that does not fit the chart. `section` says that a part of the chart with values of its own is meant.

    `expected` is what belongs there, in words, `example` as YAML; `allowed` are keys or words, `closest` one of them or
    the whole path of the value that is meant.
    """

    wrong: Wrong
    path: PathParts
    value: Any
    expected: str = ""
    example: str = ""
    allowed: tuple[str, ...] = ()
    closest: str | None = None
    section: bool = False


def compare(values: Any, table: ChartTable, at: PathParts = ()) -> Iterator[Fault]:
    """Everything in values that does not fit the chart. Null and what the table leaves open are passed over."""
    yield from _section(values, table.parts, table, at)


def _section(values: Any, parts: Parts, table: ChartTable, at: PathParts) -> Iterator[Fault]:
    if values is None:
        return
    if not isinstance(values, dict):
        yield Fault(Wrong.SHAPE, at, values, "a map", _example(at, parts), section=True)
        return
    for key, value in values.items():
        name, here = str(key), (*at, str(key))
        part = parts.get(name)
        if not at and name in table.subcharts:
            yield from _subchart(value, part, table.subcharts[name], here)
        elif part is None:
            near = closest_match(name, parts) or _elsewhere(name, table)
            yield Fault(Wrong.UNKNOWN, here, value, allowed=tuple(sorted(parts)), closest=near)
        elif isinstance(part, ChartValue):
            yield from _value(value, part, here)
        else:
            yield from _section(value, part, table, here)


def _subchart(
    value: Any, own: ChartValue | Parts | None, table: ChartTable | None, at: PathParts
) -> Iterator[Fault]:
    """Values of another chart below a key; `own` is what the outer chart itself reads there."""
    if table is None:
        if value is not None and not isinstance(value, dict):
            yield Fault(Wrong.SHAPE, at, value, "a map", f"{at[-1]}: {{}}", section=True)
        return
    mine = {} if own is None or isinstance(own, ChartValue) else dict(own)
    yield from _section(value, {**table.parts, **mine}, table, at)


def _elsewhere(name: str, table: ChartTable) -> str | None:
    """The one value of the whole chart that has this name at another place."""
    ends = Counter(path.rpartition(".")[2] for path in table.paths)
    return next((p for p in table.paths if p.rpartition(".")[2] == name), None) if ends[name] == 1 else None


#: Type of the table -> what belongs there, in words, and an example.
_WORDS: Mapping[str, tuple[str, str]] = {
    "bool": ("true or false", "true"),
    "int": ("a whole number", "1"),
    "number": ("a number", "1"),
    "text": ("a text", "x"),
    "texts": ("a list of texts", "[x]"),
    "env": ("a list of names and values", '[{name: NAME, value: "x"}]'),
    "maps": ("a list of maps", "[{}]"),
    "list": ("a list", "[]"),
    "map": ("a map", "{}"),
}


def _example(at: PathParts, parts: Parts) -> str:
    for key, part in parts.items():
        if isinstance(part, ChartValue) and part.type in _WORDS:
            inner = f"{{{key}: {_shown(part)}}}"
            return f"{at[-1]}: {inner}" if at else inner
    return f"{at[-1]}: {{}}" if at else "{}"


def _shown(part: ChartValue) -> str:
    if isinstance(part.default, bool):
        return str(part.default).lower()
    if part.default not in (None, "") and not isinstance(part.default, list | dict):
        return str(part.default)
    return part.allowed[0] if part.allowed else _WORDS[part.type][1]


def _value(value: Any, part: ChartValue, at: PathParts) -> Iterator[Fault]:
    """A single value against its type."""
    if value is None or part.type not in _WORDS:
        return
    expected, example = _WORDS[part.type]
    wrong = _wrong(value, part.type)
    if wrong is not None:
        shown = _shown(part) if part.type in ("bool", "int", "number", "text") else example
        yield Fault(wrong, at, value, expected, f"{at[-1]}: {shown}")
    elif part.allowed and value != "" and value not in part.allowed:
        words = ", ".join(part.allowed)
        near = closest_match(value, part.allowed)
        example = f"{at[-1]}: {near or part.allowed[0]}"
        yield Fault(Wrong.WORD, at, value, f"one of {words}", example, part.allowed, near)
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            yield from _entry(entry, part.type, (*at, i))


def _wrong(value: Any, kind: str) -> Wrong | None:
    """Whether a value is of another shape or type."""
    if kind in ("texts", "env", "maps", "list"):
        return None if isinstance(value, list) else Wrong.SHAPE
    if kind == "map":
        return None if isinstance(value, dict) else Wrong.SHAPE
    if isinstance(value, list | dict):
        return Wrong.SHAPE
    right = {
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
    }
    return None if right.get(kind, True) else Wrong.KIND


def _entry(entry: Any, kind: str, at: PathParts) -> Iterator[Fault]:
    """One entry of a list."""
    expected, example = {
        "texts": ("a text", "x"),
        "env": ("a map of name and value", '{name: NAME, value: "x"}'),
        "maps": ("a map", "{}"),
    }.get(kind, ("", ""))
    if kind == "texts" and not isinstance(entry, str):
        wrong = Wrong.SHAPE if isinstance(entry, list | dict) or entry is None else Wrong.KIND
        yield Fault(wrong, at, entry, expected, f"- {_text_of(entry)}")
    elif kind in ("env", "maps") and not isinstance(entry, dict):
        yield Fault(Wrong.SHAPE, at, entry, expected, f"- {example}")
    elif kind == "env":
        yield from _variable(entry, at)


def _text_of(entry: Any) -> str:
    """What is likely meant where a text belongs: the name in `{name: secret}`."""
    named = entry.get("name") if isinstance(entry, dict) else entry
    return named if isinstance(named, str) and named else "x"


def _variable(entry: dict[Any, Any], at: PathParts) -> Iterator[Fault]:
    """An environment variable as a ClusterPolicy takes it: two texts, no `valueFrom`."""
    known = ("name", "value")
    for key, value in entry.items():
        if key not in known:
            yield Fault(Wrong.UNKNOWN, (*at, str(key)), value, allowed=known, closest=closest_match(key, known))
        elif isinstance(value, list | dict):
            yield Fault(Wrong.SHAPE, (*at, key), value, "a text", f'{key}: "x"')
        elif value is not None and not isinstance(value, str):
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            yield Fault(Wrong.TEXT, (*at, key), value, "a text", f'{key}: "{shown}"')
    if "name" not in entry:
        yield Fault(Wrong.SHAPE, at, entry, "a map of name and value", '- {name: NAME, value: "x"}')
