"""What is generated is current, and the schema says about stack files what the model says."""

from __future__ import annotations

import runpy
from pathlib import Path

import jsonschema
import pytest
import yaml
from gpufleet.stackfile.schema import stack_schema

ROOT = Path(__file__).resolve().parents[2]
STACKS = sorted((ROOT / "stacks").glob("Pulumi.*.yaml"))


def test_generated_files_are_current() -> None:
    outputs = runpy.run_path(str(ROOT / "docs" / "generate.py"))["outputs"]()
    stale = [str(p.relative_to(ROOT)) for p, text in outputs.items() if p.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make docs`"


@pytest.mark.parametrize("path", STACKS, ids=lambda p: p.name)
def test_shipped_stacks_satisfy_the_schema(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text()), stack_schema(), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kind: plugin", "kind: plugn"),
        ("replicas: 4", "replicas: 1"),
        ("gpusPerNode: 1", "gpuPerNode: 1"),
        ("gpufleet:teams", "gpufleet:taems"),
        ("kind: existing", "kind: aks"),
    ],
)
def test_the_schema_refuses_what_the_model_refuses(old: str, new: str) -> None:
    text = (ROOT / "stacks" / "Pulumi.local.yaml").read_text()
    assert old in text
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            yaml.safe_load(text.replace(old, new, 1)), stack_schema(), cls=jsonschema.Draft202012Validator
        )


def test_the_product_never_imports_the_twin() -> None:
    found = [
        str(p.relative_to(ROOT))
        for p in (ROOT / "infra").rglob("*.py")
        if any(line.startswith(("import twin", "from twin")) for line in p.read_text().splitlines())
    ]
    assert found == []
