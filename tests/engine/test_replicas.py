"""The promise: the declared sharing is what the nodes offer, and a change reaches exactly what it concerns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.workloads import gpu_pod, plugin_pods, remove_all, running, start, unschedulable
from twin.engine import Twin, write_stack

STACK = """\
config:
  gpufleet:cluster: {{kind: existing, name: rep, site: rep, kubeconfig: {{path: kubeconfig}}}}
  gpufleet:pools:
    - name: one
      hosts: {{rep-one: {{}}}}
      gpu: T4
      gpusPerNode: 1
      taints: ["sku=gpu:NoSchedule"]
      sharing: notebooks
    - {{name: two, hosts: {{rep-two: {{}}}}, gpu: A10, gpusPerNode: 2, sharing: inference}}
  gpufleet:stack: {{kind: plugin, namespace: rep-plugin}}
  gpufleet:sharing:
    notebooks: {{strategy: timeSlicing, replicas: {replicas}}}
    inference: {{strategy: timeSlicing, replicas: 2}}
"""


@pytest.fixture
def nodes(twin: Twin) -> Iterator[None]:
    twin.add_node("rep-one", gpus=1, model="T4")
    twin.add_node("rep-two", gpus=2, model="A10")
    yield
    remove_all(twin)
    twin.remove_node("rep-one")
    twin.remove_node("rep-two")


def test_four_pods_run_the_fifth_waits_for_eight_replicas(twin: Twin, project: Path, nodes: None) -> None:
    write_stack(project, "rep", STACK.format(replicas=4))
    twin.pulumi(project, "rep", "up").require()
    status = twin.gpufleet(project, "status", "-s", "rep", "--wait", "60")
    assert status.rc == 0, status.stdout + status.stderr

    start(twin, *(gpu_pod(f"p{i}", pool="one", taints=("sku=gpu:NoSchedule",)) for i in range(5)))
    start(twin, gpu_pod("other", pool="two"))
    twin.wait(lambda: len(running(twin)) == 5, 30, "four pods on the one-GPU node and one on the other")
    waiting = {f"p{i}" for i in range(5)} - running(twin)
    assert len(waiting) == 1
    twin.wait(lambda: unschedulable(twin, next(iter(waiting))), 20, "the fifth pod fits nowhere")

    workload = {p.metadata.name: p.metadata.uid for p in twin.core.list_namespaced_pod("default").items}
    before = plugin_pods(twin, "rep-plugin")
    write_stack(project, "rep", STACK.format(replicas=8))
    up = twin.pulumi(project, "rep", "up", "--json").require()
    changed = {
        (e["resourcePreEvent"]["metadata"]["op"], e["resourcePreEvent"]["metadata"]["urn"].split("::")[-1])
        for e in map(json.loads, up.stdout.splitlines())
        if "resourcePreEvent" in e and e["resourcePreEvent"]["metadata"]["op"] != "same"
    }
    names = sorted(name.rsplit("-", 1)[0] if op != "update" else name for op, name in changed)
    assert names == ["gpufleet-notebooks", "gpufleet-notebooks", "gpufleet-plugin-notebooks"], changed
    assert {op for op, _ in changed} == {"create", "update", "delete"}

    status = twin.gpufleet(project, "status", "-s", "rep", "--wait", "60", "--json")
    assert status.rc == 0, status.stdout
    offered = {n["node"]: n["observed"] for n in json.loads(status.stdout)["nodes"]}
    assert offered == {"rep-one": {"nvidia.com/gpu": 8}, "rep-two": {"nvidia.com/gpu": 4}}
    twin.wait(lambda: running(twin) >= waiting, 30, "the fifth pod runs")

    after = plugin_pods(twin, "rep-plugin")
    assert after["rep-one"].metadata.uid != before["rep-one"].metadata.uid
    assert after["rep-two"].metadata.uid == before["rep-two"].metadata.uid
    now = {p.metadata.name: p.metadata.uid for p in twin.core.list_namespaced_pod("default").items}
    assert now == workload

    twin.pulumi(project, "rep", "destroy").require()
