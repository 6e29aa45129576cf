"""Declared against observed: every cause of a difference, and nothing where there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gpufleet.plan.model import Plan
from gpufleet.status.compare import Status, compare
from gpufleet.status.observed import Observed, ObservedNode, OperandPod
from gpufleet.status.render import render

from tests.unit.config.samples import REMOVE, compile_base, told

SHARED = {"sharing.half": {"strategy": "timeSlicing", "replicas": 2}, "pools[0].sharing": "half"}


def plan_of(base: str = "existing-plugin", changes: dict[str, Any] | None = None) -> Plan:
    compiled = compile_base(base, SHARED if changes is None else changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


def config_of(plan: Plan) -> str:
    if plan.plugin:
        return plan.plugin.daemon_sets[0].config_map.name
    assert plan.operator is not None
    return plan.operator.config_map.name


def data_of(plan: Plan) -> dict[str, str]:
    if plan.plugin:
        return plan.plugin.daemon_sets[0].config_map.data
    assert plan.operator is not None
    return plan.operator.config_map.data


def arrived(plan: Plan, *names: str) -> Observed:
    """The cluster exactly as the plan of its first pool says; `names` of nodes where the cloud chooses them."""
    pool = plan.pools[0]
    nodes = {
        name: ObservedNode(name, True, dict(pool.node.labels), _taints(pool.taints), dict(pool.node.resources))
        for name in (pool.nodes or names)
    }
    namespace = plan.plugin.namespace if plan.plugin else plan.operator.namespace if plan.operator else ""
    pods = tuple(
        OperandPod(f"plugin-{n}", namespace, n, True, config_maps=(config_of(plan),)) for n in nodes if pool.profile
    )
    return Observed(nodes, pods, {(namespace, config_of(plan)): frozenset(data_of(plan))} if pods else {})


def _taints(texts: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    out = []
    for text in texts:
        body, _, effect = text.rpartition(":")
        key, _, value = body.partition("=")
        out.append((key, value, effect))
    return tuple(out)


def node(seen: Observed, **changes: Any) -> Observed:
    """The observation with its first node changed."""
    first = next(iter(seen.nodes))
    return replace(seen, nodes={**seen.nodes, first: replace(seen.nodes[first], **changes)})


def pod(seen: Observed, **changes: Any) -> Observed:
    """The observation with its first pod changed."""
    return replace(seen, pods=(replace(seen.pods[0], **changes), *seen.pods[1:]))


def causes(status: Status) -> list[str]:
    return [c for n in status.nodes for c in n.causes] + list(status.causes)


@pytest.mark.parametrize(
    ("base", "changes", "names"),
    [
        ("existing-plugin", SHARED, ()),
        ("existing-plugin", {"pools[0].taints": ["sku=gpu:NoSchedule"]}, ()),
        ("existing-operator", SHARED, ()),
        ("aks-plugin", SHARED, ("aks-1",)),
        ("aks-operator", {**SHARED, "pools[0].spot": True}, ("aks-1",)),
        ("aks-plugin", {"pools[0].count": 2}, ("aks-1", "aks-2")),
        ("existing-plugin", {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"a": "b"}}, ("x", "y", "z")),
        ("aks-plugin", {"pools[0].driver": "none"}, ("aks-1",)),
    ],
)
def test_a_cluster_as_declared_agrees(base: str, changes: dict[str, Any], names: tuple[str, ...]) -> None:
    plan = plan_of(base, changes)
    if plan.pools[0].driver_owner == "none":
        seen = Observed({"aks-1": ObservedNode("aks-1", True, {"gpufleet.dev/pool": "t4"}, (), {})})
    else:
        seen = arrived(plan, *names)
    status = compare(plan, seen)
    assert causes(status) == []
    assert status.agrees
    assert [n.node for n in status.nodes] == sorted(seen.nodes)
    assert all(n.agrees and n.declared == n.observed == plan.pools[0].node.resources for n in status.nodes)


def test_a_row_says_what_is_there() -> None:
    plan = plan_of()
    row = compare(plan, arrived(plan)).nodes[0]
    assert (row.node, row.pool, row.declared) == ("n1", "t4", {"nvidia.com/gpu": 2})
    assert (row.plugin_pod, row.config, row.config_declared) == (
        "gpu-plugin/plugin-n1",
        config_of(plan),
        config_of(plan),
    )


def one(seen: Observed, plan: Plan | None = None) -> list[str]:
    status = compare(plan or plan_of(), seen)
    assert not status.agrees
    return causes(status)


def test_another_count_with_all_else_right_points_at_the_node() -> None:
    found = one(node(arrived(plan_of()), allocatable={"nvidia.com/gpu": 1}))
    assert len(found) == 1
    assert found[0].startswith("offers nvidia.com/gpu: 1 instead of 2 although its plugin pod is ready")


@pytest.mark.parametrize(
    ("allocatable", "says"),
    [
        ({}, "offers nvidia.com/gpu: 0 instead of 2"),
        ({"nvidia.com/gpu.shared": 2}, "offers nvidia.com/gpu: 0 instead of 2, nvidia.com/gpu.shared: 2 instead of 0"),
        ({"nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 7}, "offers nvidia.com/mig-1g.5gb: 7 instead of 0"),
    ],
)
def test_other_resources(allocatable: dict[str, int], says: str) -> None:
    assert one(node(arrived(plan_of()), allocatable=allocatable))[0].startswith(says)


def test_a_resource_that_has_gone_to_zero_is_no_difference() -> None:
    """The kubelet keeps the name of a resource whose plugin has gone, with a count of 0."""
    seen = node(arrived(plan_of()), allocatable={"nvidia.com/gpu": 2, "nvidia.com/gpu.shared": 0})
    assert compare(plan_of(), seen).agrees


def test_an_old_configuration() -> None:
    found = one(pod(node(arrived(plan_of()), allocatable={"nvidia.com/gpu": 4}), config_maps=("gpufleet-half-old",)))
    assert found == [
        f"plugin pod plugin-n1 still uses gpufleet-half-old, declared {config_of(plan_of())}",
        "offers nvidia.com/gpu: 4 instead of 2",
    ]


def test_a_pod_without_configuration() -> None:
    without = pod(arrived(plan_of()), config_maps=())
    assert compare(plan_of(), without).nodes[0].config is None
    found = one(without)
    assert found == [f"plugin pod plugin-n1 still uses no ConfigMap, declared {config_of(plan_of())}"]


def test_a_configuration_among_others_counts() -> None:
    plan = plan_of("existing-operator")
    seen = pod(arrived(plan), config_maps=("entrypoint", config_of(plan)))
    status = compare(plan, seen)
    assert status.agrees
    assert status.nodes[0].config == config_of(plan)


@pytest.mark.parametrize(
    ("trouble", "says"),
    [(None, "plugin pod plugin-n1 is not ready"),
     ("CrashLoopBackOff: exit code 1", "plugin pod plugin-n1 is not ready: CrashLoopBackOff: exit code 1")],
)  # fmt: skip
def test_a_pod_that_is_not_ready(trouble: str | None, says: str) -> None:
    assert one(pod(arrived(plan_of()), ready=False, trouble=trouble)) == [says]


def test_no_pod_and_a_taint_that_nobody_declared() -> None:
    seen = node(replace(arrived(plan_of()), pods=()), taints=(("team", "x", "NoSchedule"),))
    assert one(seen) == ["no plugin pod: taint team=x:NoSchedule is not tolerated (declare it in the pool)"]


@pytest.mark.parametrize("base", ["existing-plugin", "existing-operator"])
def test_a_taint_that_nobody_declared_keeps_teams_off(base: str) -> None:
    """Plugin pods that run already stay, and the operator's tolerate nvidia.com/gpu by its chart."""
    plan = plan_of(base)
    seen = node(arrived(plan), taints=(("nvidia.com/gpu", "yes", "NoSchedule"),))
    says = (
        "taint nvidia.com/gpu=yes:NoSchedule is not declared: pods that follow the plan stay off the node; declare it"
        " in the pool, or remove it (kubectl taint nodes n1 nvidia.com/gpu:NoSchedule-)"
    )
    assert one(seen, plan) == [says]


