"""A method from one module and a kind of cluster from one folder go through everything, and no other file is edited."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pytest
from gpufleet.compiled import Compiled, compile_source
from gpufleet.findings import registry
from gpufleet.places.base import unregister
from gpufleet.plan.model import Plan
from gpufleet.plan.render import render
from gpufleet.stackfile.kinds import remove_method
from gpufleet.stackfile.schema import stack_schema
from gpufleet.stackfile.source import parse
from gpufleet.status.compare import compare
from gpufleet.status.observed import Observed, ObservedNode, OperandPod

from tests.component.recording import run

HALVES = """\
config:
  gpufleet:cluster: {kind: existing, name: idc, kubeconfig: {path: idc.conf}}
  gpufleet:pools: [{name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 2, sharing: half}]
  gpufleet:stack: {kind: plugin}
  gpufleet:sharing: {half: {strategy: halves, patienceSeconds: 5}}
  gpufleet:teams: [{name: vision, namespace: vision, pools: [t4], quota: {gpu: 4}}]
"""
RACK = """\
config:
  gpufleet:cluster: {kind: rack, name: r1, door: north}
  gpufleet:pools: [{name: low, shelf: 2, nodes: 3, gpu: T4, sharing: quarter}]
  gpufleet:stack: {kind: plugin}
  gpufleet:sharing: {quarter: {strategy: timeSlicing, replicas: 4}}
  gpufleet:teams: [{name: vision, namespace: vision, pools: [low]}]
