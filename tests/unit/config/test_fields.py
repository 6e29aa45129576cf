"""Every field of the stack file says what it is, with an example that is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from gpufleet.places import aks  # noqa: F401  makes the kinds of clusters known
from gpufleet.stackfile.base import Model
from gpufleet.stackfile.fields import fields, inner_models
from gpufleet.stackfile.kinds import KINDS
from gpufleet.stackfile.model import stack_model
from gpufleet.stackfile.schema import stack_schema
from pydantic import BaseModel, create_model
from pydantic.fields import FieldInfo

SCHEMA = json.loads((Path(__file__).parents[3] / "stacks" / "schema.json").read_text(encoding="utf-8"))


def _properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    tops = schema["properties"]["config"]["oneOf"]
    for name, body in [*((top["title"], top) for top in tops), *schema["$defs"].items()]:
        for key, value in body.get("properties", {}).items():
            yield f"{name}.{key}", value


def _models(top: type[BaseModel], seen: dict[str, type[BaseModel]]) -> None:
    if top.__name__ not in seen:
        seen[top.__name__] = top
        for info in top.model_fields.values():
            for inner in inner_models(info.annotation):
                _models(inner, seen)


def _fields() -> list[tuple[str, FieldInfo]]:
    seen: dict[str, type[BaseModel]] = {}
    for kind in KINDS:
        _models(stack_model(kind), seen)
    return [(f"{name}.{key}", info) for name, model in seen.items() for key, info in fields(model).items()]


FIELDS = _fields()


def test_every_property_of_the_schema_has_a_description_and_an_example() -> None:
    for schema in (SCHEMA, stack_schema()):
        properties = list(_properties(schema))
        assert len(properties) > 150
        assert [name for name, body in properties if not body.get("description", "").endswith(".")] == []
        assert [name for name, body in properties if not body.get("examples")] == []


def test_the_fields_are_those_of_the_schema() -> None:
    known = {name.replace("gpufleet:", "") for name, _ in _properties(SCHEMA)}
    assert {name for name, _ in FIELDS} == known


@pytest.mark.parametrize(("name", "info"), FIELDS, ids=[name for name, _ in FIELDS])
def test_each_example_is_right(name: str, info: FieldInfo) -> None:
    holder = create_model("Holder", __base__=Model, it=(info.annotation, copy(info)))
    for example in info.examples or ():
        holder.model_validate({"it": example})
