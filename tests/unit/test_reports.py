"""Faults that users would meet with real software, and the tests that hold them: one row each in reports.yaml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ROWS = yaml.safe_load(Path(__file__).with_name("reports.yaml").read_text())


def test_every_fault_has_a_row() -> None:
    """RP-52 to RP-68 are about hosts that carry something already."""
    assert set(ROWS) == {f"RP-{n:02}" for n in range(1, 79) if not 52 <= n <= 68}


@pytest.mark.parametrize("row", ROWS)
def test_its_tests_are_there(row: str) -> None:
    """Each names a file and a function; the file says which fault it is about."""
    assert ROWS[row]["fault"] and ROWS[row]["tests"]
    for test in ROWS[row]["tests"]:
        file, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), test
        near = (ROOT / file).parent.glob("*.py")  # or among the cases that the test goes through
        assert any(_names(row, other) for other in (ROOT / file, *near)), test


def _names(row: str, file: Path) -> bool:
    text = file.read_text(encoding="utf-8")
    return row in text or row.lower().replace("-", "_") in text