"""


def forget(prefix: str) -> None:
    for name in [name for name in sys.modules if name.startswith(prefix)]:
        del sys.modules[name]


@pytest.fixture
def halves() -> Iterator[None]:
    importlib.import_module("tests.made_up.method")
    yield
    remove_method("halves")
    forget("tests.made_up.method")


@pytest.fixture
def rack(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_rules", dict(registry._rules))
    monkeypatch.setattr(registry, "_checks", {scope: list(found) for scope, found in registry._checks.items()})
    importlib.import_module("tests.made_up.rack")
    yield
    unregister("rack")
    forget("tests.made_up.rack")


def compiled(text: str) -> Compiled:
    return compile_source("test", *parse(text, "stacks/Pulumi.test.yaml"))


def plan_of(text: str) -> Plan:
    found = compiled(text)
    assert found.plan is not None, found.found
    return found.plan


def codes(text: str) -> list[tuple[str, str]]:
    return [(d.code, d.path) for d in compiled(text).found]


def test_a_method_is_read_and_checked(halves: None) -> None:
    assert codes(HALVES) == []
    hasty = HALVES.replace("patienceSeconds: 5", "patienceSeconds: 0")
    assert codes(hasty) == [("GF105", "sharing.half.patienceSeconds")]
    promised = HALVES.replace("patienceSeconds: 5", "memoryPerPodGib: 12.5")
    assert codes(promised) == [("GF307", "pools[0].sharing")]  # more than half of 15 GiB
    assert "Halves" in stack_schema()["$defs"]


def test_a_method_is_planned_and_predicted(halves: None) -> None:
    plan = plan_of(HALVES)
    (pool,) = plan.pools
    assert pool.node.resources == {"nvidia.com/gpu.shared": 4}
    assert pool.node.memory_per_pod_gib == 7.5
    assert pool.labels["halves.example.com/watch"] == "true"
    assert plan.teams[0].quota == {"requests.nvidia.com/gpu.shared": "4"}
    text = render("test", plan, ())
    assert "nvidia.com/gpu.shared: 4" in text and "Watcher of halves 1.2.3, namespace halves" in text
    assert plan.as_dict()["halves"]["version"] == "1.2.3"


def test_a_method_is_deployed(halves: None) -> None:
    seen = run(HALVES)
    assert seen.error is None
    (daemon_set,) = seen.of("DaemonSet")
    env = daemon_set.inputs["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "HALVES", "value": "on"} in env
    release = seen.one("Release")
    assert (release.inputs["name"], release.inputs["values"]) == ("halves-watcher", {"settings": "halves-settings"})
    maps = {r.name: r.inputs["data"] for r in seen.of("ConfigMap")}
    assert maps["halves-settings"] == {"pools": "t4"} and len(maps) == 2
    assert seen.one("NodePatch").inputs["metadata"]["labels"]["halves.example.com/watch"] == "true"


def test_a_method_is_looked_for(halves: None) -> None:
    plan = plan_of(HALVES)
    assert plan.plugin is not None
    (pool,) = plan.pools
    node = ObservedNode("n1", True, dict(pool.node.labels), (), {"nvidia.com/gpu.shared": 4})
    config_map = plan.plugin.daemon_sets[0].config_map.name
    pod = OperandPod("p", plan.plugin.namespace, "n1", True, config_maps=(config_map,))
    assert compare(plan, Observed({"n1": node}, (pod,))).agrees
    less = ObservedNode("n1", True, dict(pool.node.labels), (), {"nvidia.com/gpu.shared": 2})
    assert not compare(plan, Observed({"n1": less}, (pod,))).agrees


def test_without_its_module_a_method_is_unknown() -> None:
    assert ("GF103", "sharing.half.strategy") in codes(HALVES)


def test_a_kind_of_cluster_is_read_and_checked(rack: None) -> None:
    assert codes(RACK) == []
    window = RACK.replace("door: north", "window: north")
    assert codes(window) == [("GF102", "cluster.door"), ("GF101", "cluster.window")]
    assert codes(RACK.replace("shelf: 2", "shelf: 12")) == [("GF299", "pools[0].shelf")]
    assert codes(RACK.replace("gpu: T4,", "gpu: T4, driver: operator,")) == [("GF103", "pools[0].driver")]
    assert codes(RACK.replace("kind: rack, ", "")) == [("GF102", "cluster.kind")]  # guessed by what its pools have


def test_a_kind_of_cluster_is_planned(rack: None) -> None:
    plan = plan_of(RACK)
    (pool,) = plan.pools
    assert (pool.node.resources, pool.node_count) == ({"nvidia.com/gpu": 8}, (3, 3))
    assert pool.taints == ("rack.example.com/shelf=2:NoSchedule",)
    text = render("test", plan, ())
    assert "stack test: rack r1, plugin route" in text and "  shelf       2" in text and "the rack brings it" in text
    assert plan.as_dict()["cluster"] == {"kind": "rack", "name": "r1", "version": None, "door": "north"}


def test_a_kind_of_cluster_is_deployed(rack: None) -> None:
    seen = run(RACK)
    assert seen.error is None
    assert seen.exports["door"] == "north"
    assert seen.exports["pools"]["low"]["shelf"] == 2
    component = seen.one("Rack")
    assert seen.one("DaemonSet").deleted_with == component.urn
    tolerations = seen.one("DaemonSet").inputs["spec"]["template"]["spec"]["tolerations"]
    assert tolerations == [
        {"key": "rack.example.com/shelf", "operator": "Equal", "value": "2", "effect": "NoSchedule"}
    ]


def test_a_kind_of_cluster_is_looked_for(rack: None) -> None:
    plan = plan_of(RACK)
    assert plan.plugin is not None
    labels, taint = dict(plan.pools[0].node.labels), ("rack.example.com/shelf", "2", "NoSchedule")
    nodes = {n: ObservedNode(n, True, labels, (taint,), {"nvidia.com/gpu": 8}) for n in ("a", "b", "c")}
    config_map = plan.plugin.daemon_sets[0].config_map.name
    pods = tuple(OperandPod(n, plan.plugin.namespace, n, True, config_maps=(config_map,)) for n in nodes)
    assert compare(plan, Observed(nodes, pods)).agrees
    nodes.pop("c")
    assert compare(plan, Observed(nodes, pods)).causes == ("pool low: 2 of at least 3 nodes are there",)


def test_without_its_folder_a_kind_of_cluster_is_unknown() -> None:
    assert ("GF103", "cluster.kind") in codes(RACK)
