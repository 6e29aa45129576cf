"""Rules about hosts: their texts as they are printed, and their examples."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.gpufleet.hosts.plugins.plugin_utils.settings import defaults
from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rules
from gpufleet.findings.rule import Rule
from gpufleet.hosts import preflight, report
from gpufleet.hosts.settings import Settings
from gpufleet.hosts.work import Problem

from .hosts import codes, host

RULES = [rule for rule in rules().values() if rule.code.startswith("GF7")]


def variables(example: str) -> dict[str, Any]:
    """The variables of the roles in an example; none where it says what is seen on a host."""
    if not example.removeprefix("# ").startswith("gpu_") and "\ngpu_" not in example:
        return {}
    return dict(yaml.safe_load(example))


#: Examples of variables that need no other host than the bare server of these tests.
ON_ANY_HOST = [rule for rule in RULES if rule.wrong.startswith("gpu_") and rule.code not in ("GF717", "GF760")]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_variables_of_examples_exist_and_hold_what_they_may(rule: Rule) -> None:
    for example in (rule.wrong, rule.right):
        given = variables(example)
        unknown = {"gpu_driver_verison"} if (rule.code, example) == ("GF760", rule.wrong) else set()
        assert set(given) - set(defaults()) == unknown
        Settings.model_validate({**defaults(), **{k: v for k, v in given.items() if k not in unknown}})


@pytest.mark.parametrize("rule", ON_ANY_HOST, ids=lambda rule: rule.code)
def test_the_wrong_example_breaks_the_rule_and_the_right_one_does_not(rule: Rule) -> None:
    assert rule.code in codes(preflight.findings(host(**variables(rule.wrong))))
    assert rule.code not in codes(preflight.findings(host(**variables(rule.right))))


def test_enough_examples_are_tried() -> None:
    tried = {rule.code for rule in ON_ANY_HOST}
    assert tried >= {"GF707", "GF708", "GF709", "GF710", "GF711", "GF714", "GF715", "GF757", "GF758"}


def test_a_finding_is_printed_in_three_lines() -> None:
    found = report.finding(Problem("GF708", {"branch": 580, "version": "595.91.07"}))
    assert report.text([found]).splitlines() == [
        "GF708 error: Branch and version contradict each other: gpu_driver_branch 580, gpu_driver_version 595.91.07",
        "      The version belongs to another branch.",
        "      Set one of them only, or make them agree.",
    ]


def test_the_roles_get_title_and_message_apart() -> None:
    found = report.finding(Problem("GF773", {"gpus": "GPU 0: no state"}))
    assert report.as_dict(found) == {
        "code": "GF773",
        "severity": "error",
        "title": "Fabric not ready",
        "message": "GPU 0: no state",
        "reason": "CUDA returns error 802 (system not yet initialised).",
        "remedy": "Look at nvidia-fabricmanager.service and at the NVSwitches.",
    }
    assert {type(value) for value in report.as_dict(found).values()} == {str}


def test_a_problem_may_be_more_severe_than_its_rule() -> None:
    values = {"file": "/etc/apt/sources.list", "host": "x"}
    assert report.finding(Problem("GF741", values)).severity is Severity.WARNING
    assert report.finding(Problem("GF741", {**values, "severity": Severity.ERROR})).severity is Severity.ERROR
