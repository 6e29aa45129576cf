"""A RuntimeClass and namespaces of somebody else: used, and still there after a destroy (RP-08)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes import client

from twin.engine import Twin, write_stack

NODE, SPACE, TEAM = "the-1", "the-gpu", "the-team"


def stack(**cluster: object) -> str:
    sections = {
        "cluster": {"kind": "existing", "name": "the", "kubeconfig": {"path": "kubeconfig"}, **cluster},
        "pools": [{"name": "t4", "hosts": {NODE: {}}, "gpu": "T4", "gpusPerNode": 1}],
        "stack": {"kind": "plugin", "namespace": SPACE, "images": {"pullSecrets": ["regcred"]}},
        "teams": [{"name": "vision", "namespace": TEAM, "pools": ["t4"], "quota": {"gpu": 1}}],
    }
    return yaml.safe_dump({"config": {f"gpufleet:{k}": v for k, v in sections.items()}})


def runtime_class(handler: str) -> client.V1RuntimeClass:
    return client.V1RuntimeClass(handler=handler, metadata=client.V1ObjectMeta(name="nvidia"))


@pytest.fixture
def there(twin: Twin, project: Path) -> Iterator[client.NodeV1Api]:
    """A class, two namespaces and a pull secret, made by an administrator."""
    twin.add_node(NODE, gpus=1, model="T4")
    api = client.NodeV1Api(twin.client())
    api.create_runtime_class(runtime_class("nvidia"))
    for name in (SPACE, TEAM):
        twin.core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name, labels={"cost": "lab"})))
    twin.core.create_namespaced_secret(SPACE, client.V1Secret(metadata=client.V1ObjectMeta(name="regcred")))
    yield api
    twin.pulumi(project, "the", "destroy")
    api.delete_runtime_class("nvidia")
    for name in (SPACE, TEAM):
        twin.core.delete_namespace(name)
    gone = {SPACE, TEAM}
    twin.wait(lambda: not gone & {n.metadata.name for n in twin.core.list_namespace().items}, 60, "namespaces are gone")
    twin.remove_node(NODE)


def test_what_is_there_is_used_and_left_behind(twin: Twin, project: Path, there: client.NodeV1Api) -> None:
    """RP-08"""
    write_stack(project, "the", stack())
    refused = twin.pulumi(project, "the", "up")
    assert refused.rc != 0 and "Traceback" not in refused.stdout
    assert all(f"namespace {name} exists" in refused.stdout for name in (SPACE, TEAM))
    assert "GF451" in refused.stdout and "cluster.existingNamespaces" in refused.stdout

    write_stack(project, "the", stack(existingNamespaces=[SPACE, TEAM]))
    twin.pulumi(project, "the", "up").require()
    twin.wait(lambda: twin.allocatable(NODE) == 1, 60, "the plugin runs, in the class that was there")
    state = json.loads(twin.pulumi(project, "the", "stack", "export").require().stdout)["deployment"]["resources"]
    assert not {"RuntimeClass", "Namespace"} & {one["type"].rpartition(":")[2] for one in state}
    labels = twin.core.read_namespace(SPACE).metadata.labels
    assert (labels["cost"], labels["pod-security.kubernetes.io/enforce"]) == ("lab", "privileged")
    assert twin.core.read_namespaced_resource_quota("gpus", TEAM)
    again = twin.pulumi(project, "the", "preview", "--expect-no-changes")
    assert again.rc == 0, again.stdout

    twin.pulumi(project, "the", "destroy").require()
    assert there.read_runtime_class("nvidia").handler == "nvidia"
    assert twin.core.read_namespaced_secret("regcred", SPACE)
    for name in (SPACE, TEAM):
        left = twin.core.read_namespace(name)
        assert left.status.phase == "Active"
        assert "pod-security.kubernetes.io/enforce" not in left.metadata.labels
        assert "gpufleet.dev/team" not in left.metadata.labels

    there.delete_runtime_class("nvidia")
    there.create_runtime_class(runtime_class("runc"))
    refused = twin.pulumi(project, "the", "up")
    assert refused.rc != 0 and "GF460" in refused.stdout and "runc" in refused.stdout
    there.delete_runtime_class("nvidia")
    there.create_runtime_class(runtime_class("nvidia"))


def test_our_own_class_is_kept_by_the_next_up(twin: Twin, project: Path, there: client.NodeV1Api) -> None:
    """The look finds it with our label, and it stays in the state until the destroy."""
    there.delete_runtime_class("nvidia")
    write_stack(project, "the", stack(existingNamespaces=[SPACE, TEAM]))
    twin.pulumi(project, "the", "up").require()
    twin.pulumi(project, "the", "up", "--expect-no-changes").require()
    assert there.read_runtime_class("nvidia")
    twin.pulumi(project, "the", "destroy").require()
    with pytest.raises(client.ApiException):
        there.read_runtime_class("nvidia")
    there.create_runtime_class(runtime_class("nvidia"))
