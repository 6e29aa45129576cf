"""The stand-in of the operator's chart: a strict schema, and selectors that keep the operands apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[3] / "twin" / "chart" / "gpu-operator"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
# objects whose content is Kubernetes' or another program's own
FREE = {"affinity", "startupProbe", "livenessProbe", "readinessProbe", "valueFrom", "relabelings[]", "extraObjects[]",
        "limits", "requests", "featureGates", "gpus", "computeDomains", "config"}


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return SCHEMA["definitions"][reference.rsplit("/", 1)[1]] if reference else schema


def objects(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    schema = resolve(schema)
    if schema.get("type") == "object":
        yield path, schema
        for key, child in schema.get("properties", {}).items():
            yield from objects(child, f"{path}.{key}")
    if "items" in schema:
        yield from objects(schema["items"], path + "[]")


def test_every_level_is_closed() -> None:
    open_levels = {path for path, schema in objects(SCHEMA) if schema.get("additionalProperties") is not False
                   and not isinstance(schema.get("additionalProperties"), dict)}
    assert {re.split(r"\.", path)[-1] for path in open_levels} <= FREE, open_levels
    closed_configs = {path for path, _ in objects(SCHEMA) if path.endswith(".config")} - open_levels
    assert closed_configs >= {".devicePlugin.config", ".migManager.config", ".dcgmExporter.config"}


def test_defaults_are_in_the_schema() -> None:
    def missing(schema: dict[str, Any], value: Any, path: str) -> list[str]:
        schema = resolve(schema)
        if not isinstance(value, dict) or "properties" not in schema:
            return []
        out = [f"{path}.{key}" for key in value if key not in schema["properties"]]
        return out + [one for key, child in value.items() if key in schema["properties"]
                      for one in missing(schema["properties"][key], child, f"{path}.{key}")]

    assert missing(SCHEMA, VALUES, "") == []


def test_defaults_that_the_reference_names() -> None:
    assert VALUES["driver"]["version"] == "595.91.07"
    assert VALUES["mig"]["strategy"] == "single"
    assert (VALUES["operator"]["upgradeCRD"], VALUES["operator"]["cleanupCRD"]) == (True, False)
    assert VALUES["operator"]["runtimeClass"] == "nvidia"
    assert (VALUES["toolkit"]["version"], VALUES["devicePlugin"]["version"]) == ("v1.20.0", "v0.20.0")
    assert VALUES["daemonsets"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_operands_have_names_of_their_own() -> None:
    """Name is selector is pod label in the shared head, so distinct names keep the selectors distinct."""
    text = "".join(path.read_text() for path in sorted((CHART / "templates").glob("*.yaml")))
    names = re.findall(r'"name" "((?:nvidia|gpu)-[a-z-]+)"', text)
    daemonsets = [name for name in names if not name.startswith("gpu-operator")]
    assert len(daemonsets) == len(set(daemonsets)) == 9
    head = (CHART / "templates" / "_helpers.tpl").read_text()
    assert "matchLabels: {app: {{ .name }}}" in head
