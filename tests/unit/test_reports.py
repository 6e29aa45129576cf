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
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {name}\(", text, re.MULTILINE), test
        assert row in text or any(row in other.read_text(encoding="utf-8") for other in (ROOT / file).parent.glob("*.py"))
