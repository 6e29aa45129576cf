"""From raw values to the frozen model, with every problem of shape found in one pass.

Where values are wrong, they are reported and then repaired, so that the rules of the plan can still look at the rest:
a stack file with ten errors shows all ten. A model made that way is marked incomplete and is never deployed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from gpufleet.findings.finding import Finding, errors, show
from gpufleet.findings.path import PathParts, join_path, split_path
from gpufleet.findings.registry import finding
from gpufleet.stackfile import meant
from gpufleet.stackfile.fields import Place, fields, place, tag
from gpufleet.stackfile.kinds import KINDS
from gpufleet.stackfile.model import Stack, stack_model
from gpufleet.stackfile.neighbours import ours
from gpufleet.stackfile.references import kubeconfig_in_clear
from gpufleet.stackfile.repair import at, guess_kind, repair
from gpufleet.stackfile.source import Source
from gpufleet.stackfile.syntax import without_blank

_ROUNDS = 8
#: Where one of these is found, nothing of the text was read.
_NOT_READ = ("GF001", "GF002", "GF009")
_SECTIONS_OF_MODEL = ("cluster", "pools", "hosts", "stack", "sharing", "teams", "acknowledge")


@dataclass(frozen=True)
class Loaded:
    """The outcome of reading: `stack` is None when not even a part of it can be understood."""

    source: Source
    stack: Stack | None
    found: tuple[Finding, ...] = ()
    #: positions in the file of the list items that are left, by section
    positions: dict[str, list[int]] = field(default_factory=dict)
    complete: bool = True

    def place(self, found: Finding) -> Finding:
        """Gives a finding about the model its place in the file."""
        path = join_path(_in_file(split_path(found.path), self.positions))
        return self.source.locate(replace(found, path=path))


_RANGES = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
_TEXT, _MAP, _WHOLE = "text", "a map", "a whole number"
#: What pydantic wants, in words.
_TYPES = {
    "string_type": _TEXT,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": _MAP,
    "model_type": _MAP,
    "model_attributes_type": _MAP,
}


def _explain(error: Any, top: type[BaseModel], raw: Mapping[str, Any]) -> Finding:
    """One pydantic error as a finding."""
    kind, ctx, value = error["type"], dict(error.get("ctx") or {}), error["input"]
    spot = place(top, error["loc"])
    where = join_path(spot.path)
    last = str(spot.path[-1]) if spot.path else ""
    if kind.startswith("GF"):
        shown = {} if isinstance(value, BaseModel) else {"value": value}
        found = finding(kind, where, **shown, **ctx)
        return _with_example(found, spot) if kind == "GF106" and "[key]" not in error["loc"] else found
    if kind == "extra_forbidden":
        parents = place(top, error["loc"][:-1]).models
        allowed = sorted(fields(parents[0])) if len(parents) == 1 else []
        found = replace(finding("GF101", where, value=last, allowed=allowed, key=last), value=last)
        return _unknown(found, spot, allowed, at(raw, spot.path[:-1]))
    if kind == "missing":
        because = f"`{last}` has no default." + (f" {spot.description}" if spot.description else "")
        return _with_example(finding("GF102", where, key=last, because=because), spot)
    if kind in ("literal_error", "enum"):
        names = [w.strip().strip("'") for w in str(ctx.get("expected", "")).replace(" or ", ",").split(",")]
        if not isinstance(value, str) and str(value) in names:
            return finding(
                "GF104", where, value=value, allowed=names, because="This is text.", hint=f'Quote it: "{value}".'
            )
        return finding("GF103", where, value=value, allowed=names, because="Other values mean nothing here.")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        key = str(ctx.get("discriminator", "'kind'")).strip("'")
        options = sorted(word for m in spot.models if (word := tag(m)))
        inside = join_path((*spot.path, key))
        why = f"`{key}` decides which other keys are allowed."
        if kind == "union_tag_not_found":
            missing = replace(finding("GF102", inside, key=key, because=why), allowed=tuple(options))
            remedy = meant.tag_of(value, key, options)
            return missing if remedy is None else replace(missing, remedy=remedy)
        return finding("GF103", inside, value=at(value, (key,)), allowed=options, because=why)
    if kind in _RANGES:
        word = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}[_RANGES[kind]]
        return _unfit(value, spot, "out of range", f"It is {word} {ctx[_RANGES[kind]]}.")
    if kind in ("too_short", "string_too_short"):
        return _unfit(value, spot, "empty", "Something has to stand here.")
    if kind in ("too_long", "string_too_long"):
        what = "characters" if isinstance(value, str) else "entries"
        return _unfit(value, spot, "too long", f"It has at most {ctx.get('max_length')} {what}.")
    want = _TYPES.get(kind, error["msg"])
    hint = _hint(want, spot, value, raw) if kind in _TYPES else "Correct the value."
    limits = f", {text}" if "number" in want and (text := meant.range_text(spot)) else ""
    if isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    because = f"This is {want}{limits}. {spot.description}".rstrip()
    return finding("GF104", where, value=value, because=because, hint=hint)


def _unknown(found: Finding, spot: Place, allowed: list[str], beside: Any) -> Finding:
    """An unknown key that is known elsewhere, or a key with its value."""
    pair = without_blank(str(spot.path[-1]))
    if pair is not None and pair[0] in allowed:
        remedy = f"A blank must follow the colon: `{pair[0]}: {pair[1]}`."
        return replace(found, closest=pair[0], remedy=remedy)
    known = ours(spot.path, allowed, beside if isinstance(beside, dict) else {})
    return found if known is None else replace(found, closest=known.key, remedy=known.remedy)


def _hint(want: str, spot: Place, value: Any, raw: Mapping[str, Any]) -> str:
    """How a value of the wrong type is written."""
    pools = raw.get("pools")
    names = [p["name"] for p in pools if isinstance(p, dict) and "name" in p] if isinstance(pools, list) else []
    known = {"pools": names} if spot.path[:1] == ("teams",) else {}
    match want:
        case "text":
            return meant.one_text(spot, value)
        case "true or false":
            return meant.switch(spot, value)
        case "a list":
            return meant.a_list(spot, value, known)
        case "a map":
            return meant.a_map(spot, value, known)
        case _:
            return meant.number(spot, value, want == _WHOLE)


def _unfit(value: Any, spot: Place, wrong: str, because: str) -> Finding:
    found = finding("GF105", join_path(spot.path), value=value, wrong=wrong, because=because)
    return _with_example(found, spot)


def _with_example(found: Finding, spot: Place) -> Finding:
    """A finding whose remedy ends with an example, unless it has one."""
    more = "" if "`" in found.remedy or '"' in found.remedy else meant.example(spot, "For example")
    return replace(found, remedy=f"{found.remedy} {more}".rstrip())


def _keys(error: Any) -> tuple[str, ...]:
    """The keys that a conflict is about."""
    return tuple(k.strip() for k in str((error.get("ctx") or {}).get("keys", "")).split(","))


def _follows(error: Any, found: Finding, path: PathParts, known: set[PathParts]) -> bool:
    """Whether an error of a later round is there only because of what was repaired before."""
    if error["type"] != "GF110":
        guessed = found.code == "GF101" and path[:-1] in known  # by a kind or strategy that is a guess
        return guessed or path in known or split_path(found.path) in known
    about = [(*path, *key.split(".")) for key in _keys(error)]
    return any(place[: len(part)] == part for part in about for place in known)


def _round(
    data: dict[str, Any],
    top: type[BaseModel],
    failure: ValidationError,
    positions: dict[str, list[int]],
    known: set[PathParts],
    raw: Mapping[str, Any],
) -> list[Finding]:
    """Explains the errors of one validation, and repairs `data` so that the next one sees more.

    A map is shown as it is in `raw`, the file: `data` may hold stand-ins for other keys of it.
    """
    errors = [
        (e, place(top, e["loc"]).path, _explain(e, top, raw))
        for e in failure.errors(include_url=False)
        if not (e["type"] == "too_short" and len(e["input"]) > 0)  # its items are reported one by one
    ]
    missing = {path for e, path, _ in errors if e["type"] == "missing"}
    instead = {path: (*path[:-1], d.closest) for _, path, d in errors if d.code == "GF101" and d.closest is not None}
    misspelt = {path: right for path, right in instead.items() if right in missing}
    missing_for_that = set(misspelt.values())
    found, before = [], set(known)
    for error, path, d in errors:
        if path in missing_for_that:
            continue  # the misspelt key is the one that is missing
        here = _in_file(path, positions)
        d = replace(d, path=join_path(_in_file(split_path(d.path), positions)))
        if d.value == show(error["input"]) and split_path(d.path) == here and isinstance(error["input"], dict):
            d = replace(d, value=show(at(raw, here)))
        emptied = error["type"] == "too_short" and bool(at(raw, here))  # by repairs; what was wrong in it is told
        if not emptied and not _follows(error, d, here, before):
            found.append(d)
        if path in misspelt:
            parent = at(data, path[:-1])
            if isinstance(parent, dict) and path[-1] in parent:  # else what holds it was repaired already
                parent[misspelt[path][-1]] = parent.pop(path[-1])
            continue
        known |= {here, split_path(d.path), *((*here, *key.split(".")) for key in _keys(error) if key)}
        if error["type"] == "union_tag_invalid" and d.closest is not None:
            repair(data, d.code, (*path, split_path(d.path)[-1]), word=d.closest)
        else:
            repair(data, error["type"], path, _keys(error), d.closest if error["type"] == "literal_error" else None)
    _drop_empty(data, positions)
    return found


def _in_file(path: PathParts, positions: dict[str, list[int]]) -> PathParts:
    """A path of the data as it is now, as a path of the file."""
    if len(path) > 1 and isinstance(path[1], int) and path[0] in positions:
        kept = positions[str(path[0])]
        if path[1] < len(kept):
            return (path[0], kept[path[1]], *path[2:])
    return path


def _drop_empty(data: Any, positions: dict[str, list[int]]) -> None:
    for section in positions:
        value = data.get(section)
        if isinstance(value, list):
            kept = [i for i, item in enumerate(value) if item is not None]
            positions[section] = [positions[section][i] for i in kept]
            data[section] = [value[i] for i in kept]


def _kind(data: dict[str, Any]) -> tuple[str, list[Finding]]:
    """The kind of cluster, which decides what a pool is.

    Where it is not stated, the one that was probably meant, or that the first pool looks like.
    """
    cluster = data.get("cluster")
    kind = cluster.get("kind") if isinstance(cluster, dict) else None
    if isinstance(kind, str) and kind in KINDS:
        return kind, []
    guess = guess_kind(data)
    if not isinstance(cluster, dict) or (kind is not None and not isinstance(kind, str)):
        return guess, []  # the model says it
    why = "It decides whether the stack makes a cluster (aks) or takes one on that there is (existing)."
    if kind is None:
        missing = replace(finding("GF102", "cluster.kind", key="kind", because=why), allowed=tuple(sorted(KINDS)))
        return guess, [replace(missing, remedy=meant.tag_of(cluster, "kind", tuple(KINDS)) or missing.remedy)]
    unknown = finding("GF103", "cluster.kind", value=kind, allowed=sorted(KINDS), because=why)
    known = ours(("kind", kind), KINDS, {})
    if known is not None:
        return guess, [replace(unknown, closest=known.key, remedy=known.remedy)]
    return (unknown.closest if unknown.closest in KINDS else guess), [unknown]


def _by_guess(found: Finding) -> bool:
    """Whether a finding says only that a cluster of another kind would have other keys."""
    path = split_path(found.path)
    return found.code in ("GF101", "GF102") and path[:1] == ("cluster",) and path != ("cluster", "kind")


def validate(source: Source, read: list[Finding]) -> Loaded:
    """Checks the shape of all sections.

    Returns:
        The model of what is right, and one finding for each thing that is wrong. Findings of `read` come first.
    """
    found = list(read)
    data = {k: copy.deepcopy(source.data[k]) for k in _SECTIONS_OF_MODEL if k in source.data}
    if not data and not found:
        found.append(finding("GF002", ""))
    kind, about_kind = _kind(data)
    found += about_kind
    if about_kind:
        data["cluster"]["kind"] = kind
    in_clear = kubeconfig_in_clear(data)
    if in_clear:
        data["cluster"]["kubeconfig"] = {"path": "-"}  # whatever stands in it is one error, which `references` reports
    top = stack_model(kind)
    positions = {s: list(range(len(v))) for s in ("pools", "teams") if isinstance(v := data.get(s), list)}
    stack: Stack | None = None
    known = {split_path(d.path) for d in found}
    if not any(d.code in _NOT_READ for d in found):
        for _ in range(_ROUNDS):
            try:
                stack = top.model_validate(data)
                break
            except ValidationError as failure:
                found += _round(data, top, failure, positions, known, source.data)
    if about_kind and kind != about_kind[0].closest:
        found = [d for d in found if not _by_guess(d)]
    complete = not errors(found) and not in_clear
    return Loaded(source, stack, tuple(source.locate(d) for d in found), positions, complete)
