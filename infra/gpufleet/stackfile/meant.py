"""What was meant by a value of the wrong shape, and how it is written: numbers with a unit, words for maps."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from gpufleet.findings.credentials import redacted
from gpufleet.findings.finding import closest_match
from gpufleet.findings.path import PathParts
from gpufleet.stackfile.fields import Place, container, fields, limits, models, tag, tag_key
from gpufleet.stackfile.syntax import without_blank

#: Stands for what only the user can say.
OPEN = ...
#: More entries than these are left out of an example.
_MOST = 4
_PLAIN = re.compile(r"[A-Za-z/~][\w./~-]*(:(?=\w)[\w./-]+)*|\d+(\.\d+){2,}")
_NO_TEXT = re.compile(r"(?i)(true|false|null|yes|no|on|off|y|n|~)")
_DIGITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
#: By the end of a field's name, what a unit stands for in the field's own.
_UNITS: dict[str, dict[str, float]] = {
    "Gib": {"gi": 1, "gib": 1, "mi": 1 / 1024, "mib": 1 / 1024, "ti": 1024, "tib": 1024,
            "g": 1e9 / 2**30, "gb": 1e9 / 2**30, "m": 1e6 / 2**30, "mb": 1e6 / 2**30},
    "Gb": {"g": 1, "gb": 1, "gi": 1, "gib": 1, "t": 1024, "tb": 1024, "ti": 1024, "tib": 1024},
    "Seconds": {"s": 1, "sec": 1, "seconds": 1, "m": 60, "min": 60, "minutes": 60, "h": 3600, "hours": 3600},
    "Price": {"$": 1, "usd": 1},
}  # fmt: skip
_UNIT_NAMES = {"Gib": "GiB", "Gb": "GB", "Seconds": "seconds", "Price": "US dollars"}
_FACTORS = {"k", "m", "g", "t", "ki", "mi", "gi", "ti"}


def flow(value: Any) -> str:
    """A value as one line of YAML."""
    if value is OPEN:
        return "..."
    if isinstance(value, dict):
        pairs = ", ".join("..." if k is OPEN else f"{flow(k)}: {flow(v)}" for k, v in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and not _NO_TEXT.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def written(place: Place, value: Any) -> str:
    """A value with its key, as it stands in the file."""
    last = place.path[-1] if place.path else ""
    if isinstance(last, int):
        return f"`{flow(redacted(value))}`"
    key = f"gpufleet:{last}" if len(place.path) == 1 else flow(last)
    return f"`{key}: {flow(redacted(value))}`"


def tag_of(value: Any, key: str, words: Sequence[str]) -> str | None:
    """How the key is written that tells one form of a map from the others, where the map shows which is meant."""
    given = [str(k) for k in value] if isinstance(value, dict) else []
    pairs = [pair for k in given if (pair := without_blank(k)) is not None and pair[0] == key]
    if pairs:
        return f"A blank must follow the colon: `{key}: {pairs[0][1]}`."
    named = [word for word in words if word in given]
    return f"Write `{key}: {named[0]}`, and the other keys beside it." if len(named) == 1 else None


def range_text(place: Place) -> str:
    """`at least 1 and at most 1000`; empty without limits."""
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    found = limits(place.field if place.below == 0 else None, place.annotation)
    return " and ".join(f"{words[name]} {_limit(found[name])}" for name in words if name in found)


def _limit(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def example(place: Place, before: str = "Write e.g.") -> str:
    """`Write e.g. <key>: <example>.`; empty where the field has no example."""
    value = place.example
    return "" if value is None else f"{before} {written(place, value)}."


def number(place: Place, value: Any, whole: bool) -> str:
    """How a number is written that was given as something else."""
    said = value.strip() if isinstance(value, str) else ""
    key = str(place.path[-1]) if place.path else ""
    kind = next((end for end in _UNITS if key.endswith(end)), "")
    comma = re.fullmatch(r"([-+]?\d+),(\d+)", said)
    parts = re.fullmatch(r"(\$?)\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+))\s*([A-Za-z]*|\$)", said)
    meant: float | None = None
    how = ""
    if said.lower() in _DIGITS:
        meant, how = _DIGITS.index(said.lower()), "Write it in digits"
    elif comma and not (whole or len(comma[2]) == 3):
        meant, how = float(f"{comma[1]}.{comma[2]}"), "Write it with a decimal point"
    elif parts and not parts[1] and not parts[3]:
        meant, how = float(parts[2]), "Write it without quotes"
    elif parts:
        unit = (parts[1] or parts[3]).lower()
        factor = _UNITS[kind].get(unit) if kind else None if unit in _FACTORS else 1
        meant = None if factor is None else float(parts[2]) * factor
        of = f" of {_UNIT_NAMES[kind]}" if kind else ""
        how = f"Write {'a whole' if whole else 'a'} number{of} without a unit"
    if meant is None or (whole and not float(meant).is_integer()):
        what = "a whole number" if whole else "a number"
        return example(place, f"Write {what}, for example") or f"Write {what}, without quotes."
    shown = int(meant) if float(meant).is_integer() else round(meant, 3)
    return f"{how}: {written(place, shown)}."


def switch(place: Place, value: Any) -> str:
    """How true and false are written."""
    word = value.strip().lower() if isinstance(value, str) else value
    if word in ("true", "yes", "on", "y", 1):
        return f"Write {written(place, True)}, without quotes."
    if word in ("false", "no", "off", "n", 0):
        return f"Write {written(place, False)}, without quotes."
    return "Write true or false without quotes."


def one_text(place: Place, value: Any) -> str:
    """How a text is written that was given as something else."""
    last = str(place.path[-1]) if place.path else ""
    if isinstance(value, bool) or (isinstance(value, int) and not isinstance(value, bool)):
        return f"Quote it: {_quoted(place, json.dumps(value))}."
    if isinstance(value, float):
        if "ersion" in last:
            more = example(place, "For example")
            return f"Put the version in quotes, as it is meant; without them 1.30 reads as 1.3. {more}".strip()
        return f"Quote it: {_quoted(place, f'{value}')}."
    if value is None:
        return 'Write a text, `""` for an empty one, or remove the key.'
    if isinstance(value, dict) and isinstance(value.get("effect"), str):
        taint = f"{value.get('key')}{'=' + str(value['value']) if value.get('value') else ''}:{value['effect']}"
        return f"Write one text, `key=value:Effect`: `{flow(redacted(taint))}`."
    if isinstance(value, dict) and list(value) == ["name"] and isinstance(value["name"], str):
        return f"Write the name alone: `{flow(redacted(value['name']))}`."
    return example(place, "Write one text, for example") or "Write one text."


def _quoted(place: Place, text: str) -> str:
    last = place.path[-1] if place.path else ""
    return f'`"{text}"`' if isinstance(last, int) else f'`{flow(last)}: "{text}"`'


def a_list(place: Place, value: Any, known: Mapping[str, Any]) -> str:
    """How a list is written that was given as one item, or as a map of names."""
    _, item = container(place.annotation)
    options = models(item)
    meant: Any = None
    if options and isinstance(value, str):
        meant = [_minimal(options[0], value, known)]
    elif isinstance(value, dict) and any(str(key).startswith("-") for key in value):
        key = next(str(key) for key in value if str(key).startswith("-"))
        return f"A blank must follow the dash: `- {key[1:]}: ...`."
    elif options and isinstance(value, dict) and value:
        keys = fields(options[0])
        if "name" in keys and all(isinstance(v, dict) and k not in keys for k, v in value.items()):
            rest = {k: _minimal(options[0], k, known) or {} for k in value}
            meant = [{"name": k, **v, **{r: x for r, x in rest[k].items() if r not in v}} for k, v in value.items()]
            meant = meant[:_MOST]
        elif value.keys() & keys.keys():
            meant = [value]
    elif not options and isinstance(value, str) and value.strip():
        meant = [part for part in re.split(r"[,\s]+", value.strip()) if part]
    elif not options and isinstance(value, int) and not isinstance(value, bool):
        meant = [str(value)]
    if meant is None:
        return example(place, "Write a list, for example") or "Write a list: `[a, b]`."
    return f"Write a list: {written(place, meant)}."


def a_map(place: Place, value: Any, known: Mapping[str, Any]) -> str:
    """How a map is written that was given as a word, a switch or a list."""
    options = place.models
    pair = without_blank(value) if isinstance(value, str) else None
    if pair is not None and any(pair[0] in fields(model) for model in options):
        return f"A blank must follow the colon: `{pair[0]}: {pair[1]}`."
    meant = _of_model(options, value, known) if options else _of_dict(place, value)
    if meant is None:
        return example(place, "Write a map, for example") or "Write it as a YAML map: `{key: value}`."
    return f"Write {written(place, meant)}."


def _of_model(options: Sequence[type[BaseModel]], value: Any, known: Mapping[str, Any]) -> Any:
    if not isinstance(value, str) or not value.strip():
        return None
    if len(options) == 1:
        return _minimal(options[0], value.strip(), known)
    words = {str(tag(m)): m for m in options}
    word = closest_match(value, words)
    return None if word is None else _minimal(words[word], None, known)


def _minimal(model: type[BaseModel], word: str | None, known: Mapping[str, Any]) -> dict[str, Any] | None:
    """The map with the word that was given, and with all keys that have no default; None where no key takes a word."""
    bare: tuple[str, ...] = getattr(model, "bare", ())
    if word is not None and not bare and word != tag(model):
        return None
    first = tag_key(model)
    keys = fields(model)
    order = sorted(keys, key=lambda key: (key != first, key not in bare, list(keys).index(key)))
    made: dict[str, Any] = {}
    for key in order:
        if key in bare and word is not None and word != tag(model):
            made[key] = word
        elif keys[key].is_required() or key in getattr(model, "shown", ()):
            made[key] = known.get(key) or next(iter(keys[key].examples or ()), OPEN)
    return made


def _of_dict(place: Place, value: Any) -> Any:
    _, inner = container(place.annotation)
    given = place.example
    if inner is Any or not isinstance(given, dict) or not given:
        return None
    first = next(iter(given.values()))
    if isinstance(first, int) and isinstance(value, int) and not isinstance(value, bool):
        return {next(iter(given)): value}
    rows = [value] if isinstance(value, str) and value.strip() else value
    if not isinstance(rows, list) or not rows or not all(isinstance(r, str | dict) and r for r in rows):
        return None
    made: dict[Any, Any] = {}
    for row in rows[:_MOST]:
        if isinstance(row, str):
            pairs = [part.partition("=") for part in row.split(",")] if isinstance(first, str) else [(row, "", "")]
            for key, sign, text in pairs:
                made[key.strip()] = text.strip() if sign else _in_place_of(first, place.path, not made)
        elif isinstance(row.get("name"), str):
            made[row["name"]] = {k: v for k, v in row.items() if k != "name"}
        elif len(row) == 1:
            made |= row
        else:
            return None
    return {**made, OPEN: OPEN} if len(rows) > _MOST else made


def _in_place_of(example: Any, path: PathParts, first: bool) -> Any:
    """What stands behind a name that was given alone."""
    if isinstance(example, str):
        return "the reason" if path[:1] == ("acknowledge",) else OPEN
    if isinstance(example, dict) and not first:
        return dict.fromkeys(example, OPEN)
    return example
