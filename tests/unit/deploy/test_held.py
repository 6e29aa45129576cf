"""GF490: before a change, pods that hold more than their node will offer are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import finding
from gpufleet.parts.device_requests import GpuPod
from gpufleet.places.existing import in_use, resources
from gpufleet.places.existing.held import held_too_much
from gpufleet.places.existing.in_use import check_in_use
from gpufleet.plan.model import Plan

from tests.api_standin import serving
from tests.unit.config.samples import REMOVE, compile_base, told


def plan(replicas: int, **sharing: Any) -> Plan:
    profile = {"strategy": "timeSlicing", "replicas": replicas, **sharing}
    return plan_of({"sharing.s": profile, "pools[0].sharing": "s"})


def plan_of(changes: dict[str, Any]) -> Plan:
    compiled = compile_base("existing-plugin", changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


def node(name: str = "n1", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "status": {"capacity": {"nvidia.com/gpu": "10"}}}


def holding(count: int, where: str = "n1", resource: str = "nvidia.com/gpu") -> list[GpuPod]:
    return [GpuPod(f"ml/p{i}", where, {resource: 1}) for i in range(count)]


def test_rp_50_replicas_that_shrink() -> None:
    found = held_too_much(plan(4), [node()], holding(9))
    assert [(d.code, d.severity, d.path, d.value) for d in found] == [
        ("GF490", Severity.WARNING, "pools[0].sharing", "s")
    ]
    assert "n1: 9 pods hold 9 nvidia.com/gpu, and the pool offers 4 on a node: ml/p0, ml/p1" in found[0].reason


def test_rp_50_a_resource_that_gets_another_name() -> None:
    found = held_too_much(plan(10, renameByDefault=True), [node()], holding(9))
    assert "n1: 9 pods hold nvidia.com/gpu, which the pool no longer offers: ml/p0" in found[0].reason


@pytest.mark.parametrize(
    ("replicas", "pods"),
    [(4, holding(4)), (10, holding(9)), (4, holding(9, "elsewhere")), (4, holding(9, resource="nvidia.com/gpumem"))],
)
def test_pods_within_the_offer_are_not_named(replicas: int, pods: list[GpuPod]) -> None:
    assert held_too_much(plan(replicas), [node(), node("elsewhere")], pods) == []


def test_nodes_that_a_selector_picks() -> None:
    changes = {
        "sharing.s": {"strategy": "timeSlicing", "replicas": 4},
        "pools[0].sharing": "s",
        "pools[0].hosts": REMOVE,
        "pools[0].nodeSelector": {"rack": "r7"},
    }
    pods = [*holding(9, "a"), *holding(9, "b")]
    found = held_too_much(plan_of(changes), [node("a", rack="r7"), node("b", rack="r8")], pods)
    assert len(found) == 1
    assert "a: 9 pods" in found[0].reason
    assert "b: 9 pods" not in found[0].reason


def test_many_nodes_are_one_warning() -> None:
    hosts = {f"n{i}": {} for i in range(9)}
    changes = {
        "sharing.s": {"strategy": "timeSlicing", "replicas": 4},
        "pools[0].sharing": "s",
        "pools[0].hosts": hosts,
    }
    pods = [pod for name in hosts for pod in holding(9, name)]
    found = held_too_much(plan_of(changes), [node(name) for name in hosts], pods)
    assert len(found) == 1
    assert found[0].reason.endswith("; and 4 more.")


def as_json(pod: GpuPod, **more: Any) -> dict[str, Any]:
    space, name = pod.name.split("/")
    limits = {k: str(v) for k, v in pod.requests.items()}
    return {
        "metadata": {"namespace": space, "name": name, **more},
        "spec": {"nodeName": pod.node, "containers": [{"name": "c", "resources": {"limits": limits}}]},
        "status": {"phase": "Running"},
    }


def test_rp_50_the_look_at_the_cluster_says_so() -> None:
    """The product reads it from the API server; pods that are going do not count."""
    nine = [as_json(pod) for pod in holding(9)]
    with serving(nodes=[node()], pods=nine) as server:
        assert [d.code for d in check_in_use(plan(4), yaml.safe_dump(server.kubeconfig()), None)[1]] == ["GF490"]
    going = [as_json(pod, deletionTimestamp="2026-12-01T00:00:00Z") for pod in holding(9)]
    with serving(nodes=[node()], pods=going) as server:
        assert check_in_use(plan(4), yaml.safe_dump(server.kubeconfig()), None)[1] == []


@pytest.mark.parametrize("code", ["GF490", "GF451"])
def test_a_warning_is_told_and_stops_nothing_an_error_does(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    details = {"pool": "t4", "pods": "n1"} if code == "GF490" else {}
    monkeypatch.setattr(in_use, "check_in_use", lambda *_: (None, [finding(code, "pools[0]", value="v", **details)]))
    monkeypatch.delenv("GPUFLEET_KUBECONFIG", raising=False)
    (tmp_path / "idc.conf").write_text(
        "clusters: [{name: c}]\ncontexts: [{name: c, context: {}}]\ncurrent-context: c\n"
    )
    told_to: list[Finding] = []

    class GoesOnError(Exception):
        """The provider is registered: nothing has stopped it."""

    def provider(*_: Any, **__: Any) -> None:
        raise GoesOnError

    monkeypatch.setattr(resources.k8s, "Provider", provider)
    monkeypatch.setattr(pulumi.Output, "secret", lambda text: text)
    with pytest.raises(GoesOnError if code == "GF490" else pulumi.RunError):
        resources.deploy(plan(4), tmp_path, told_to.extend)
    assert [d.code for d in told_to] == [code]
