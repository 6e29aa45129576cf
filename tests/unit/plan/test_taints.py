"""Final taints of pools, and the tolerations that follow from them: enough, and no wider."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.parts.taints import Taint, Toleration, parse_taint, tolerations
from gpufleet.plan.model import Plan
from hypothesis import given

from tests.unit.config.samples import compile_base, compile_data, told
from tests.unit.plan.strategies import CALM, stacks

SPOT = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"
CHART = Taint("nvidia.com/gpu", "", "NoSchedule")


def stands(toleration: dict[str, str], taint: Taint) -> bool:
    """As the scheduler decides it (k8s.io/component-helpers scheduling/corev1: ToleratesTaint)."""
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    if toleration.get("key") and toleration["key"] != taint.key:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return toleration.get("value", "") == taint.value


def plan_of(base: str, changes: dict[str, Any]) -> Plan:
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        ("sku=gpu:NoSchedule", Taint("sku", "gpu", "NoSchedule")),
        ("sku:NoExecute", Taint("sku", "", "NoExecute")),
        ("sku=:NoExecute", Taint("sku", "", "NoExecute")),
        ("nvidia.com/gpu=present:PreferNoSchedule", Taint("nvidia.com/gpu", "present", "PreferNoSchedule")),
        ("a.b-c/D_e.f=1.2_3-x:NoSchedule", Taint("a.b-c/D_e.f", "1.2_3-x", "NoSchedule")),
    ],
)
def test_parse(text: str, taint: Taint) -> None:
    assert parse_taint(text) == taint
    assert parse_taint(str(taint)) == taint


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "effect is missing"),
        ("sku=gpu", "effect is missing"),
        ("sku=gpu:", "effect is one of NoSchedule, PreferNoSchedule, NoExecute."),
        ("sku=gpu:NO_SCHEDULE", "Kubernetes writes it NoSchedule"),
        ("sku=gpu:noexecute", "Kubernetes writes it NoExecute"),
        ("sku=gpu:PREFER_NO_SCHEDULE", "Kubernetes writes it PreferNoSchedule"),
        (":NoSchedule", "key"),
        ("=a:NoSchedule", "key"),
        ("a/b/c:NoSchedule", "key"),
        ("-a:NoSchedule", "key"),
        ("a" * 64 + ":NoSchedule", "key"),
        ("sku=a b:NoSchedule", "value"),
        ("sku=a=b:NoSchedule", "value"),
        ("sku=" + "v" * 64 + ":NoSchedule", "value"),
    ],
)
def test_what_is_no_taint(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_taint(text)


def test_spot_pools_carry_the_taint_and_label_that_aks_adds() -> None:
    pool = plan_of("aks-plugin", {"pools[0].spot": True, "pools[0].taints": ["sku=gpu:NoSchedule"]}).pools[0]
    assert pool.taints == (SPOT, "sku=gpu:NoSchedule")
    assert pool.labels["kubernetes.azure.com/scalesetpriority"] == "spot"


def test_restating_the_spot_taint_and_label_changes_nothing() -> None:
    restated = {
        "pools[0].spot": True,
        "pools[0].taints": [SPOT],
        "pools[0].labels": {"kubernetes.azure.com/scalesetpriority": "spot"},
    }
    assert plan_of("aks-plugin", restated) == plan_of("aks-plugin", {"pools[0].spot": True})


def test_pools_without_spot_have_neither() -> None:
    pool = plan_of("aks-plugin", {}).pools[0]
    assert pool.taints == ()
    assert list(pool.labels) == ["gpufleet.dev/pool"]


def test_tolerations_are_the_narrowest() -> None:
    assert tolerations([Taint("a", "1", "NoSchedule"), Taint("b", "", "NoExecute"), Taint("a", "1", "NoSchedule")]) == (
        Toleration("a", "Equal", "1", "NoSchedule"),
        Toleration("b", "Exists", "", "NoExecute"),
    )
    assert [t.as_dict() for t in tolerations([Taint("a", "1", "NoSchedule"), Taint("b", "", "NoExecute")])] == [
        {"key": "a", "operator": "Equal", "effect": "NoSchedule", "value": "1"},
        {"key": "b", "operator": "Exists", "effect": "NoExecute"},
    ]


def test_the_plugin_of_a_profile_tolerates_its_own_pools_only() -> None:
    plan = plan_of(
        "aks-plugin",
        {
            "sharing.half": {"strategy": "timeSlicing", "replicas": 2},
            "pools[0].taints": ["sku=gpu:NoSchedule", "nvidia.com/gpu=present:NoExecute"],
            "pools[1]": {"name": "b", "vmSize": "Standard_NC4as_T4_v3", "spot": True, "sharing": "half"},
        },
    )
    assert plan.plugin is not None
    assert {d.profile: [t["key"] for t in d.tolerations] for d in plan.plugin.daemon_sets} == {
        "half": ["kubernetes.azure.com/scalesetpriority"],
        "unshared": ["nvidia.com/gpu", "sku"],
    }


def test_the_operator_tolerates_all_pools_and_what_its_chart_does() -> None:
    plan = plan_of("aks-operator", {"pools[0].spot": True, "pools[0].taints": ["sku=gpu:NoSchedule"]})
    assert plan.operator is not None
    expected = [
        {"key": "kubernetes.azure.com/scalesetpriority", "operator": "Equal", "value": "spot", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
    ]
    assert plan.operator.values["daemonsets"]["tolerations"] == expected
    assert plan.operator.values["node-feature-discovery"]["worker"]["tolerations"] == expected


def _final(plan: Plan, *pools: str) -> set[Taint]:
    return {parse_taint(t) for p in plan.pools if p.name in pools for t in p.taints}


def _exactly(given_: list[dict[str, str]], taints: set[Taint], others: set[Taint]) -> None:
    for taint in taints:
        assert any(stands(t, taint) for t in given_), taint
    for toleration in given_:
        assert any(stands(toleration, taint) for taint in taints), f"{toleration} is for nothing"
        assert toleration.get("key") and toleration.get("effect"), "no toleration of everything"
    for taint in others - taints:
        # A taint with a value is stood by a toleration of the key alone, where a pool carries the key without value.
        bare = Taint(taint.key, "", taint.effect) in taints
        assert bare or not any(stands(t, taint) for t in given_), f"{taint} is none of these pools'"


@CALM
@given(stacks())
def test_every_set_of_tolerations_fits_its_pools(stack: dict[str, Any]) -> None:
    """Each DaemonSet, the operator's operands and each team's pods stand all final taints, and nothing else."""
    compiled = compile_data(stack)
    assert compiled.plan is not None
    plan = compiled.plan
    everything = _final(plan, *(p.name for p in plan.pools)) | {Taint("other", "x", "NoSchedule"), CHART}
    if plan.plugin:
        assert sorted(name for d in plan.plugin.daemon_sets for name in d.pools) == sorted(
            p.name for p in plan.pools if p.profile is not None
        )
        for daemon_set in plan.plugin.daemon_sets:
            _exactly(list(daemon_set.tolerations), _final(plan, *daemon_set.pools), everything)
    if plan.operator:
        closure = plan.operator.values["daemonsets"]["tolerations"]
        _exactly(closure, _final(plan, *(p.name for p in plan.pools)) | {CHART}, everything)
    for team in plan.teams:
        for pool in team.pools:
            _exactly(list(pool.tolerations), _final(plan, pool.pool), everything)
