"""Every rule: the smallest stack that triggers it, all fields of what is said, and the nearest stack that does not."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.findings.finding import Severity
from gpufleet.findings.path import PathParts, split_path
from gpufleet.findings.registry import find

from tests.unit.config.rule_cases import CASES, Case
from tests.unit.config.samples import compile_base, sections, stack_text, the_one, told


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_wrong_stack_says_this_and_nothing_else(case: Case) -> None:
    compiled = compile_base(case.base, case.wrong)
    assert sorted(told(compiled)) == sorted([(case.code, case.path), *case.also])
    found = the_one(compiled, case.code)
    row = find(case.code)
    assert found.severity is row.severity
    if case.value is not None:
        assert found.value == case.value
    if case.allowed is not None:
        assert found.allowed == case.allowed
    if case.closest is not None:
        assert found.closest == case.closest
    said = f"{found.message} {found.reason} {found.remedy}"
    assert case.says in said
    assert found.message and found.reason and found.remedy
    assert "{value" not in said and "None" not in found.message
    assert (compiled.plan is None) == any(find(c).severity is Severity.ERROR for c, _ in told(compiled))


def _present(data: Any, path: PathParts) -> PathParts:
    """The longest beginning of a path that exists in the file."""
    for i, part in enumerate(path):
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return path[:i]
    return path


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_line_is_that_of_the_value(case: Case) -> None:
    data = sections(case.base, case.wrong)
    text = stack_text(data)
    found = the_one(compile_base(case.base, case.wrong), case.code)
    assert found.file == "stacks/Pulumi.test.yaml"
    assert found.line is not None
    line = text.splitlines()[found.line - 1]
    place = _present(data, split_path(found.path))
    if not place:
        assert line == "config:"
    elif isinstance(place[-1], str):
        assert f"{place[-1]}:" in line
    else:
        assert line.lstrip().startswith("- ")


def test_only_sizes_that_can_be_used_are_offered() -> None:
    allowed = the_one(compile_base("aks-plugin", {"pools[0].vmSize": "x"}), "GF230").allowed
    assert "Standard_NC4as_T4_v3" in allowed
    assert "Standard_NC8ads_A10_v4" in allowed, "unverified, and warned of"
    assert not {"Standard_ND96isr_MI300X_v5", "Standard_NC24rs_v3", "Standard_NC6s_v3"} & set(allowed)


def test_only_warnings_are_offered_for_acknowledgement() -> None:
    allowed = the_one(compile_base("aks-plugin", {"acknowledge": {"GF999": "x"}}), "GF109").allowed
    assert {"GF205", "GF302", "GF420"} <= set(allowed)
    assert {find(code).severity for code in allowed} == {Severity.WARNING}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_nearest_right_stack_says_nothing_of_it(case: Case) -> None:
    compiled = compile_base(case.base, case.right)
    assert sorted(told(compiled)) == sorted(case.right_also)
    assert compiled.plan is not None
