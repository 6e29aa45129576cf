"""Problems of users that the plan answers by what it derives, not by a diagnostic (tests/unit/nvidia_cases.yaml)."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.plan.model import Plan

from tests.unit.config.samples import compile_base, told

HAMI = {"sharing.h": {"strategy": "hami"}, "pools[0].sharing": "h"}
CUT = {
    "sharing.cut": {"strategy": "mig", "profile": "1g.10gb"},
    "pools[0].sharing": "cut",
    "pools[0].gpu": "A100-SXM4-80GB",
    "pools[0].driver": "operator",
}


def plan_of(base: str, changes: dict[str, Any]) -> Plan:
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


def test_every_operand_tolerates_what_the_pools_carry() -> None:
    """NV-17: the closure stands where all operands take it from, whatever a release's own manifests tolerate."""
    taints = ["nvidia.com/gpu=present:NoSchedule", "team=a:NoExecute"]
    changes = {"pools[0].taints": taints, "stack.values": {"sandboxWorkloads": {"enabled": True}}}
    operator = plan_of("existing-operator", changes).operator
    assert operator is not None and operator.values["sandboxWorkloads"] == {"enabled": True}
    passed_on = operator.values["daemonsets"]["tolerations"]
    for key, value, effect in (("nvidia.com/gpu", "present", "NoSchedule"), ("team", "a", "NoExecute")):
        assert {"key": key, "operator": "Equal", "value": value, "effect": effect} in passed_on


@pytest.mark.parametrize("strategy", ["timeSlicing", "mps"])
def test_one_route_brings_one_plugin(strategy: str) -> None:
    """NV-20: there is no stack with the operator's plugin and one of its own."""
    shared = {"sharing.s": {"strategy": strategy, "replicas": 2}, "pools[0].sharing": "s"}
    for base in ("existing-plugin", "existing-operator", "aks-plugin", "aks-operator"):
        plan = plan_of(base, shared)
        assert (plan.plugin is None) != (plan.operator is None)
    raw = {**shared, "stack.values": {"devicePlugin": {"enabled": False}}}
    assert ("GF220", "stack.values.devicePlugin.enabled") in told(compile_base("existing-operator", raw))


def test_hami_turns_the_operators_plugin_off() -> None:
    """NV-21."""
    plan = plan_of("existing-operator", HAMI)
    assert plan.operator is not None and plan.operator.values["devicePlugin"]["enabled"] is False
    assert plan.artifact("hami") is not None
    own = plan_of("existing-plugin", HAMI)
    assert own.plugin is not None and own.plugin.daemon_sets == ()


@pytest.mark.parametrize("base", ["existing-plugin", "existing-operator", "aks-plugin", "aks-operator"])
def test_hami_nodes_carry_its_label(base: str) -> None:
    """NV-22: on pools that gpufleet labels; for others it is GF225."""
    plan = plan_of(base, HAMI)
    assert plan.pools[0].labels["gpu"] == "on"
    hami = plan.artifact("hami")
    assert hami is not None and hami.values["devicePlugin"]["nvidiaNodeSelector"] == {"gpu": "on"}
    assert "gpu" not in plan_of(base, {}).pools[0].labels


def test_the_mig_manager_stays_off_nodes_that_it_does_not_cut() -> None:
    """NV-40: it runs where the operator cuts GPUs, by its own layout's label, and nowhere else."""
    other = {"name": "b", "hosts": {"n2": {}}, "gpu": "A100-SXM4-80GB", "gpusPerNode": 1, "driver": "operator"}
    shared = {"sharing.s": {"strategy": "timeSlicing", "replicas": 2}, "pools[1]": {**other, "sharing": "s"}}
    plan = plan_of("existing-operator", {**CUT, **shared})
    assert plan.operator is not None and plan.operator.values["migManager"]["enabled"] is True
    first, second = plan.pools[0].labels, plan.pools[1].labels
    assert first["nvidia.com/mig.config"] == "7x1g.10gb" and "nvidia.com/mig.config" not in second
    assert second["nvidia.com/gpu.deploy.mig-manager"] == "false"
    alone = plan_of(
        "existing-operator", {"sharing.s": {"strategy": "timeSlicing", "replicas": 2}, "pools[0].sharing": "s"}
    )
    assert alone.operator is not None and alone.operator.values["migManager"]["enabled"] is False
