"""Reading a cluster: which pods count, why a pod is not ready, pages and watches, where the kubeconfig comes from."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpufleet.places import cluster_api
from gpufleet.stackfile.model import Stack
from gpufleet.status import tables
from gpufleet.status.observe import Cluster, ObservationError, load_kubeconfig
from gpufleet.status.observed import Observed, OperandPod
from gpufleet.status.reading import read_node, read_pod

from tests.api_standin import ApiStandIn, serving
from tests.unit.config.samples import compile_base

KUBECONFIG = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: []\nusers: []\n"


def container(name: str, image: str = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": image, **more}


def a_pod(*containers: dict[str, Any], ready: bool = True, name: str = "p", **status: Any) -> dict[str, Any]:
    """A pod as the API shows it; `status` may hold `deleted`, `init` (containers) and `node`."""
    meta: dict[str, Any] = {"name": name, "namespace": "ns"}
    if status.pop("deleted", False):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": meta,
        "spec": {
            "nodeName": status.pop("node", "n1"),
            "initContainers": status.pop("init", []),
            "containers": list(containers),
            "volumes": [
                {"name": "c", "configMap": {"name": "gpufleet-half-1"}},
                {"name": "k", "configMap": {"name": "kube-root-ca.crt"}},
                {"name": "h", "hostPath": {"path": "/x"}},
            ],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}], **status},
    }


def operand(pod: dict[str, Any]) -> OperandPod | None:
    seen = read_pod(pod)
    return seen.operand if seen else None


@pytest.mark.parametrize(
    ("containers", "what"),
    [
        ((container("nvidia-device-plugin"),), "plugin"),
        ((container("nvidia-device-plugin-ctr", "mirror/plugin:1"),), "plugin"),
        (
            (container("device-plugin", "projecthami/hami:v2"), container("vgpu-monitor", "projecthami/hami:v2")),
            "plugin",
        ),
        ((container("gpu-feature-discovery"),), "feature discovery"),
        ((container("config-manager"), container("nvidia-device-plugin")), "plugin"),
        ((container("gpu-feature-discovery"), container("config-manager")), "feature discovery"),
        ((container("mps-control-daemon"),), "MPS daemon"),
        ((container("mps-control-daemon-ctr"), container("config-manager")), "MPS daemon"),
        ((container("main", "training:1"),), None),
        ((container("plugin"),), "plugin"),
        ((container("nvidia-driver-ctr", "mirror/driver:1"),), "driver"),
        ((container("nvidia-container-toolkit-ctr", "mirror/toolkit:1"),), "toolkit"),
        ((container("nvidia-operator-validator", "mirror/operator:1"),), "validator"),
        ((container("nvidia-mig-manager", "mirror/mig:1"),), "MIG manager"),
    ],
)
def test_which_pods_are_parts_of_the_gpu_software(containers: tuple[dict[str, Any], ...], what: str | None) -> None:
    seen = operand(a_pod(*containers))
    assert (seen.operand if seen else None) == what


def test_a_pod_that_serves() -> None:
    seen = operand(a_pod(container("nvidia-device-plugin")))
    assert seen == OperandPod("p", "ns", "n1", True, "plugin", ("gpufleet-half-1",), None, True)


def waiting(reason: str, message: str | None = None, **more: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return {"name": "c", "ready": False, "state": state, **more}


CRASHED = {"terminated": {"exitCode": 2, "reason": "Error", "message": "no driver"}}
BACK_OFF = "back-off 5m0s restarting failed container=nvidia-driver-ctr pod=driver-x_gpu-operator(1f-2)"


def crashed(**more: Any) -> dict[str, Any]:
    return {"name": "c", "ready": False, "state": {"running": {}}, "lastState": CRASHED, **more}


@pytest.mark.parametrize(
    ("status", "trouble", "waits"),
    [
        ({"containerStatuses": [waiting("ImagePullBackOff", "no such tag")]}, "ImagePullBackOff: no such tag", False),
        ({"containerStatuses": [waiting("CrashLoopBackOff")]}, "CrashLoopBackOff", False),
        (
            {"containerStatuses": [waiting("CrashLoopBackOff", BACK_OFF, lastState=CRASHED)]},
            "CrashLoopBackOff: back-off 5m0s restarting failed container=nvidia-driver-ctr: last Error (exit code 2)"
            " no driver",
            False,
        ),
        ({"initContainerStatuses": [waiting("ErrImagePull")]}, "init container c: ErrImagePull", False),
        ({"initContainerStatuses": [crashed()]}, "init container c: Error (exit code 2) no driver", False),
        ({"initContainerStatuses": [{"name": "c", "ready": False, "state": CRASHED}]},
         "init container c: Error (exit code 2) no driver", False),
        ({"initContainerStatuses": [{"name": "toolkit-validation", "ready": False, "state": {"running": {}}}],
          "containerStatuses": [waiting("PodInitializing")], "phase": "Pending"},
         "it waits in its init container toolkit-validation", True),
        ({"containerStatuses": [crashed()]}, "Error (exit code 2) no driver", False),
        ({"containerStatuses": [waiting("PodInitializing", "waits for the driver")]}, "waits for the driver", True),
        ({"containerStatuses": [{"name": "c", "ready": False, "started": False, "state": {"running": {}}}]},
         "container c runs and has not passed its startup probe yet", True),
        ({"containerStatuses": [waiting("ContainerCreating")], "phase": "Pending"}, "phase Pending", True),
        ({"phase": "Pending"}, "phase Pending", True),
        ({"phase": "Failed", "reason": "Evicted", "message": "disk"}, "phase Failed: Evicted: disk", False),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "no cpu"}]},
         "it cannot be scheduled: no cpu", False),
        ({}, None, True),
        ({"deleted": True, "ready": True}, "being deleted", True),
    ],
)  # fmt: skip
def test_why_a_pod_is_not_ready(status: dict[str, Any], trouble: str | None, waits: bool) -> None:
    seen = operand(a_pod(container("nvidia-device-plugin"), **{"ready": False, **status}))
    assert seen is not None
    assert not seen.ready
    assert (seen.trouble, seen.waits) == (trouble, waits)


def test_an_init_container_that_goes_on_running_is_not_waited_for() -> None:
    beside = container("log", "x", restartPolicy="Always")
    running = {"name": "log", "ready": True, "started": True, "state": {"running": {}}}
    pod = a_pod(container("nvidia-device-plugin"), ready=False, init=[beside], initContainerStatuses=[running])
    seen = operand(pod)
    assert seen is not None
    assert (seen.trouble, seen.init) == (None, None)


def test_a_pod_that_has_recovered_has_no_trouble() -> None:
    seen = operand(a_pod(container("nvidia-device-plugin"), containerStatuses=[crashed(ready=True)]))
    assert seen is not None
    assert (seen.ready, seen.trouble) == (True, None)
    other = operand(a_pod(container("nvidia-device-plugin"), containerStatuses=[crashed(ready=True)], ready=False))
    assert other is not None
    assert (other.ready, other.trouble) == (False, None), "that container is not the one that is not ready"


def test_a_container_that_ended_well_is_no_trouble() -> None:
    well = crashed(lastState={"terminated": {"exitCode": 0}})
    seen = operand(a_pod(container("nvidia-device-plugin"), containerStatuses=[well], ready=False))
    assert seen is not None
    assert seen.trouble is None


def test_a_daemon_sets_pod_without_a_node_belongs_to_the_one_it_is_meant_for() -> None:
    pod = a_pod(container("nvidia-device-plugin"), ready=False, node=None, phase="Pending")
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    seen = operand(pod)
    assert seen is not None
    assert seen.node == "n7"


def test_a_node() -> None:
    node = {
        "metadata": {"name": "n1", "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "GPUMissing", "status": "True", "reason": "r", "message": "m"},
                {"type": "Ready", "status": "True"},
            ],
            "capacity": {"cpu": "4", "nvidia.com/gpu": "9"},
            "allocatable": {
                "cpu": "4",
                "memory": "1Gi",
                "nvidia.com/gpu": "8",
                "nvidia.com/odd": "1k",
                "amd.com/gpu": "1",
            },
        },
    }
    seen = read_node(node)
    assert (seen.name, seen.ready, seen.labels) == ("n1", True, {"a": "b"})
    assert seen.taints == (("k", "", "NoSchedule"),)
    assert seen.allocatable == {"nvidia.com/gpu": 8, "nvidia.com/odd": 0}
    assert seen.capacity == {"nvidia.com/gpu": 9}
    assert [(c.type, c.status, c.words()) for c in seen.conditions] == [
        ("GPUMissing", "True", "r: m"),
        ("Ready", "True", ""),
    ]


def test_a_node_that_has_said_nothing_yet() -> None:
    seen = read_node({"metadata": {"name": "n"}})
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
        Cluster({"clusters": [], "contexts": [], "users": []}, "none", print)


PLUGIN_POD = a_pod(container("nvidia-device-plugin"))
NODE = {"metadata": {"name": "n1"}}
MAP = {
    "metadata": {"namespace": "gpu-plugin", "name": "gpufleet-a-1", "labels": {"gpufleet.dev/route": "plugin"}},
    "data": {"config.yaml": "version: v1"},
}


@pytest.fixture
def api() -> Iterator[ApiStandIn]:
    with serving(nodes=[NODE], pods=[a_pod(container("main", "x"), name="w"), PLUGIN_POD], configmaps=[MAP]) as server:
        yield server


def test_one_reading(api: ApiStandIn) -> None:
    seen = Cluster(api.kubeconfig(token="t"), None, print).observe()
    assert list(seen.nodes) == ["n1"]
    assert [p.name for p in seen.pods] == ["p"], "workloads are not plugins"
    assert seen.config_maps == {("gpu-plugin", "gpufleet-a-1"): {"config.yaml"}}
    assert seen.policies == ()
    assert any("labelSelector=gpufleet.dev%2Froute" in path for path in api.asked)


def test_lists_are_read_in_pages(api: ApiStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_api, "PAGE", 1)
    for name in ("n2", "n3"):
        api.put("nodes", {"metadata": {"name": name}}, "ADDED")
    seen = Cluster(api.kubeconfig(), None, print).observe()
    assert sorted(seen.nodes) == ["n1", "n2", "n3"]
    assert len([path for path in api.asked if "/nodes" in path]) == 3


def test_pods_that_hold_devices(api: ApiStandIn) -> None:
    train = a_pod(container("main", "x", resources={"limits": {"nvidia.com/gpu": "2"}}), name="train")
    api.put("pods", train, "ADDED")
    seen = Cluster(api.kubeconfig(), None, print).observe()
    assert [(h.name, h.node, h.requests) for h in seen.holders] == [("ns/train", "n1", {"nvidia.com/gpu": 2})]


def test_a_user_who_may_not_list_config_maps(api: ApiStandIn) -> None:
    api.refuse = {"configmaps": 403, "clusterpolicies": 403}
    seen = Cluster(api.kubeconfig(), None, print).observe()
    assert (seen.config_maps, seen.policies) == (None, None)
    api.refuse = {"configmaps": 500}
    with pytest.raises(ObservationError, match="500"):
        Cluster(api.kubeconfig(), None, print).observe()


def test_a_cluster_without_the_operator_has_no_policies(api: ApiStandIn) -> None:
    api.refuse = {"clusterpolicies": 404}
    assert Cluster(api.kubeconfig(), None, print).observe().policies is None


def test_a_server_that_refuses(api: ApiStandIn) -> None:
    api.refuse = {"nodes": 403}
    with pytest.raises(ObservationError, match="refuses to answer: 403 Forbidden"):
        Cluster(api.kubeconfig(), None, print).observe()


def test_a_server_that_does_not_answer() -> None:
    with serving() as server:
        config = server.kubeconfig(token="s3cr3t")
    with pytest.raises(ObservationError, match="does not answer") as raised:
        Cluster(config, None, print).observe()
    assert "s3cr3t" not in str(raised.value)


def later(seconds: float, call: Any, *args: Any) -> None:
    timer = threading.Timer(seconds, call, args)
    timer.daemon = True
    timer.start()


def until(api: ApiStandIn, wanted: Any, seconds: float = 10) -> tuple[Observed, float]:
    """The first reading of a waiting cluster that is as wanted, and how long it took."""
    start = time.monotonic()
    for seen in Cluster(api.kubeconfig(), None, print).readings(seconds):
        if isinstance(seen, Observed) and wanted(seen):
            return seen, time.monotonic() - start
    raise AssertionError("it never was")


def lists(api: ApiStandIn) -> list[str]:
    return [path for path in api.asked if "watch=true" not in path]


def test_waiting_watches_and_does_not_list_again(api: ApiStandIn) -> None:
    node = {**NODE, "status": {"allocatable": {"nvidia.com/gpu": "4"}}}
    later(0.7, api.put, "nodes", node)
    seen, seconds = until(api, lambda s: s.nodes["n1"].allocatable)
    assert seen.nodes["n1"].allocatable == {"nvidia.com/gpu": 4}
    assert seconds < 5
    assert len(lists(api)) == 4, "one list of each kind"


def test_what_is_deleted_and_what_comes_is_seen(api: ApiStandIn) -> None:
    later(0.5, api.put, "pods", PLUGIN_POD, "DELETED")
    later(1.0, api.put, "pods", a_pod(container("nvidia-device-plugin"), name="new"), "ADDED")
    until(api, lambda s: [p.name for p in s.pods] == ["new"])
    assert len(lists(api)) == 4


def test_a_version_that_is_too_old_is_listed_anew(api: ApiStandIn) -> None:
    def change() -> None:
        api.events.clear()
        api.put("nodes", {**NODE, "status": {"allocatable": {"nvidia.com/gpu": "4"}}})
        api.events.clear()  # the watch never hears of it
        api.forget()

    later(0.7, change)
    until(api, lambda s: s.nodes["n1"].allocatable)
    assert len(lists(api)) > 4


def test_a_server_that_goes_away_and_comes_back(api: ApiStandIn) -> None:
    def away() -> None:
        api.refuse = {"nodes": 503}
        api.forget()

    def back() -> None:
        api.refuse = {}
        api.put("nodes", {**NODE, "status": {"allocatable": {"nvidia.com/gpu": "4"}}})

    later(0.5, away)
    later(1.5, back)
    start = time.monotonic()
    readings = []
    for seen in Cluster(api.kubeconfig(), None, print).readings(10):
        readings.append(seen)
        if isinstance(seen, Observed) and seen.nodes["n1"].allocatable:
            break
    assert any(isinstance(one, ObservationError) and "503" in str(one) for one in readings)
    assert isinstance(readings[-1], Observed)
    assert time.monotonic() - start < 8


def test_a_user_who_may_list_and_not_watch_waits_as_well(api: ApiStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "POLL_SECONDS", 0.3)
    api.refuse_watches = 403
    later(0.7, api.put, "nodes", {**NODE, "status": {"allocatable": {"nvidia.com/gpu": "4"}}})
    start = time.monotonic()
    for seen in Cluster(api.kubeconfig(), None, print).readings(10):
        assert isinstance(seen, Observed), "it is no error"
        if seen.nodes["n1"].allocatable:
            break
    assert time.monotonic() - start < 8


def test_waiting_ends_in_time(api: ApiStandIn) -> None:
    start = time.monotonic()
    assert len(list(Cluster(api.kubeconfig(), None, print).readings(1.5))) == 1
    assert 1.4 < time.monotonic() - start < 4


def test_waiting_begins_before_the_server_answers(api: ApiStandIn) -> None:
    api.refuse = {"pods": 503}
    later(0.7, api.refuse.clear)
    readings = Cluster(api.kubeconfig(), None, print).readings(10)
    assert isinstance(next(readings), ObservationError)
    assert any(isinstance(one, Observed) for one in readings)