@pytest.mark.parametrize(
    "taint", [("soft", "", "PreferNoSchedule"), ("node.kubernetes.io/disk-pressure", "", "NoSchedule")]
)
def test_taints_that_are_no_difference(taint: tuple[str, str, str]) -> None:
    assert compare(plan_of(), node(arrived(plan_of()), taints=(taint,))).agrees


def test_a_cordoned_node_agrees_and_says_so() -> None:
    seen = node(arrived(plan_of()), taints=(("node.kubernetes.io/unschedulable", "", "NoSchedule"),))
    status = compare(plan_of(), seen)
    assert status.agrees
    assert "n1: cordoned: no new pods get onto it until `kubectl uncordon n1`" in render(status)
    assert status.as_dict()["nodes"][0]["notes"] == ("cordoned: no new pods get onto it until `kubectl uncordon n1`",)


@pytest.mark.parametrize("base", ["existing-plugin", "existing-operator"])
def test_a_configuration_that_is_gone(base: str) -> None:
    plan = plan_of(base)
    found = one(replace(arrived(plan), config_maps={}), plan)
    assert len(found) == 1
    assert found[0].startswith(f"ConfigMap {compare(plan, arrived(plan)).nodes[0].plugin_pod.partition('/')[0]}/")  # type: ignore[union-attr]
    assert config_of(plan) in found[0]
    assert "`pulumi up --refresh` puts it back" in found[0]


