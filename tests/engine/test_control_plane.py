"""The twin's cluster answers as a user's does: scheduler, controllers, admission and quotas are the real ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from twin.engine import Twin


@pytest.fixture
def place(twin: Twin) -> Iterator[str]:
    """A namespace of the test's own; it goes in the background, which takes the namespace controller 5 s and more."""
    name = twin.core.create_namespace({"metadata": {"generateName": "control-plane-"}}).metadata.name
    twin.wait(lambda: twin.core.read_namespaced_service_account("default", name), 30, "the service account is there")
    yield name
    twin.core.delete_namespace(name)


@pytest.fixture
def node(twin: Twin) -> Iterator[str]:
    twin.add_node("cp-1", {"zone": "cp"}, ["cp=only:NoSchedule"], gpus=4, model="T4")
    yield "cp-1"
    twin.remove_node("cp-1")


def pod(name: str, *, tolerates: bool = True, **spec: Any) -> dict[str, Any]:
    toleration = {"key": "cp", "operator": "Equal", "value": "only", "effect": "NoSchedule"}
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"zone": "cp"},
            "tolerations": [toleration] if tolerates else [],
            "containers": [{"name": "main", "image": "example/main:1"}],
            **spec,
        },
    }


def phase(twin: Twin, place: str, name: str) -> str:
    return str(twin.core.read_namespaced_pod(name, place).status.phase)


def test_a_pod_runs_where_it_tolerates_the_taint_and_nowhere_else(twin: Twin, node: str, place: str) -> None:
    twin.core.create_namespaced_pod(place, pod("welcome"))
    twin.core.create_namespaced_pod(place, pod("unwelcome", tolerates=False))
    twin.wait(lambda: phase(twin, place, "welcome") == "Running", 30, "the pod that tolerates the taint runs")
    started = twin.core.read_namespaced_pod("welcome", place)
    assert started.spec.node_name == node
    assert started.status.pod_ip.startswith("10.244.")
    assert {c.type for c in started.status.conditions if c.status == "True"} >= {"Ready", "ContainersReady"}

    def refused() -> bool:
        conditions = twin.core.read_namespaced_pod("unwelcome", place).status.conditions or []
        return any(c.reason == "Unschedulable" and "untolerated taint" in c.message for c in conditions)

    twin.wait(refused, 30, "the scheduler says why the other pod does not fit")


def test_a_job_ends_as_hooks_of_charts_need_it(twin: Twin, node: str, place: str) -> None:
    batch = client.BatchV1Api(twin.client())
    template = pod("unused", restartPolicy="Never")["spec"]
    batch.create_namespaced_job(place, {"metadata": {"name": "hook"}, "spec": {"template": {"spec": template}}})
    twin.wait(lambda: batch.read_namespaced_job("hook", place).status.succeeded == 1, 30, "the job is done")


def test_a_pod_can_be_kept_from_getting_ready(twin: Twin, node: str, place: str) -> None:
    held = pod("held")
    held["metadata"]["annotations"] = {"twin.gpufleet.dev/phase": "Pending"}
    twin.core.create_namespaced_pod(place, held)
    twin.core.create_namespaced_pod(place, pod("later"))
    twin.wait(lambda: phase(twin, place, "later") == "Running", 30, "the pod that came later runs")
    assert twin.core.read_namespaced_pod("held", place).spec.node_name == node
    assert phase(twin, place, "held") == "Pending"


def test_a_quota_on_gpus_is_enforced(twin: Twin, node: str, place: str) -> None:
    quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    twin.core.create_namespaced_resource_quota(place, quota)
    twin.wait(lambda: twin.core.read_namespaced_resource_quota("gpus", place).status.hard, 30, "the quota counts")

    def asking(name: str) -> dict[str, Any]:
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        return pod(name, containers=[{"name": "main", "image": "example/main:1", "resources": limits}])

    twin.core.create_namespaced_pod(place, asking("first"))
    with pytest.raises(client.ApiException, match="exceeded quota: gpus"):
        twin.core.create_namespaced_pod(place, asking("second"))


def test_a_user_without_a_role_may_do_nothing(twin: Twin, place: str) -> None:
    access = client.AuthorizationV1Api(twin.client())

    def allowed(user: str, groups: list[str]) -> bool:
        what = {"namespace": place, "verb": "create", "resource": "pods"}
        review = {"spec": {"user": user, "groups": groups, "resourceAttributes": what}}
        return bool(access.create_subject_access_review(review).status.allowed)

    assert not allowed("mallory", ["nobody"])
    assert allowed("mallory", ["system:masters"])


def test_a_nodes_lease_is_renewed(twin: Twin, node: str) -> None:
    leases = client.CoordinationV1Api(twin.client())

    def renewed() -> Any:
        return leases.read_namespaced_lease(node, "kube-node-lease").spec.renew_time

    first = twin.wait(renewed, 30, "the node has a lease")
    twin.wait(lambda: renewed() > first, 40, "the lease is renewed, so that the node stays Ready")
    assert twin.node_ready(node)


def test_a_node_that_goes_takes_its_pods_along(twin: Twin, place: str) -> None:
    twin.add_node("cp-2", {"zone": "cp"}, ["cp=only:NoSchedule"])
    twin.core.create_namespaced_pod(place, pod("passenger"))
    twin.wait(lambda: phase(twin, place, "passenger") == "Running", 30, "the pod runs")
    twin.remove_node("cp-2")
    assert "passenger" not in {p.metadata.name for p in twin.core.list_namespaced_pod(place).items}


def test_waiting_names_what_did_not_happen(twin: Twin) -> None:
    with pytest.raises(AssertionError, match=r"not within 0 s: pigs fly \(last value: \[\]\)"):
        twin.wait(lambda: [], 0, "pigs fly")
    with pytest.raises(AssertionError, match="last answer: 404"):
        twin.wait(lambda: twin.core.read_node("nowhere"), 0, "a node that is not there")
