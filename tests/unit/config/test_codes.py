"""Findings: each rule is reached by a test, each text is filled; how values and findings are shown."""

from __future__ import annotations

import re
import string

import pytest
from gpufleet.findings.acknowledge import acknowledge
from gpufleet.findings.finding import Severity, closest_match, errors, show
from gpufleet.findings.registry import find, finding, rules
from gpufleet.findings.render import summary, text

from tests.unit.config.rule_cases import CASES
from tests.unit.config.samples import compile_base, compile_text, the_one
from tests.unit.config.text_cases import TEXT_CASES
from tests.unit.rules.test_examples import IN_USE

OF_STACKS = {code for code in rules() if code[2] in "01234"} - IN_USE


def test_every_rule_is_triggered() -> None:
    """A new rule comes with a case in `rule_cases` or `text_cases`; notes about a text stand in `test_messages`."""
    assert {c.code for c in CASES} | {c.code for c in TEXT_CASES} | {"GF011"} == OF_STACKS


def test_every_rule_has_a_neighbour_that_is_right() -> None:
    """Every case is compared with a stack that differs in what is wrong; where nothing is given, with the base."""
    assert all(c.wrong != c.right for c in CASES)


def test_call_sites_fill_every_placeholder() -> None:
    """Each code's texts, filled by its own call site: every placeholder stands for something."""
    for code, found in {
        **{c.code: the_one(compile_base(c.base, c.wrong), c.code) for c in CASES},
        **{c.code: the_one(compile_text(c.wrong), c.code) for c in TEXT_CASES},
    }.items():
        said = " ".join((found.message, found.reason, found.remedy))
        rule = find(code)
        names = {n for t in (rule.title, rule.because, rule.remedy) for _, n, _, _ in string.Formatter().parse(t) if n}
        assert ("value" in names) <= (found.value is not None), code
        assert not re.search(r"\{[a-z_]+\}", said), (code, said)


def test_a_placeholder_without_detail_is_a_fault_of_the_caller() -> None:
    with pytest.raises(KeyError):
        finding("GF201", "pools[0].driver", value="x")


def test_values_with_braces_are_shown_as_they_are() -> None:
    found = finding("GF230", "a", value="{value} {0} %s")
    assert "{value} {0} %s" in found.message


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a b", "a b"),
        ("a\n  b", "a b"),
        ("", '""'),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (["é"], '["é"]'),
        ({"a": 1}, '{"a": 1}'),
        ("x" * 121, "x" * 119 + "…"),
        ("x" * 120, "x" * 120),
    ],
)
def test_show(value: object, shown: str) -> None:
    assert show(value) == shown


@pytest.mark.parametrize(
    ("value", "allowed", "closest"),
    [
        ("replica", ["replicas", "strategy"], "replicas"),
        ("time_slicing", ["timeSlicing", "none"], "timeSlicing"),
        ("VMSIZE", ["vmSize", "name"], "vmSize"),
        ("xyz", ["replicas"], None),
        (7, ["7a"], "7a"),
        ("", ["a"], None),
        ("A100", ["A10", "A100-PCIE-40GB"], "A100-PCIE-40GB"),
        ("H100", ["A100-PCIE-40GB", "GH200-96GB", "H100-PCIe", "H100-SXM5-80GB"], "H100-PCIe"),
        ("A10", ["A100-PCIE-40GB", "A10"], "A10"),
    ],
)
def test_closest_match(value: object, allowed: list[str], closest: str | None) -> None:
    assert closest_match(value, allowed) == closest


def test_text_of_a_diagnostic() -> None:
    found = the_one(compile_base("aks-plugin", {"stack.namspace": "x"}), "GF101")
    assert text(found).splitlines() == [
        "error GF101 stack.namspace  stacks/Pulumi.test.yaml:12",
        "    Unknown key namspace.",
        "    found:   namspace",
        "    allowed: hamiChart, images, kind, namespace, version",
        "    closest: namespace",
        "    why:     An unknown key would be ignored silently, and with it what it was meant to do.",
        "    do:      Use one of the allowed keys, or remove it.",
    ]


def test_only_warnings_can_be_acknowledged() -> None:
    found = [finding("GF205", "a", value="none"), finding("GF202", "b"), finding("GF423", "c")]
    reasons = {"GF205": "why", "GF202": "no", "GF423": "no"}
    assert [d.acknowledged for d in acknowledge(found, reasons)] == ["why", None, None]
    assert [d.code for d in errors(found)] == ["GF202"]
    assert summary(found) == "1 error, 1 warning, 1 note"
    assert summary([]) == "no errors or warnings"


def test_json_form_leaves_out_what_is_not_known() -> None:
    assert finding("GF002", "").as_dict() == {
        "code": "GF002",
        "severity": Severity.ERROR,
        "path": "",
        "message": find("GF002").title,
        "reason": find("GF002").reason,
        "remedy": find("GF002").remedy,
    }
