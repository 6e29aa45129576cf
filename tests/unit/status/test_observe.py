"""Reading a cluster: what counts as a plugin, why a pod is not ready, where the kubeconfig comes from."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from gpufleet.stackfile.model import Stack
from gpufleet.status import observe
from gpufleet.status.observe import Cluster, ObservationError, load_kubeconfig
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import MaxRetryError

from tests.unit.config.samples import compile_base

KUBECONFIG = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: []\nusers: []\n"


def container(name: str, image: str = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0") -> client.V1Container:
    return client.V1Container(name=name, image=image)


def a_pod(*containers: client.V1Container, **status: Any) -> client.V1Pod:
    ready = status.pop("ready", True)
    deleted = status.pop("deleted", None)
    return client.V1Pod(
        metadata=client.V1ObjectMeta(
            name="p",
            namespace="ns",
            labels={"gpufleet.dev/profile": "half"},
            deletion_timestamp=deleted,
            owner_references=[client.V1OwnerReference(api_version="apps/v1", kind="DaemonSet", name="ds", uid="u")],
        ),
        spec=client.V1PodSpec(
            node_name="n1",
            containers=list(containers),
            volumes=[
                client.V1Volume(name="c", config_map=client.V1ConfigMapVolumeSource(name="gpufleet-half-1")),
                client.V1Volume(name="k", config_map=client.V1ConfigMapVolumeSource(name="kube-root-ca.crt")),
                client.V1Volume(name="h", host_path=client.V1HostPathVolumeSource(path="/x")),
            ],
        ),
        status=client.V1PodStatus(
            phase=status.pop("phase", "Running"),
            conditions=[client.V1PodCondition(type="Ready", status="True" if ready else "False")],
            **status,
        ),
    )


@pytest.mark.parametrize(
    ("containers", "counts"),
    [
        ((container("nvidia-device-plugin"),), True),
        ((container("nvidia-device-plugin-ctr", "mirror/plugin:1"),), True),
        ((container("device-plugin", "projecthami/hami:v2"), container("vgpu-monitor", "projecthami/hami:v2")), True),
        ((container("gpu-feature-discovery"),), False),
        ((container("config-manager"), container("nvidia-device-plugin")), True),
        ((container("gpu-feature-discovery"), container("config-manager")), False),
        ((container("mps-control-daemon"),), False),
        ((container("mps-control-daemon-ctr"), container("config-manager")), False),
        ((container("main", "training:1"),), False),
        ((container("plugin"),), True),
    ],
)
def test_what_registers_devices(containers: tuple[client.V1Container, ...], counts: bool) -> None:
    assert observe._is_plugin(a_pod(*containers)) is counts


def test_a_pod_that_serves() -> None:
    seen = observe._pod(a_pod(container("nvidia-device-plugin")))
    assert (seen.name, seen.namespace, seen.node, seen.ready, seen.profile) == ("p", "ns", "n1", True, "half")
    assert (seen.config_maps, seen.trouble, seen.owner) == (("gpufleet-half-1",), None, "ds")


def waiting(reason: str, message: str | None = None) -> client.V1ContainerStatus:
    state = client.V1ContainerState(waiting=client.V1ContainerStateWaiting(reason=reason, message=message))
    return client.V1ContainerStatus(
        name="c",
        image="i",
        image_id="",
        ready=False,
        restart_count=0,
        state=state,
        last_state=client.V1ContainerState(),
    )


def crashed() -> client.V1ContainerStatus:
    ended = client.V1ContainerStateTerminated(exit_code=2, reason="Error", message="no driver")
    return client.V1ContainerStatus(
        name="c",
        image="i",
        image_id="",
        ready=False,
        restart_count=3,
        state=client.V1ContainerState(running=client.V1ContainerStateRunning()),
        last_state=client.V1ContainerState(terminated=ended),
    )


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        ({"container_statuses": [waiting("ImagePullBackOff", "no such tag")]}, "ImagePullBackOff: no such tag"),
        ({"container_statuses": [waiting("CrashLoopBackOff")]}, "CrashLoopBackOff"),
        ({"init_container_statuses": [waiting("ErrImagePull")]}, "ErrImagePull"),
        ({"container_statuses": [crashed()]}, "Error (exit code 2) no driver"),
        ({"container_statuses": [waiting("ContainerCreating")], "phase": "Pending"}, "phase Pending"),
        ({"phase": "Pending"}, "phase Pending"),
        ({}, None),
        ({"deleted": datetime.datetime(2026, 1, 1), "ready": True}, "being deleted"),
    ],
)
def test_why_a_pod_is_not_ready(status: dict[str, Any], trouble: str | None) -> None:
    seen = observe._pod(a_pod(container("nvidia-device-plugin"), **{"ready": False, **status}))
    assert not seen.ready
    assert seen.trouble == trouble


def test_a_pod_that_has_recovered_has_no_trouble() -> None:
    status = crashed()
    status.ready = True
    seen = observe._pod(a_pod(container("nvidia-device-plugin"), container_statuses=[status]))
    assert (seen.ready, seen.trouble) == (True, None)
    other = observe._pod(a_pod(container("nvidia-device-plugin"), container_statuses=[status], ready=False))
    assert (other.ready, other.trouble) == (False, None), "that container is not the one that is not ready"


def test_a_container_that_ended_well_is_no_trouble() -> None:
    status = crashed()
    status.last_state.terminated.exit_code = 0
    seen = observe._pod(a_pod(container("nvidia-device-plugin"), container_statuses=[status], ready=False))
    assert seen.trouble is None


def test_a_node() -> None:
    node = client.V1Node(
        metadata=client.V1ObjectMeta(name="n1", labels={"a": "b"}),
        spec=client.V1NodeSpec(taints=[client.V1Taint(key="k", effect="NoSchedule")]),
        status=client.V1NodeStatus(
            conditions=[client.V1NodeCondition(type="Ready", status="True")],
            allocatable={
                "cpu": "4",
                "memory": "1Gi",
                "nvidia.com/gpu": "8",
                "nvidia.com/odd": "1k",
                "amd.com/gpu": "1",
            },
        ),
    )
    seen = observe._node(node)
    assert (seen.name, seen.ready, seen.labels) == ("n1", True, {"a": "b"})
    assert seen.taints == (("k", "", "NoSchedule"),)
    assert seen.allocatable == {"nvidia.com/gpu": 8, "nvidia.com/odd": 0}


def test_a_node_that_has_said_nothing_yet() -> None:
    node = client.V1Node(metadata=client.V1ObjectMeta(name="n"), spec=client.V1NodeSpec(), status=client.V1NodeStatus())
    seen = observe._node(node)
    assert (seen.ready, seen.labels, seen.taints, seen.allocatable) == (False, {}, (), {})


def stack_of(base: str, changes: dict[str, Any] | None = None) -> Stack:
    stack = compile_base(base, changes).stack
    assert stack is not None
    return stack


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUFLEET_KUBECONFIG", raising=False)


def test_the_kubeconfig_of_the_stack_file_lies_beside_the_project(tmp_path: Path) -> None:
    (tmp_path / "idc.conf").write_text(KUBECONFIG)
    stack = stack_of("existing-plugin", {"cluster.kubeconfig.context": "ctx"})
    data, context = load_kubeconfig("x", stack, None, tmp_path)
    assert data["clusters"][0]["name"] == "c"
    assert context == "ctx"


def test_option_beats_environment_beats_stack_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("idc.conf", "env.conf", "option.conf"):
        (tmp_path / name).write_text(KUBECONFIG.replace("name: c,", f"name: {name},"))

    def chosen(option: Path | None) -> str:
        return str(load_kubeconfig("x", stack_of("existing-plugin"), option, tmp_path)[0]["clusters"][0]["name"])

    assert chosen(None) == "idc.conf"
    monkeypatch.setenv("GPUFLEET_KUBECONFIG", str(tmp_path / "env.conf"))
    assert chosen(None) == "env.conf"
    assert chosen(tmp_path / "option.conf") == "option.conf"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xfe", "cannot be read: it is not text"),
        (b"a: [", "it has no `clusters`"),
        (b"token: s3cr3t", "it has no `clusters`"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / "idc.conf").write_bytes(content)
    with pytest.raises(ObservationError) as error:
        load_kubeconfig("x", stack_of("existing-plugin"), None, tmp_path)
    assert says in str(error.value)
    assert "s3cr3t" not in str(error.value)


def test_without_pulumi_there_is_no_kubeconfig_of_aks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ObservationError, match="`pulumi` is not on PATH; or give --kubeconfig FILE"):
        load_kubeconfig("x", stack_of("aks-plugin"), None, tmp_path)


def _pulumi(folder: Path, script: str) -> None:
    file = folder / "pulumi"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("base", "changes", "words"),
    [
        ("aks-plugin", None, "stack output kubeconfig --show-secrets --stack prod --non-interactive"),
        (
            "existing-plugin",
            {"cluster.kubeconfig": {"secret": True}, "kubeconfig": {"secure": "v1:x"}},
            "config get gpufleet:kubeconfig --stack prod --non-interactive",
        ),
    ],
)
def test_pulumi_gives_the_kubeconfig(
    base: str, changes: dict[str, Any] | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pulumi(tmp_path, f'echo "$@" > "{tmp_path}/words"; echo "clusters: []"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert load_kubeconfig("prod", stack_of(base, changes), None, tmp_path)[0] == {"clusters": []}
    assert (tmp_path / "words").read_text().strip() == words


def test_pulumi_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _pulumi(tmp_path, "echo first >&2; echo 'error: no stack named prod' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ObservationError, match="no kubeconfig of stack prod: error: no stack named prod"):
        load_kubeconfig("prod", stack_of("aks-plugin"), None, tmp_path)


def test_a_context_that_is_not_there() -> None:
    with pytest.raises(ObservationError, match="cannot be used"):
        Cluster({"clusters": [], "contexts": [], "users": []}, "none")


class _Api:
    def __init__(self, error: Exception | None, about_maps: Exception | None = None) -> None:
        self.error, self.about_maps = error, about_maps

    def list_node(self, **_: Any) -> Any:
        if self.error:
            raise self.error
        return client.V1NodeList(
            items=[
                client.V1Node(
                    metadata=client.V1ObjectMeta(name="n1"), spec=client.V1NodeSpec(), status=client.V1NodeStatus()
                )
            ]
        )

    def list_config_map_for_all_namespaces(self, label_selector: str, **_: Any) -> Any:
        if self.about_maps:
            raise self.about_maps
        assert label_selector == "gpufleet.dev/route"
        return client.V1ConfigMapList(
            items=[client.V1ConfigMap(metadata=client.V1ObjectMeta(namespace="gpu-plugin", name="gpufleet-a-1"))]
        )

    def list_pod_for_all_namespaces(self, **_: Any) -> Any:
        return client.V1PodList(items=[a_pod(container("main", "x")), a_pod(container("nvidia-device-plugin"))])


def _cluster(error: Exception | None = None, about_maps: Exception | None = None) -> Cluster:
    cluster = object.__new__(Cluster)
    cluster._api = _Api(error, about_maps)
    return cluster


def test_one_reading() -> None:
    seen = _cluster().observe()
    assert list(seen.nodes) == ["n1"]
    assert [p.name for p in seen.pods] == ["p"], "workloads are not plugins"
    assert seen.config_maps == {("gpu-plugin", "gpufleet-a-1")}


def test_a_user_who_may_not_list_config_maps() -> None:
    assert _cluster(about_maps=ApiException(status=403)).observe().config_maps is None
    with pytest.raises(ObservationError, match="500"):
        _cluster(about_maps=ApiException(status=500)).observe()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ApiException(status=403, reason="Forbidden"), "refuses to answer: 403 Forbidden"),
        (MaxRetryError(None, "https://user:s3cr3t@host"), "does not answer: MaxRetryError"),  # type: ignore[arg-type]
        (ConnectionRefusedError(), "does not answer: ConnectionRefusedError"),
    ],
)
def test_a_server_that_does_not_answer(error: Exception, says: str) -> None:
    with pytest.raises(ObservationError) as raised:
        _cluster(error).observe()
    assert says in str(raised.value)
    assert "s3cr3t" not in str(raised.value)
