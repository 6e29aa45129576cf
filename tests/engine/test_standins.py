"""The stand-ins under the real engine, with programs of their own: what the product's tests take for granted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from twin.azure.service import Service
from twin.azure.store import Store
from twin.engine import Result, Twin

PROGRAM = '''
import base64, json, os
import pulumi
import pulumi_kubernetes as k8s
from pulumi_azure_native import containerservice as cs, resources
spec = json.loads(os.environ["SPEC"])
group = resources.ResourceGroup("group", resource_group_name="rg-standins", location="eastus")
cluster = cs.ManagedCluster("cluster", resource_name_="standins", resource_group_name=group.name, location="eastus",
    dns_prefix="s", identity={"type": "SystemAssigned"}, kubernetes_version="1.36", tags=spec.get("tags"),
    agent_pool_profiles=[{"name": "system", "mode": "System", "vm_size": "Standard_D4s_v5", "count": 1}])
pools = [cs.AgentPool(name, agent_pool_name=name, resource_group_name=group.name, resource_name_=cluster.name, **args)
         for name, args in spec.get("pools", {}).items()]
found = cs.list_managed_cluster_user_credentials_output(resource_group_name=group.name, resource_name=cluster.name)
kubeconfig = pulumi.Output.secret(found.kubeconfigs[0].value.apply(lambda text: base64.b64decode(text).decode()))
provider = k8s.Provider("provider", kubeconfig=kubeconfig, cluster_identifier="standins",
    opts=pulumi.ResourceOptions(depends_on=pools, deleted_with=cluster))
if "chart" in spec:
    k8s.helm.v3.Release("operator", name="gpu-operator", namespace="gpu-operator", create_namespace=True, atomic=True,
        timeout=900, chart=spec["chart"], values=spec["values"],
        opts=pulumi.ResourceOptions(provider=provider, deleted_with=cluster))
'''
CHART = Path(__file__).parents[2] / "twin" / "chart" / "gpu-operator"
T4: dict[str, Any] = {"vm_size": "Standard_NC4as_T4_v3", "count": 1, "mode": "User",
                      "node_taints": ["sku=gpu:NoSchedule"]}
POOL_ID = ("/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-standins/providers/"
           "Microsoft.ContainerService/managedClusters/standins/agentPools/t4")


class Stack:
    """A program of the test in a project of its own, with the stand-in's state, log and control file beside it."""

    def __init__(self, twin: Twin, folder: Path) -> None:
        self.twin, self.folder = twin, folder
        folder.mkdir()
        (folder / "Pulumi.yaml").write_text("name: standins\nruntime: python\n")
        (folder / "__main__.py").write_text(PROGRAM)
        self.service = Service(Store(folder / "azure.json"), lambda: None)

    def run(self, *command: str, **spec: Any) -> Result:
        files = {"TWIN_AZURE_STATE": "azure.json", "TWIN_AZURE_LOG": "log", "TWIN_AZURE_CONTROL": "control.json"}
        env = {key: str(self.folder / name) for key, name in files.items()}
        return self.twin.pulumi(self.folder, "dev", *command, SPEC=json.dumps(spec), **env)

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]

    def fail(self, **entry: Any) -> None:
        (self.folder / "control.json").write_text(json.dumps({"fail": [entry]}))

    def nodes(self, pool: str) -> list[Any]:
        return [node for node in self.twin.core.list_node().items if node.metadata.name.startswith(f"aks-{pool}-")]


@pytest.fixture
def stack(twin: Twin, tmp_path: Path) -> Iterator[Stack]:
    made = Stack(twin, tmp_path / "standins")
    yield made
    made.run("destroy").require()
    assert made.service.store.read()["resources"] == {}
    assert not [node.metadata.name for node in twin.core.list_node().items if node.metadata.name.startswith("aks-")]


def test_failures_of_the_service_and_recovery(stack: Stack) -> None:
    stack.fail(op="create", type="AgentPool", name="t4", code="AllocationFailed")
    failed = stack.run("up", pools={"t4": T4})
    assert failed.rc != 0
    assert 'Code="AllocationFailed"' in failed.stdout
    assert "Traceback" not in failed.stdout + failed.stderr
    assert not stack.nodes("t4")

    stack.fail(op="create", type="AgentPool", name="t4", code="QuotaExceeded", leaves="failed")
    half = stack.run("up", pools={"t4": T4})
    assert half.rc != 0
    assert 'Code="QuotaExceeded"' in half.stdout
    stack.run("up", pools={"t4": T4}).require()
    assert [entry["op"] for entry in stack.log() if entry["type"] == "AgentPool" and entry["op"] != "read"] == [
        "create", "create", "update"]
    assert len(stack.nodes("t4")) == 1
    stack.run("up", "--expect-no-changes", pools={"t4": T4}).require()


