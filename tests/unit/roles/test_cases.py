"""The table of users' problems: every row is there, and every test that it names exists."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
CASES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "tests/hosts/cases.yaml").read_text())["cases"]
# Rows of the cluster's table that are, or contain, a check before any change.
CLUSTER = (14, 15, 16, 19, 20, 23, 28, 29, 30, 31, 33, 34, 35, 36, 37, 44)


def test_every_row_is_there() -> None:
    wanted = [f"BM-{number:02d}" for number in range(1, 50)] + [f"NV-{number}" for number in CLUSTER]
    assert sorted(CASES) == sorted(wanted)


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("case", CASES)
def test_a_row_has_tests_that_exist_or_says_why_not(case: str) -> None:
    row = CASES[case]
    assert set(row) <= {"rule", "tests", "open"} and row["rule"]
    assert row.get("tests") or len(str(row.get("open", ""))) > 20
    for test in row.get("tests", []):
        path, _, name = test.partition("::")
        assert name in functions(path), test
