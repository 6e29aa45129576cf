"""What the values of a stand-in's chart must keep: every level closed, defaults within the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml


class Chart:
    """A chart of twin/chart: its schema and its default values."""

    def __init__(self, name: str) -> None:
        self.folder = Path(__file__).parents[3] / "twin" / "chart" / name
        self.schema: dict[str, Any] = json.loads((self.folder / "values.schema.json").read_text())
        self.values: dict[str, Any] = yaml.safe_load((self.folder / "values.yaml").read_text())

    def resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        reference = schema.get("$ref")
        return self.schema["definitions"][reference.rsplit("/", 1)[1]] if reference else schema

    def objects(self, schema: dict[str, Any] | None = None, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
        """Every level that is an object, with its path."""
        schema = self.resolve(self.schema if schema is None else schema)
        if "object" in schema.get("type", ()):
            yield path, schema
            for key, child in schema.get("properties", {}).items():
                yield from self.objects(child, f"{path}.{key}")
        if "items" in schema:
            yield from self.objects(schema["items"], path + "[]")

    def names(self) -> set[str]:
        """Paths of all values that the schema names."""
        return {f"{path}.{key}" for path, schema in self.objects() for key in schema.get("properties", {})}

    def open_levels(self) -> set[str]:
        """Paths of levels that take any key."""
        return {path for path, schema in self.objects() if schema.get("additionalProperties") is not False
                and not isinstance(schema.get("additionalProperties"), dict)}

    def open_names(self) -> set[str]:
        return {re.split(r"\.", path)[-1] for path in self.open_levels()}

    def missing(self, schema: dict[str, Any] | None = None, value: Any = None, path: str = "") -> list[str]:
        """Paths of default values that the schema does not know."""
        schema, value = self.resolve(self.schema if schema is None else schema), self.values if value is None else value
        if not isinstance(value, dict) or "properties" not in schema:
            return []
        out = [f"{path}.{key}" for key in value if key not in schema["properties"]]
        return out + [one for key, child in value.items() if key in schema["properties"] and child is not None
                      for one in self.missing(schema["properties"][key], child, f"{path}.{key}")]