def test_changes_behind_the_back_show_in_a_refresh(stack: Stack) -> None:
    stack.run("up", pools={"t4": T4}).require()
    stack.run("refresh", "--expect-no-changes", pools={"t4": T4}).require()
    body = {"resourceGroupName": "rg-standins", "resourceName": "standins", "agentPoolName": "t4",
            "vmSize": "Standard_NC4as_T4_v3", "count": 1, "mode": "User", "nodeTaints": ["other=1:NoSchedule"]}
    stack.service.put("AgentPool", body, create=False)
    assert stack.run("refresh", "--expect-no-changes", pools={"t4": T4}).rc != 0
    preview = stack.run("preview", "--diff", pools={"t4": T4}).require()
    assert "nodeTaints" in preview.stdout
    stack.run("up", pools={"t4": T4}).require()
    assert stack.service.get(POOL_ID)["nodeTaints"] == ["sku=gpu:NoSchedule"]  # type: ignore[index]
    stack.service.delete(POOL_ID, force=True)
    stack.run("refresh", pools={"t4": T4}).require()
    again = stack.run("up", pools={"t4": T4}).require()
    assert "+ 1 created" in again.stdout


def test_a_size_change_deletes_first_and_a_driver_change_is_refused(stack: Stack) -> None:
    stack.run("up", pools={"t4": T4}).require()
    driver = stack.run("up", pools={"t4": {**T4, "gpu_profile": {"driver": "None"}}})
    assert driver.rc != 0
    assert "Changing property 'properties.gpuProfile.driver' is not allowed" in driver.stdout
    stack.run("up", pools={"t4": {**T4, "vm_size": "Standard_NC8as_T4_v3"}}).require()
    ops = [entry["op"] for entry in stack.log() if entry["type"] == "AgentPool" and entry["op"] != "read"]
    assert ops == ["create", "update", "delete", "create"]
    [node] = stack.nodes("t4")
    assert node.metadata.labels["node.kubernetes.io/instance-type"] == "Standard_NC8as_T4_v3"


def test_a_destroy_after_the_cluster_is_gone(stack: Stack) -> None:
    stack.run("up", pools={"t4": T4}).require()
    stack.service.kube = lambda: _client(stack)  # type: ignore[assignment]
    stack.service.delete(POOL_ID.rpartition("/agentPools/")[0], force=True)
    assert not stack.nodes("t4")


def _client(stack: Stack) -> Any:
    from twin.advertiser.kube import Kube

    return Kube(str(stack.twin.kubeconfig))


def test_unknown_properties_are_refused_before_anything_changes(stack: Stack) -> None:
    refused = stack.run("preview", pools={"t4": {**T4, "gpu_profile": {"drivr": "None"}}})
    assert refused.rc != 0
    assert "did you mean 'gpuProfile.driver'?" in refused.stdout


def test_the_operator_chart_installs_upgrades_and_advertises(stack: Stack) -> None:
    tolerations = [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]
    config = {"create": True, "name": "sharing-a", "default": "four", "data": {"four": _sharing(4)}}
    values: dict[str, Any] = {
        "daemonsets": {"tolerations": tolerations}, "node-feature-discovery": {"worker": {"tolerations": tolerations}},
        "devicePlugin": {"config": config}}
    pools = {"t4": {**T4, "gpu_profile": {"driver": "None"}},
             "h100": {**T4, "vm_size": "Standard_NC40ads_H100_v5", "gpu_profile": {"driver": "Install"}}}
    wrong = stack.run("up", pools=pools, chart=str(CHART), values={**values, "driver": {"versoin": "580.1"}})
    assert wrong.rc != 0
    assert "versoin" in wrong.stdout
    stack.run("up", pools=pools, chart=str(CHART), values=values).require()
    names = {pool: stack.nodes(pool)[0].metadata.name for pool in pools}
    for name in names.values():
        stack.twin.wait(lambda name=name: stack.twin.allocatable(name) == 4, 30, f"4 GPUs on {name}")
    labels = stack.twin.core.read_node(names["h100"]).metadata.labels
    assert labels["nvidia.com/gpu.deploy.driver"] == "pre-installed"
    assert labels["nvidia.com/gpu.deploy.mig-manager"] == "true"
    changed = {**config, "name": "sharing-b", "data": {"four": _sharing(6)}}
    stack.run("up", pools=pools, chart=str(CHART), values={**values, "devicePlugin": {"config": changed}}).require()
    hook = [one for one in stack.twin.core.list_namespaced_event("gpu-operator").items
            if one.involved_object.name == "gpu-operator-upgrade-crd"]
    assert "Completed" in {one.reason for one in hook}
    for name in names.values():
        stack.twin.wait(lambda name=name: stack.twin.allocatable(name) == 6, 30, f"6 GPUs on {name}")


def _sharing(replicas: int) -> str:
    return f"version: v1\nsharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: {replicas}}}]}}}}\n"