def test_a_configuration_that_nothing_has_read_yet_is_not_gone() -> None:
    """Before `pulumi up`, the declared one does not exist, and the pods say so already."""
    seen = pod(replace(arrived(plan_of()), config_maps={("gpu-plugin", "old"): frozenset()}), config_maps=("old",))
    assert [c for c in one(seen) if "gone" in c] == []


def test_configurations_that_the_user_may_not_list_are_not_judged() -> None:
    assert compare(plan_of(), replace(arrived(plan_of()), config_maps=None)).agrees


@pytest.mark.parametrize(
    "taint",
    [
        ("sku", "gpu", "NoSchedule"),  # declared, hence tolerated
        ("soft", "", "PreferNoSchedule"),  # keeps no pod away
        ("node.kubernetes.io/unreachable", "", "NoExecute"),  # explained by the state of the node
    ],
)
def test_taints_that_explain_nothing(taint: tuple[str, str, str]) -> None:
    plan = plan_of(changes={"pools[0].taints": ["sku=gpu:NoSchedule"]})
    seen = replace(arrived(plan), pods=())
    first = seen.nodes["n1"]
    seen = node(seen, taints=tuple({*first.taints, taint}))
    assert one(seen, plan) == [
        "no plugin pod of namespace gpu-plugin is on the node; `pulumi up --refresh` puts back what was deleted by hand"
    ]


def test_the_value_of_a_taint_matters() -> None:
    plan = plan_of(changes={"pools[0].taints": ["sku=gpu:NoSchedule"]})
    seen = node(replace(arrived(plan), pods=()), taints=(("sku", "cpu", "NoSchedule"),))
    assert one(seen, plan) == [
        "taint sku=gpu:NoSchedule is missing",
        "no plugin pod: taint sku=cpu:NoSchedule is not tolerated (declare it in the pool)",
    ]


def test_a_node_that_is_not_ready() -> None:
    assert one(node(arrived(plan_of()), ready=False)) == ["the node is not Ready"]


def test_labels_that_are_missing_or_different() -> None:
    seen = node(arrived(plan_of()), labels={"gpufleet.dev/pool": "other"})
    assert one(seen) == [
        "label gpufleet.dev/method is missing, declared timeSlicing",
        "label gpufleet.dev/pool is other, declared t4",
    ]


def test_feature_labels_count_on_the_operator_route() -> None:
    plan = plan_of("existing-operator")
    labels = {**plan.pools[0].node.labels, "nvidia.com/gpu.product": "Tesla-T4"}
    assert one(node(arrived(plan), labels=labels), plan) == [
        "label nvidia.com/gpu.product is Tesla-T4, declared Tesla-T4-SHARED"
    ]


