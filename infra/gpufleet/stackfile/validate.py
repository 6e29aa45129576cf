"""From raw values to the frozen model, with every problem of shape found in one pass.

Where values are wrong, they are reported and then repaired, so that the rules of the plan can still look at the rest:
a stack file with ten errors shows all ten. A model made that way is marked incomplete and is never deployed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from gpufleet.findings.finding import Finding, show
from gpufleet.findings.path import PathParts, join_path, split_path
from gpufleet.findings.registry import finding
from gpufleet.stackfile.kinds import KINDS
from gpufleet.stackfile.model import Stack, stack_model
from gpufleet.stackfile.references import kubeconfig_in_clear
from gpufleet.stackfile.repair import at, guess_kind, repair
from gpufleet.stackfile.source import Source

_ROUNDS = 8
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


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models that an annotation allows, looking through Annotated and unions."""
    if get_origin(annotation) is Annotated:
        return _models(get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, type(int | str)):
        return [m for a in get_args(annotation) for m in _models(a)]
    return []


def _tag(model: type[BaseModel]) -> str | None:
    for name in ("kind", "strategy"):
        info = model.model_fields.get(name)
        if info is not None and get_args(info.annotation):
            return str(get_args(info.annotation)[0])
    return None


def _aliases(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {info.alias or name: info for name, info in model.model_fields.items()}


def _walk(model: type[BaseModel], loc: PathParts) -> tuple[PathParts, type[BaseModel] | None]:
    """Takes union tags out of a pydantic location; also the model at its end, where it is one."""
    path: list[str | int] = []
    here: Any = model
    for part in loc:
        if part == "[key]":
            continue
        options = _models(here)
        if len(options) > 1:
            chosen = [m for m in options if _tag(m) == part]
            if chosen:
                here = chosen[0]
                continue
        path.append(part)
        if options:
            info = _aliases(options[0]).get(str(part))
            here = info.annotation if info else None
            continue
        args = [a for a in get_args(here) if a is not type(None)]
        if get_origin(here) is Annotated:
            args = list(get_args(get_args(here)[0]))
        if get_origin(here) in (Union, type(int | str)):
            inner = [a for a in args if get_args(a)]
            args = list(get_args(inner[0])) if inner else []
        here = (args[-1] if args[-1] is not Ellipsis else args[0]) if args else None
    found = _models(here)
    return tuple(path), found[0] if len(found) == 1 else None


_TYPES = {
    "string_type": ("text", "Quote it."),
    "int_type": ("a whole number", "Write it without quotes and without a point."),
    "int_from_float": ("a whole number", "Write it without a point."),
    "float_type": ("a number", "Write it without quotes."),
    "bool_type": ("true or false", "Write true or false without quotes."),
    "tuple_type": ("a list", "Write it as a YAML list: [a, b]."),
    "dict_type": ("a map", "Write it as a YAML map: {{key: value}}."),
    "model_type": ("a map", "Write it as a YAML map: {{key: value}}."),
    "model_attributes_type": ("a map", "Write it as a YAML map: {{key: value}}."),
}
_RANGES = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}


