"""`gpufleet status` on a real API server: causes come first for their node; pods that hold too much are named."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.status.compare import Status, compare
from gpufleet.status.observe import Cluster
from gpufleet.status.render import render
from kubernetes import client

from tests.engine.workloads import gpu_pod, remove_all, running, start
from tests.status_causes import CAUSES, NAMESPACE, NODE, SHARED, Made, made
from twin.controlplane import CHECKOUT
from twin.engine import Twin, write_stack

CRD = CHECKOUT / "twin" / "chart" / "gpu-operator" / "crds" / "clusterpolicies.yaml"
MERGE = "application/merge-patch+json"


def _status(core: client.CoreV1Api, path: str, one: dict[str, Any]) -> None:
    """Sets the status as a kubelet or an operator would."""
    api = core.api_client
    config = api.configuration
    answer = api.rest_client.pool_manager.request(
        "PATCH", f"{config.host}{path}/status", body=json.dumps({"status": one["status"]}),
        headers={"Content-Type": MERGE, **{a["key"]: a["value"] for a in config.auth_settings().values()}},
    )  # fmt: skip
    assert answer.status == 200, answer.data


def _create(twin: Twin, cluster: Made) -> None:
    core = twin.core
    core.create_node({k: v for k, v in cluster.node.items() if k != "status"})
    _status(core, f"/api/v1/nodes/{NODE}", cluster.node)
    core.create_namespaced_config_map(NAMESPACE, cluster.config_map)
    for one in (*cluster.pods.values(), *cluster.workloads):
        space, name = one["metadata"]["namespace"], one["metadata"]["name"]
        core.create_namespaced_pod(space, {k: v for k, v in one.items() if k != "status"})
        _status(core, f"/api/v1/namespaces/{space}/pods/{name}", one)
    custom = client.CustomObjectsApi(core.api_client)
    custom.create_cluster_custom_object("nvidia.com", "v1", "clusterpolicies", cluster.policy)
    name = cluster.policy["metadata"]["name"]
    _status(core, f"/apis/nvidia.com/v1/clusterpolicies/{name}", cluster.policy)


def _remove(twin: Twin, cluster: Made) -> None:
    core = twin.core
    for one in (*cluster.pods.values(), *cluster.workloads):
        with contextlib.suppress(client.ApiException):
            core.delete_namespaced_pod(one["metadata"]["name"], one["metadata"]["namespace"], grace_period_seconds=0)
    with contextlib.suppress(client.ApiException):
        core.delete_namespaced_config_map(cluster.config_map["metadata"]["name"], NAMESPACE)
    custom = client.CustomObjectsApi(core.api_client)
    with contextlib.suppress(client.ApiException):
        name = cluster.policy["metadata"]["name"]
        custom.delete_cluster_custom_object("nvidia.com", "v1", "clusterpolicies", name)
    twin.remove_node(NODE)


@pytest.fixture(scope="module")
def ground(twin: Twin) -> Iterator[Twin]:
    """The operator's namespace and its kind of object."""
    extensions = client.ApiextensionsV1Api(twin.client())
    with contextlib.suppress(client.ApiException):  # a chart of another test has brought it
        extensions.create_custom_resource_definition(yaml.safe_load(CRD.read_text()))
    with contextlib.suppress(client.ApiException):
        twin.core.create_namespace({"metadata": {"name": NAMESPACE}})
    custom = client.CustomObjectsApi(twin.client())
    twin.wait(
        lambda: custom.list_cluster_custom_object("nvidia.com", "v1", "clusterpolicies"), 20, "the kind is served"
    )
    for space in (NAMESPACE, "default"):
        twin.wait(lambda s=space: twin.core.read_namespaced_service_account("default", s), 30, "pods may be made")
    yield twin
    twin.core.delete_namespace(NAMESPACE)


def _seen(twin: Twin, cluster: Made) -> Status:
    _create(twin, cluster)
    try:
        config = yaml.safe_load(twin.kubeconfig.read_text())
        return compare(cluster.plan, Cluster(config, None, print).observe())
    finally:
        _remove(twin, cluster)


def test_a_cluster_as_declared_agrees(ground: Twin) -> None:
    assert [n.causes for n in _seen(ground, made(SHARED)).nodes] == [()]


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_is_the_first_line_of_its_node(ground: Twin, name: str) -> None:
    stack, goes_wrong, first = CAUSES[name]
    cluster = made(stack)
    goes_wrong(cluster)
    status = _seen(ground, cluster)
    lines = [line for line in render(status).splitlines() if line.startswith(f"{NODE}: ")]
    assert lines[0].startswith(f"{NODE}: {first}"), lines
    assert not status.agrees


STACK = """\
config:
  gpufleet:cluster: {{kind: existing, name: held, site: held, kubeconfig: {{path: kubeconfig}}}}
  gpufleet:pools: [{{name: held, hosts: {{held-1: {{}}}}, gpu: T4, gpusPerNode: 1, sharing: s}}]
  gpufleet:stack: {{kind: plugin, namespace: held-plugin}}
  gpufleet:sharing: {{s: {{strategy: timeSlicing, replicas: {replicas}, renameByDefault: {rename}}}}}
"""


@pytest.fixture
def held(twin: Twin) -> Iterator[None]:
    twin.add_node("held-1", gpus=1, model="T4")
    yield
    remove_all(twin)
    twin.remove_node("held-1")


def _lines(twin: Twin, project: Path) -> int:
    return twin.gpufleet(project, "status", "-s", "held").stdout.count("held-1: ")


def test_rp_50_pods_from_before_a_change_are_named(twin: Twin, project: Path, held: None) -> None:
    """Nine pods on ten shares; then four shares, then another name: named before `up`, and by status after it."""
    write_stack(project, "held", STACK.format(replicas=10, rename="false"))
    twin.pulumi(project, "held", "up").require()
    assert twin.gpufleet(project, "status", "-s", "held", "--wait", "60").rc == 0
    start(twin, *(gpu_pod(f"notebook-{i}", pool="held") for i in range(9)))
    twin.wait(lambda: len(running(twin)) == 9, 30, "nine pods run")
    assert twin.gpufleet(project, "status", "-s", "held").rc == 0

    for replicas, rename, says in (
        (4, "false", "9 pods hold 9 nvidia.com/gpu, and the pool offers 4 on a node: default/notebook-0"),
        (4, "true", "9 pods hold nvidia.com/gpu, which the pool no longer offers: default/notebook-0"),
    ):
        write_stack(project, "held", STACK.format(replicas=replicas, rename=rename))
        preview = twin.pulumi(project, "held", "preview").require()
        assert "GF490" in preview.stdout
        assert f"held-1: {says}" in " ".join(preview.stdout.split())
        twin.pulumi(project, "held", "up").require()
        offered = {"false": "nvidia.com/gpu", "true": "nvidia.com/gpu.shared"}[rename]
        twin.wait(lambda name=offered: twin.allocatable("held-1", name) == 4, 60, "the new offer")
        twin.wait(
            lambda: twin.gpufleet(project, "status", "-s", "held").stdout.count("held-1: ") == 1, 30, "it settles"
        )
        status = twin.gpufleet(project, "status", "-s", "held")
        assert (status.rc, f"held-1: {says}" in status.stdout) == (1, True), status.stdout

    remove_all(twin)
    assert twin.gpufleet(project, "status", "-s", "held", "--wait", "30").rc == 0
    twin.pulumi(project, "held", "destroy").require()