@pytest.mark.parametrize(
    ("declared", "there", "repelled"),
    [
        ("sku=gpu:NoSchedule", ("other", "gpu", "NoSchedule"), True),
        ("sku=gpu:NoSchedule", ("sku", "gpu", "NoExecute"), True),
        ("sku=gpu:NoSchedule", ("sku", "", "NoSchedule"), True),
        ("sku:NoSchedule", ("sku", "any", "NoSchedule"), False),
    ],
)
def test_a_toleration_is_judged_as_the_scheduler_does(
    declared: str, there: tuple[str, str, str], repelled: bool
) -> None:
    plan = plan_of(changes={"pools[0].taints": [declared]})
    found = one(node(replace(arrived(plan), pods=()), taints=(there,)), plan)
    assert any("is not tolerated" in cause for cause in found) is repelled


def test_nodes_of_others_are_no_nodes_of_a_pool() -> None:
    plan = plan_of("aks-plugin", {"pools[1]": {"name": "b", "vmSize": "Standard_NC4as_T4_v3", "count": 0}})
    seen = arrived(plan, "gpu-1")
    system = ObservedNode("system-1", True, {"kubernetes.azure.com/mode": "system"}, (), {})
    old = ObservedNode("old-1", True, {"gpufleet.dev/pool": "gone"}, (), {"nvidia.com/gpu": 1})
    status = compare(plan, replace(seen, nodes={**seen.nodes, "system-1": system, "old-1": old}))
    assert status.agrees
    assert [n.node for n in status.nodes] == ["gpu-1"]


def test_a_pool_without_driver_expects_no_plugin_on_the_operator_route_either() -> None:
    plan = plan_of("aks-operator", {"pools[0].driver": "none"})
    there = ObservedNode("aks-1", True, dict(plan.pools[0].node.labels), (), {})
    assert causes(compare(plan, Observed({"aks-1": there}))) == []


def test_a_declared_taint_that_is_missing() -> None:
    plan = plan_of(changes={"pools[0].taints": ["sku=gpu:NoSchedule"]})
    assert one(node(arrived(plan), taints=()), plan) == ["taint sku=gpu:NoSchedule is missing"]


def test_a_second_plugin() -> None:
    seen = arrived(plan_of())
    other = OperandPod("nvidia-device-plugin-x", "kube-system", "n1", True)
    assert one(replace(seen, pods=(*seen.pods, other))) == [
        "a second device plugin registers here: pod kube-system/nvidia-device-plugin-x"
    ]


def test_a_plugin_of_somebody_else_on_a_node_that_somebody_else_looks_after() -> None:
    """`driver: none` is acknowledged where another team runs the node; what it offers is that team's business."""
    plan = plan_of("aks-plugin", {"pools[0].driver": "none"})
    theirs = ObservedNode("aks-1", True, {"gpufleet.dev/pool": "t4"}, (), {"nvidia.com/gpu": 8})
    seen = Observed({"aks-1": theirs}, (OperandPod("p", "theirs", "aks-1", True),))
    assert causes(compare(plan, seen)) == []


def test_a_plugin_on_a_node_of_no_pool_is_not_ours_to_judge() -> None:
    seen = arrived(plan_of())
    other = OperandPod("p", "kube-system", "elsewhere", True)
    assert compare(plan_of(), replace(seen, pods=(*seen.pods, other))).agrees


def test_a_ready_pod_counts_beside_one_that_goes() -> None:
    seen = arrived(plan_of())
    going = replace(seen.pods[0], name="a-old", ready=False, config_maps=("old",))
    status = compare(plan_of(), replace(seen, pods=(going, *seen.pods)))
    assert status.agrees
    assert status.nodes[0].plugin_pod == "gpu-plugin/plugin-n1"


def test_a_declared_node_that_does_not_exist() -> None:
    plan = plan_of(changes={**SHARED, "pools[0].hosts": {"n1": {}, "n2": {}}})
    seen = arrived(plan)
    status = compare(plan, replace(seen, nodes={"n1": seen.nodes["n1"]}))
    assert [(n.node, n.causes) for n in status.nodes if not n.agrees] == [("n2", ("there is no node of this name",))]


