"""Every rule with its examples: the wrong one breaks it, the right one does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import find, rules
from gpufleet.findings.rule import Rule
from gpufleet.parts.seen import Seen, SeenClass
from gpufleet.places.existing.in_use import other_route, other_software, refusals, runtime_classes, strangers

from tests.unit.rules.examples import compiled, found

#: Rules that look at a running cluster; what is there is told to them.
IN_USE = {"GF450", "GF451", "GF452", "GF460", "GF461", "GF462", "GF463", "GF464", "GF465", "GF466"}
OURS = {"app.kubernetes.io/managed-by": "gpufleet"}
#: Examples about hosts are tried in tests/unit/roles/test_rules.py.
RULES = [rule for rule in rules().values() if rule.code not in IN_USE and rule.code[2] != "7"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_wrong_example_breaks_the_rule(rule: Rule, tmp_path: Path) -> None:
    assert rule.code in found(rule, rule.wrong, tmp_path)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_right_example_does_not(rule: Rule, tmp_path: Path) -> None:
    said = found(rule, rule.right, tmp_path)
    assert rule.code not in said
    assert "plan" in said, said


@pytest.mark.parametrize("code", sorted(IN_USE))
def test_rules_about_a_running_cluster(code: str) -> None:
    """GF450: pods hold whole GPUs of n1. GF452: the plugin route is deployed. The others: as their examples say."""

    def said(text: str) -> list[Finding]:
        plan = compiled(text).plan
        assert plan is not None
        return {
            "GF450": refusals(plan, {"n1": {"gpufleet.dev/method": "none"}}, {"n1": ["ml/train"]}),
            "GF451": strangers(plan, Seen(namespaces={"prod": {}})),
            "GF452": other_route(plan, [{"gpufleet.dev/route": "plugin"}]),
            "GF460": runtime_classes(plan, Seen(runtime_classes={"nvidia": SeenClass("runc")})),
            "GF461": runtime_classes(plan, Seen(runtime_classes={})),
            "GF462": strangers(plan, Seen()),
            "GF463": strangers(plan, Seen(namespaces={"prod": OURS})),
            "GF464": other_software(plan, Seen(operators=(("cluster-policy", "nvidia/gpu"),))),
            "GF465": other_software(plan, Seen(nfd=(("nfd/nfd-worker", "nfd/nfd"),))),
            "GF466": strangers(plan, Seen(namespaces={"prod": {}}, inside=(("ResourceQuota", "prod", "gpus"),))),
        }[code]

    assert [d.code for d in said(find(code).wrong)] == [code]
    assert said(find(code).right) == []
