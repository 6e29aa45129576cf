"""The fields of the stack file's model: which one stands at a place, what it takes, and an example of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gpufleet.findings.path import PathParts

_UNIONS = (Union, type(int | str))


@dataclass(frozen=True)
class Place:
    """A place in the model.

    Attributes:
        path: the place without pydantic's own words.
        annotation: what may stand there.
        field: the nearest field above it, or at it.
        below: how many steps the place is below that field; 1 for the item of a list.
    """

    path: PathParts
    annotation: Any
    field: FieldInfo | None
    below: int

    @property
    def models(self) -> list[type[BaseModel]]:
        """The models that may stand there."""
        return models(self.annotation)

    @property
    def example(self) -> Any:
        """An example of what may stand there, None where there is none."""
        value = self.field.examples[0] if self.field is not None and self.field.examples else None
        for _ in range(self.below):
            inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
            value = inner[0] if inner else None
        return value

    @property
    def description(self) -> str:
        """What stands there, in words."""
        return (self.field.description if self.field is not None and self.below == 0 else None) or ""


def models(annotation: Any) -> list[type[BaseModel]]:
    """The models that an annotation allows, looking through Annotated, unions, lists and maps."""
    if get_origin(annotation) is Annotated:
        return models(get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in _UNIONS:
        return [m for a in get_args(annotation) for m in models(a)]
    return []


def inner_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """All models that an annotation names, also inside lists and maps."""
    yield from models(annotation)
    if not models(annotation):
        for part in get_args(annotation):
            yield from inner_models(part)


def fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields by their keys in the file."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def tag_key(model: type[BaseModel]) -> str | None:
    """The key that tells this model from the others of a union."""
    return next((name for name in ("kind", "strategy") if tag(model, name) is not None), None)


def tag(model: type[BaseModel], *names: str) -> str | None:
    """The one word under `kind` or `strategy` that stands for a model."""
    for name in names or ("kind", "strategy"):
        info = model.model_fields.get(name)
        if info is not None and get_origin(info.annotation) is Literal:
            return str(get_args(info.annotation)[0])
    return None


def container(annotation: Any) -> tuple[type | None, Any]:
    """`dict` or `tuple`, and what its values are, looking through Annotated and unions; None for other things."""
    if get_origin(annotation) is Annotated:
        return container(get_args(annotation)[0])
    if get_origin(annotation) in _UNIONS:
        found = [container(a) for a in get_args(annotation)]
        return next((pair for pair in found if pair[0] is not None), (None, None))
    if get_origin(annotation) is dict:
        return dict, get_args(annotation)[1]
    if get_origin(annotation) is tuple:
        return tuple, get_args(annotation)[0]
    return None, None


def limits(field: FieldInfo | None, annotation: Any) -> dict[str, Any]:
    """`ge`, `gt`, `le` and `lt` of a number, whether they stand at the field or within its type."""
    found: dict[str, Any] = {}
    parts = [*(field.metadata if field is not None else ()), annotation]
    while parts:
        part = parts.pop()
        found |= {name: limit for name in ("ge", "gt", "le", "lt") if (limit := getattr(part, name, None)) is not None}
        parts += part.metadata if isinstance(part, FieldInfo) else get_args(part)
    return found


def place(top: type[BaseModel], loc: PathParts) -> Place:
    """Follows a location of pydantic, and takes the tags of unions out of it."""
    path: list[str | int] = []
    here: Any = top
    field: FieldInfo | None = None
    below = 0
    for part in loc:
        if part == "[key]":
            continue
        options = models(here)
        if len(options) > 1:
            chosen = [m for m in options if tag(m) == part]
            if chosen:
                here = chosen[0]
                continue
        path.append(part)
        if options:
            field, below = fields(options[0]).get(str(part)), 0
            here = None if field is None else field.annotation
            continue
        below += 1
        here = container(here)[1]
    return Place(tuple(path), here, field, below)
