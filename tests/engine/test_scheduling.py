"""Each plugin pod runs on every node it belongs on, and on no other: tainted, spot and custom-tainted pools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes import client

from tests.engine.workloads import gpu_pod, plugin_pods, remove_all, running, start, unschedulable
from twin.engine import Twin, write_stack

AKS = """\
config:
  gpufleet:cluster: {kind: aks, name: sched, location: eastus, version: "1.36"}
  gpufleet:pools:
    - {name: plain, vmSize: Standard_NC4as_T4_v3, count: 1, sharing: two}
    - {name: sku, vmSize: Standard_NC4as_T4_v3, count: 2, taints: ["sku=gpu:NoSchedule"], sharing: two}
    - name: spot
      vmSize: Standard_NC4as_T4_v3
      spot: true
      autoscale: {min: 1, max: 3}
      taints: ["sku=gpu:NoSchedule", "example.com/team=vision:NoExecute"]
      sharing: four
    - {name: bare, vmSize: Standard_NC4as_T4_v3, count: 1, driver: none, taints: ["sku=gpu:NoSchedule"]}
  gpufleet:stack: {kind: plugin}
  gpufleet:sharing:
    two: {strategy: timeSlicing, replicas: 2}
    four: {strategy: timeSlicing, replicas: 4, renameByDefault: true}
  gpufleet:teams:
    - {name: vision, namespace: vision, pools: [plain, sku], group: vision, quota: {gpu: 3}}
  gpufleet:acknowledge:
    GF205: nodes for a driver under test
"""


def nodes_of(twin: Twin, pool: str) -> set[str]:
    return {n.metadata.name for n in twin.core.list_node(label_selector=f"gpufleet.dev/pool={pool}").items}


def test_plugin_pods_on_aks_pools(twin: Twin, project: Path) -> None:
    write_stack(project, "sched", AKS)
    twin.add_node("stranger", gpus=1, model="T4")
    twin.pulumi(project, "sched", "up").require()
    status = twin.gpufleet(project, "status", "-s", "sched", "--wait", "60")
    assert status.rc == 0, status.stdout + status.stderr

    wanted = {p: nodes_of(twin, p) for p in ("plain", "sku", "spot", "bare")}
    assert [len(wanted[p]) for p in ("plain", "sku", "spot", "bare")] == [1, 2, 1, 1]
    pods = plugin_pods(twin)
    assert set(pods) == wanted["plain"] | wanted["sku"] | wanted["spot"]
    by_profile = {
        profile: {n for n, p in pods.items() if p.metadata.labels["gpufleet.dev/profile"] == profile}
        for profile in ("two", "four")
    }
    assert by_profile == {"two": wanted["plain"] | wanted["sku"], "four": wanted["spot"]}
    spot = next(iter(wanted["spot"]))
    assert twin.allocatable(spot, "nvidia.com/gpu.shared") == 4
    assert twin.allocatable(spot, "nvidia.com/gpu") == 0

    # a second up sees the spot taint and label that AKS has added as no change
    twin.pulumi(project, "sched", "up", "--expect-no-changes").require()

    # the team's quota counts devices as its pods ask for them
    start(twin, *(gpu_pod(f"v{i}", pool="plain" if i < 2 else "sku", taints=("sku=gpu:NoSchedule",)) for i in range(3)),
          namespace="vision")  # fmt: skip
    twin.wait(lambda: len(running(twin, "vision")) == 3, 30, "three pods of the team run")
    with pytest.raises(client.ApiException) as refusal:
        start(twin, gpu_pod("v3", pool="sku", taints=("sku=gpu:NoSchedule",)), namespace="vision")
    assert refusal.value.status == 403
    assert "exceeded quota" in refusal.value.body

    # the bench's Job knows the way to a pool with taints, a spot taint among them, and a renamed resource
    printed = twin.gpufleet(project, "bench", "--job", "--stack", "sched", "--pool", "spot")
    assert printed.rc == 0, printed.stderr
    config, job = yaml.safe_load_all(printed.stdout)
    twin.core.create_namespaced_config_map("default", config)
    batch = client.BatchV1Api(twin.core.api_client)
    batch.create_namespaced_job("default", job)
    twin.wait(lambda: batch.read_namespaced_job("gpufleet-bench", "default").status.succeeded == 1, 60, "it ends")
    measured = twin.core.list_namespaced_pod("default", label_selector="job-name=gpufleet-bench").items
    assert [pod.spec.node_name for pod in measured] == [spot]
    batch.delete_namespaced_job("gpufleet-bench", "default", propagation_policy="Foreground")
    twin.core.delete_namespaced_config_map(config["metadata"]["name"], "default")

    twin.pulumi(project, "sched", "destroy").require()
    twin.remove_node("stranger")
    assert not any(nodes_of(twin, p) for p in wanted)


HOSTS = """\
config:
  gpufleet:cluster: {kind: existing, name: exp, site: exp, kubeconfig: {path: kubeconfig, context: twin}}
  gpufleet:pools:
    - name: byname
      hosts: {exp-a: {}, exp-d: {}}
      gpu: T4
      gpusPerNode: 1
      taints: ["example.com/gpu=t4:NoSchedule"]
      sharing: two
    - {name: bylabel, nodeSelector: {rack: r7}, taints: ["vendor.example/gpu:NoExecute"], gpu: A30, gpusPerNode: 4}
  gpufleet:stack: {kind: plugin, namespace: exp-plugin}
  gpufleet:sharing:
    two: {strategy: timeSlicing, replicas: 2}
