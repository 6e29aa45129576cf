"""A JSON Schema is no plugin configuration; a node has a bounded number of GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpufleet.cli.main import main
from gpufleet.lint.node import parse_node

ROOT = Path(__file__).resolve().parents[3]


def test_our_own_schema_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(ROOT / "stacks" / "schema.json")]) == 0
    assert "error" not in capsys.readouterr().out


@pytest.mark.parametrize("gpus", ["0xT4", "17xT4", "999999999xT4"])
def test_no_node_has_so_many_gpus(gpus: str) -> None:
    with pytest.raises(ValueError, match="1 to 16 GPUs"):
        parse_node(gpus)
    assert parse_node("16xT4").gpus == 16
