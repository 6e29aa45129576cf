"""Every rule with its examples: the wrong one breaks it, the right one does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import find, rules
from gpufleet.findings.rule import Rule
from gpufleet.parts.device_requests import GpuPod
from gpufleet.parts.seen import Seen, SeenClass
from gpufleet.places import credentials
from gpufleet.places.existing.held import held_too_much, login_finding
from gpufleet.places.existing.in_use import (
    another_distribution,
    other_route,
    other_software,
    pull_secrets,
    refusals,
    runtime_classes,
    strangers,
)
from gpufleet.places.existing.plan import ExistingClusterPlan
from gpufleet.plan.model import Plan

from tests.unit.rules.examples import compiled, found

#: Rules that look at a running cluster; what is there is told to them.
IN_USE = {
    "GF450", "GF451", "GF452", "GF460", "GF461", "GF462", "GF463", "GF464", "GF465", "GF466", "GF467", "GF481", "GF490",
    "GF491", "GF492", "GF493",
}  # fmt: skip
OURS = {"app.kubernetes.io/managed-by": "gpufleet"}
#: Users of the kubeconfigs that examples name.
USERS = {
    "token.conf": {"token": "t"},
    "k.conf": {"exec": {"command": "kubelogin"}},
    "code.conf": {"exec": {"command": "kubelogin", "args": ["get-token", "--login", "devicecode"]}},
    "fails.conf": {"exec": {"command": "false"}},
}
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


def _kubeconfig(user: dict[str, object]) -> dict[str, object]:
    return {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
        "current-context": "c",
    }


def _program(file: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:/usr/bin:/bin")


@pytest.mark.parametrize("code", sorted(IN_USE))
def test_rules_about_a_running_cluster(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GF450: pods hold whole GPUs of n1. GF451: there is a namespace prod. GF452: the plugin route is deployed.

    GF481: the cluster has a node of AKS.
    GF490: nine pods on n1 hold a device each. GF491 to GF493: programs that are missing, wait, or fail.
    """
    monkeypatch.setattr(credentials, "LIMIT_SECONDS", 1)
    monkeypatch.setattr(credentials, "SAY_AFTER_SECONDS", 0.1)
    if code == "GF492":
        _program(tmp_path / "kubelogin", "sleep 30", monkeypatch)
    nine = [GpuPod(f"ml/{i}", "n1", {"nvidia.com/gpu": 1}) for i in range(9)]

    def login(plan: Plan) -> list[Finding]:
        assert isinstance(plan.cluster, ExistingClusterPlan)
        user = USERS[plan.cluster.kubeconfig.path or ""]
        try:
            credentials.with_credentials(_kubeconfig(user), None, lambda _: None)
        except credentials.LoginError as error:
            return [login_finding(error)]
        return []

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
            "GF467": pull_secrets(plan, lambda path: False),
            "GF481": another_distribution(plan, {"aks-t4-12345678-vmss000000": {"kubernetes.azure.com/cluster": "x"}}),
            "GF490": held_too_much(plan, [{"metadata": {"name": "n1"}}], nine),
            **dict.fromkeys(("GF491", "GF492", "GF493"), login(plan) if code > "GF490" else []),
        }[code]

    assert [d.code for d in said(find(code).wrong)] == [code]
    assert said(find(code).right) == []
