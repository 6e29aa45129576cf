"""The table of users' problems names what exists: tests, codes, or a reason why not yet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.config.rule_cases import CASES as RULE_CASES

HERE = Path(__file__).parent
CASES: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "nvidia_cases.yaml").read_text(encoding="utf-8"))
CODES = {case.code for case in RULE_CASES}
#: Rows that rest on a running cluster or on tables that are still to come; kept here so that the list cannot grow.
LEFT = {"NV-14", "NV-16", "NV-44"}
IN_PART = {"NV-10", "NV-23", "NV-27", "NV-40"}


def entries(case: str) -> list[str]:
    """What handles a case."""
    by = CASES[case]["by"]
    return [by] if isinstance(by, str) else by


def test_all_fifty_are_here() -> None:
    assert list(CASES) == [f"NV-{i:02d}" for i in range(1, 51)]
    assert all(set(row) == {"what", "by"} and len(row["what"]) > 10 for row in CASES.values())


@pytest.mark.parametrize("case", CASES)
def test_what_is_named_exists(case: str) -> None:
    for entry in entries(case):
        if entry.startswith(("hosts: ", "later: ")):
            assert len(entry) > len("hosts: gpu_"), entry
        elif entry.startswith("config/"):
            assert entry.removeprefix("config/") in CODES, entry
        else:
            file, _, test = entry.partition("::")
            text = (HERE / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {test}\(", text, re.M), entry


def test_what_is_left_is_said_here_as_well() -> None:
    later = {case for case in CASES if any(entry.startswith("later: ") for entry in entries(case))}
    assert later == LEFT | IN_PART
    assert {case for case in CASES if isinstance(CASES[case]["by"], str)} == LEFT


def test_every_other_case_has_a_test() -> None:
    for case in set(CASES) - LEFT:
        assert any(not entry.startswith(("hosts: ", "later: ")) for entry in entries(case)), case
