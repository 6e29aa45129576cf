"""GF450 to GF452: what a running cluster forbids."""

from __future__ import annotations

from gpufleet.parts.seen import Seen
from gpufleet.places.existing.in_use import check_in_use, methods_that_change, other_route, refusals, strangers

from tests.unit.config.samples import compile_base

OURS = {"app.kubernetes.io/managed-by": "gpufleet"}
SHARED = {"sharing.half": {"strategy": "timeSlicing", "replicas": 2}, "pools[0].sharing": "half"}


def plan(changes: dict[str, object] | None = None):
    compiled = compile_base("existing-plugin", changes)
    assert compiled.plan is not None
    return compiled.plan


def test_a_change_under_running_pods_is_refused() -> None:
    nodes = {"n1": {"gpufleet.dev/method": "none"}}
    found = refusals(plan(SHARED), nodes, {"n1": ["ml/a", "ml/b", "ml/c", "ml/d"]})
    assert [(d.code, d.path, d.value) for d in found] == [("GF450", "pools[0].sharing", "half")]
    assert "n1" in found[0].message and "from none to timeSlicing" in found[0].message
    assert "ml/a, ml/b, ml/c and 1 more" in found[0].reason
    assert "kubectl drain n1" in found[0].remedy


def test_an_idle_node_may_change_and_the_same_method_is_no_change() -> None:
    nodes = {"n1": {"gpufleet.dev/method": "none"}}
    assert refusals(plan(SHARED), nodes, {"n1": []}) == []
    assert set(methods_that_change(plan(SHARED), nodes)) == {"n1"}
    assert methods_that_change(plan(SHARED), {"n1": {"gpufleet.dev/method": "timeSlicing"}}) == {}
    assert methods_that_change(plan(SHARED), {"n1": {}, "n2": {"gpufleet.dev/method": "none"}}) == {}


def test_a_cluster_that_does_not_answer_is_left_to_the_engine() -> None:
    kubeconfig = """
apiVersion: v1
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
"""
    assert check_in_use(plan(SHARED), kubeconfig, None) == (None, [])


def test_a_namespace_of_somebody_else_is_not_taken_over() -> None:
    team = {"teams": [{"name": "prod", "namespace": "prodapp", "pools": ["t4"]}]}
    found = strangers(plan(team), Seen(namespaces={"prodapp": {}, "gpu-plugin": OURS}))
    assert [(d.code, d.path, d.value) for d in found] == [("GF451", "teams[0].namespace", "prodapp")]
    assert strangers(plan(team), Seen(namespaces={"prodapp": OURS, "other": {}})) == []
    assert [d.path for d in strangers(plan(), Seen(namespaces={"gpu-plugin": {"a": "b"}}))] == ["stack.namespace"]


def test_one_route_at_a_time() -> None:
    bench: dict[str, str] = {}  # and others of ours that no route reads
    plugin = [{"gpufleet.dev/route": "plugin"}, bench]
    operator = [{"gpufleet.dev/route": "operator"}, bench]
    assert other_route(plan(), plugin) == []
    assert [(d.code, d.path) for d in other_route(plan(), operator)] == [("GF452", "stack.kind")]
    compiled = compile_base("existing-operator")
    assert compiled.plan is not None
    assert other_route(compiled.plan, operator) == []
    assert "plugin" in other_route(compiled.plan, plugin)[0].message