def _explain(error: Any, top: type[BaseModel]) -> Finding:
    """One pydantic error as a finding."""
    kind, ctx = error["type"], dict(error.get("ctx") or {})
    path, _ = _walk(top, error["loc"])
    where, value = join_path(path), error["input"]
    last = str(path[-1]) if path else ""
    if kind.startswith("GF"):
        shown = {} if isinstance(value, BaseModel) else {"value": value}
        return finding(kind, where, **shown, **ctx)
    if kind == "extra_forbidden":
        _, parent = _walk(top, error["loc"][:-1])
        allowed = sorted(_aliases(parent)) if parent else []
        return replace(finding("GF101", where, value=last, allowed=allowed, key=last), value=last)
    if kind == "missing":
        return finding("GF102", where, key=last, because=f"`{last}` has no default.")
    if kind in ("literal_error", "enum"):
        names = [w.strip().strip("'") for w in str(ctx.get("expected", "")).replace(" or ", ",").split(",")]
        if not isinstance(value, str) and str(value) in names:
            return finding(
                "GF104", where, value=value, allowed=names, because="This is text.", hint=f'Quote it: "{value}".'
            )
        return finding("GF103", where, value=value, allowed=names, because="Other values mean nothing here.")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tag = str(ctx.get("discriminator", "'kind'")).strip("'")
        options = _union_tags(top, error["loc"])
        inside = join_path((*path, tag))
        if kind == "union_tag_not_found":
            missing = finding("GF102", inside, key=tag, because=f"`{tag}` decides which other keys are allowed.")
            return replace(missing, allowed=tuple(options))
        why = f"`{tag}` decides which other keys are allowed."
        return finding("GF103", inside, value=at(value, (tag,)), allowed=options, because=why)
    if kind in _RANGES:
        word = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}[_RANGES[kind]]
        return finding("GF105", where, value=value, because=f"It is {word} {ctx[_RANGES[kind]]}.")
    if kind in ("too_short", "string_too_short"):
        return finding("GF105", where, value=value, because="It may not be empty.")
    if kind in ("too_long", "string_too_long"):
        return finding("GF105", where, value=value, because=f"It has at most {ctx.get('max_length')} characters.")
    want, hint = _TYPES.get(kind, (error["msg"], "Correct the value."))
    if kind == "string_type" and (value is None or isinstance(value, dict | list)):
        hint = "Write one text."
        if value is None:
            hint = 'Write a text, `""` for an empty one, or remove the key.'
        elif len(path) > 1 and path[-2] == "taints":
            hint = "Write one text, `key=value:Effect`."
        elif len(path) > 1 and path[-2] == "pullSecrets":
            hint = "Write the name alone."
    elif kind == "string_type" and isinstance(value, float) and "ersion" in last:
        hint = "Put the version in quotes, as it is meant; without them 1.30 reads as 1.3."
    if isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return finding(
        "GF104", where, value=value, because=f"This is {want}.", hint=hint.replace("{{", "{").replace("}}", "}")
    )


def _union_tags(top: type[BaseModel], loc: PathParts) -> list[str]:
    here: Any = top
    for part in loc:
        options = _models(here)
        if options:
            info = _aliases(options[0]).get(str(part))
            if info is None:
                return []
            here = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        else:
            args = get_args(here)
            here = args[-1] if args else None
    return sorted(t for m in _models(here) if (t := _tag(m)))


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
        (e, _walk(top, e["loc"])[0], _explain(e, top))
        for e in failure.errors(include_url=False)
        if not (e["type"] == "too_short" and len(e["input"]) > 0)  # its items are reported one by one
    ]
    missing = {path for e, path, _ in errors if e["type"] == "missing"}
    meant = {path: (*path[:-1], d.closest) for _, path, d in errors if d.code == "GF101" and d.closest is not None}
    misspelt = {path: right for path, right in meant.items() if right in missing}
    missing_for_that = set(misspelt.values())
    found, before = [], set(known)
    for error, path, d in errors:
        if path in missing_for_that:
            continue  # the misspelt key is the one that is missing
        here = _in_file(path, positions)
        d = replace(d, path=join_path(_in_file(split_path(d.path), positions)))
        if d.value == show(error["input"]) and split_path(d.path) == here and isinstance(error["input"], dict):
            d = replace(d, value=show(at(raw, here)))
        if not _follows(error, d, here, before):
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
    """The kind of cluster, which decides what a pool is; a guess from the pools where it is not stated."""
    cluster = data.get("cluster")
    kind = cluster.get("kind") if isinstance(cluster, dict) else None
    if isinstance(kind, str) and kind in KINDS:
        return kind, []
    guess = guess_kind(data)
    if not isinstance(cluster, dict) or (kind is not None and not isinstance(kind, str)):
        return guess, []  # the model says it
    why = "It decides whether the stack makes a cluster or takes one on."
    if kind is None:
        return guess, [
            replace(finding("GF102", "cluster.kind", key="kind", because=why), allowed=tuple(sorted(KINDS)))
        ]
    return guess, [finding("GF103", "cluster.kind", value=kind, allowed=sorted(KINDS), because=why)]


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
    if not any(d.code in ("GF001", "GF002") for d in found):
        for _ in range(_ROUNDS):
            try:
                stack = top.model_validate(data)
                break
            except ValidationError as failure:
                found += _round(data, top, failure, positions, known, source.data)
    return Loaded(source, stack, tuple(source.locate(d) for d in found), positions, complete=not found and not in_clear)