"""


@pytest.fixture
def machines(twin: Twin) -> Iterator[None]:
    twin.add_node("exp-a", labels={"owner": "somebody"}, gpus=1, model="T4")
    twin.add_node("exp-d", gpus=1, model="T4")
    twin.add_node("exp-b", labels={"rack": "r7"}, taints=["vendor.example/gpu:NoExecute"], gpus=4, model="A30")
    twin.add_node("exp-c", labels={"rack": "r8"}, gpus=4, model="A30")
    yield
    remove_all(twin)
    for name in ("exp-a", "exp-b", "exp-c", "exp-d"):
        twin.remove_node(name)


def test_plugin_pods_on_named_and_selected_nodes(twin: Twin, project: Path, machines: None) -> None:
    write_stack(project, "exp", HOSTS)
    twin.pulumi(project, "exp", "up").require()
    status = twin.gpufleet(project, "status", "-s", "exp", "--wait", "60")
    assert status.rc == 0, status.stdout + status.stderr
    assert set(plugin_pods(twin, "exp-plugin")) == {"exp-a", "exp-b", "exp-d"}
    assert twin.allocatable("exp-a") == 2
    assert twin.allocatable("exp-b") == 4

    # pods without the toleration stay away from the tainted node, pods with it run there
    tolerating = gpu_pod("with", pool="byname", taints=("example.com/gpu=t4:NoSchedule",))
    start(twin, tolerating, gpu_pod("without", pool="byname"))
    twin.wait(lambda: running(twin) == {"with"}, 20, "the tolerating pod runs")
    twin.wait(lambda: unschedulable(twin, "without"), 20, "the other one fits nowhere")

    # somebody cordons the node: nothing of ours is lost, and the next up leaves the cordon alone
    twin.core.patch_node("exp-a", {"spec": {"unschedulable": True}})
    twin.pulumi(project, "exp", "up").require()
    node = twin.core.read_node("exp-a")
    assert node.spec.unschedulable
    assert "example.com/gpu" in {t.key for t in node.spec.taints}
    twin.core.patch_node("exp-a", {"spec": {"unschedulable": None}})

    # a taint that nobody declared repels the plugin, and status says which
    taints = [t.to_dict() for t in twin.core.read_node("exp-b").spec.taints] + [{"key": "rogue", "effect": "NoExecute"}]
    twin.core.patch_node("exp-b", {"spec": {"taints": [{k: v for k, v in t.items() if v} for t in taints]}})
    twin.wait(lambda: "exp-b" not in plugin_pods(twin, "exp-plugin"), 30, "the plugin pod is evicted")
    status = twin.gpufleet(project, "status", "-s", "exp", "--wait", "2")
    assert status.rc == 1
    assert "exp-b: no plugin pod: taint rogue:NoExecute is not tolerated" in status.stdout

    twin.pulumi(project, "exp", "destroy").require()
    # Kubernetes keeps the taints of a node as one list: a cordon made the control plane its co-owner on exp-a, and
    # what two own stays when one lets go (docs/existing-clusters.md). On exp-d nobody else wrote it.
    node = twin.core.read_node("exp-d")
    assert not [t for t in node.spec.taints or () if not t.key.startswith("node.kubernetes.io/")]
    assert "gpufleet.dev/pool" not in node.metadata.labels
    node = twin.core.read_node("exp-a")
    assert node.metadata.labels["owner"] == "somebody"
    assert "gpufleet.dev/pool" not in node.metadata.labels