@pytest.mark.parametrize(
    ("base", "changes", "names", "says"),
    [
        ("aks-plugin", {"pools[0].count": 2}, ("a",), "pool t4: 1 of at least 2 nodes are there"),
        ("aks-plugin", {}, ("a", "b"), "pool t4: 2 nodes are there, at most 1 were declared"),
        (
            "existing-plugin",
            {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"a": "b"}},
            (),
            "pool t4: no node matches its selector",
        ),
    ],
)
def test_nodes_of_a_pool(base: str, changes: dict[str, Any], names: tuple[str, ...], says: str) -> None:
    plan = plan_of(base, changes)
    status = compare(plan, arrived(plan, *names))
    assert status.causes == (says,)
    assert not status.agrees


@pytest.mark.parametrize(("names", "agrees"), [((), True), (("a", "b", "c"), True), (("a", "b", "c", "d"), False)])
def test_an_autoscaled_pool_has_any_size_within_its_bounds(names: tuple[str, ...], agrees: bool) -> None:
    plan = plan_of("aks-plugin", {"pools[0].count": REMOVE, "pools[0].autoscale": {"min": 0, "max": 3}})
    assert compare(plan, arrived(plan, *names)).agrees is agrees


def test_hardware_that_the_catalogue_does_not_know_is_not_compared() -> None:
    plan = plan_of()
    unknown = replace(plan.pools[0], node=replace(plan.pools[0].node, resources={}, known=False))
    plan = replace(plan, pools=(unknown,))
    assert compare(plan, node(arrived(plan_of()), allocatable={"nvidia.com/gpu": 5})).agrees


def test_hamis_own_plugin_is_the_one_of_its_pools() -> None:
    plan = plan_of(changes={"sharing.h": {"strategy": "hami", "splitCount": 5}, "pools[0].sharing": "h"})
    hami = plan.artifact("hami")
    assert hami is not None
    pool = plan.pools[0]
    there = ObservedNode("n1", True, dict(pool.node.labels), (), dict(pool.node.resources))
    theirs = OperandPod("hami-device-plugin-x", hami.namespace, "n1", True, config_maps=("hami-scheduler-device",))
    assert causes(compare(plan, Observed({"n1": there}, (theirs,)))) == []
    cure = "`pulumi up --refresh` puts back what was deleted by hand"
    missing = f"no plugin pod of namespace hami-system is on the node; {cure}"
    assert causes(compare(plan, Observed({"n1": there}))) == [missing]


def test_every_pool_is_compared() -> None:
    second = {"name": "b", "hosts": {"n2": {}}, "gpu": "A10", "gpusPerNode": 2}
    plan = plan_of(changes={**SHARED, "pools[1]": second})
    status = compare(plan, arrived(plan))
    assert [(n.node, n.pool, n.agrees) for n in status.nodes] == [("n1", "t4", True), ("n2", "b", False)]


def test_as_json() -> None:
    plan = plan_of()
    document = compare(plan, node(arrived(plan), ready=False)).as_dict()
    assert (document["stack"], document["agrees"], document["causes"]) == ("test", False, [])
    assert document["nodes"][0]["agrees"] is False
    assert document["nodes"][0]["causes"] == ("the node is not Ready",)


def test_in_words() -> None:
    plan = plan_of(changes={**SHARED, "pools[0].hosts": {"n1": {}, "n2": {}}})
    lines = render(compare(plan, node(arrived(plan), allocatable={}))).splitlines()
    assert lines[0].split() == ["node", "pool", "declared", "observed", "configuration"]
    assert lines[2].split()[:2] == ["n1", "t4"]
    assert "nothing" in lines[2]
    assert lines[2].endswith("DIFFERS")
    assert lines[3].endswith("agrees")
    assert lines[4].startswith("n1: offers nvidia.com/gpu: 0 instead of 2")
    assert lines[-1] == "test: the cluster DIFFERS from the stack file (1 of 2 nodes agree)."
    assert render(compare(plan, arrived(plan))).endswith("agrees with the stack file (2 of 2 nodes agree).")
