"""What goes wrong at night: each cause is the first line for its node, and none is called agreement."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.cli.main import main
from gpufleet.parts.device_requests import pod_requests
from gpufleet.status.compare import Status, compare
from gpufleet.status.faults import gpu_faults
from gpufleet.status.observe import Cluster
from gpufleet.status.observed import Condition, ObservedNode
from gpufleet.status.render import render

from tests.api_standin import serving
from tests.status_causes import (
    CAUSES,
    CUT,
    NODE,
    RENAMED,
    RUNS,
    SHARED,
    Made,
    condition,
    cordoned,
    crash_loop,
    driver_crashes,
    failed,
    holders,
    made,
    offers,
    plugin_image,
    unhealthy,
    unready,
)
from tests.unit.config.samples import sections, stack_text


def status_of(cluster: Made) -> Status:
    """What the command would say of it, read through an API server."""
    with serving(**cluster.kinds()) as server:
        return compare(cluster.plan, Cluster(server.kubeconfig(), None, print).observe())


@pytest.mark.parametrize("stack", [SHARED, RENAMED, CUT])
def test_a_cluster_as_declared_agrees(stack: dict[str, Any]) -> None:
    status = status_of(made(stack))
    assert [n.causes for n in status.nodes] == [()]
    assert status.agrees


def test_there_are_at_least_fifteen_causes() -> None:
    assert len(CAUSES) >= 15


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_is_the_first_line_of_its_node(name: str) -> None:
    stack, goes_wrong, first = CAUSES[name]
    cluster = made(stack)
    goes_wrong(cluster)
    status = status_of(cluster)
    lines = [line for line in render(status).splitlines() if line.startswith(f"{NODE}: ")]
    assert lines[0].startswith(f"{NODE}: {first}"), lines
    assert not status.agrees
    assert not status.nodes[0].agrees


def test_the_command_says_it_and_ends_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUFLEET_KUBECONFIG", raising=False)
    (tmp_path / "stack.yaml").write_text(stack_text(sections("existing-operator", SHARED)))
    cluster = made(SHARED)
    driver_crashes(cluster)
    with serving(**cluster.kinds()) as server:
        (tmp_path / "k.conf").write_text(yaml.safe_dump(server.kubeconfig(token="t")))
        code = main(["status", "-f", "stack.yaml", "--kubeconfig", "k.conf", "--json"])
    assert code == 1
    node = json.loads(capsys.readouterr().out)["nodes"][0]
    assert node["causes"][0].startswith("driver pod nvidia-driver-daemonset-x is not ready: CrashLoopBackOff")
    assert (node["agrees"], node["observed"]) == (False, {})


def test_rp_49_pods_that_wait_stand_in_the_line_of_the_one_that_fails() -> None:
    cluster = made(SHARED)
    driver_crashes(cluster)
    causes = status_of(cluster).nodes[0].causes
    assert causes[0].endswith("; toolkit, validator, plugin and MIG manager wait for it")
    assert causes[1:] == ("offers nvidia.com/gpu: 0 instead of 4",)


def test_rp_49_with_no_other_pod_than_plugin_and_driver() -> None:
    cluster = made(SHARED)
    driver_crashes(cluster)
    for name in ("toolkit", "mig", "validator"):
        del cluster.pods[name]
    assert status_of(cluster).nodes[0].causes[0].endswith("; plugin waits for it")


def test_what_fails_comes_before_what_is_still_starting() -> None:
    cluster = made(SHARED)
    unready(cluster.pods["driver"], main={"running": {}})
    cluster.pods["driver"]["status"]["containerStatuses"][0]["started"] = False
    unready(cluster.pods["plugin"], main=crash_loop("nvidia-device-plugin", "x"))
    causes = status_of(cluster).nodes[0].causes
    assert [c.partition(" ")[0] for c in causes[:2]] == ["plugin", "driver"]


def test_a_validator_that_proves_the_plugin_waits_for_the_plugin() -> None:
    cluster = made(SHARED)
    plugin_image(cluster)
    assert "; validator waits for it" in status_of(cluster).nodes[0].causes[0]


def test_a_validator_that_cannot_use_cuda_comes_before_the_plugin() -> None:
    cluster = made(SHARED)
    unready(cluster.pods["validator"], init={"cuda-validation": failed()})
    unready(cluster.pods["plugin"], main=crash_loop("nvidia-device-plugin", "x"))
    assert [c.partition(" ")[0] for c in status_of(cluster).nodes[0].causes[:2]] == ["validator", "plugin"]


def test_a_plugin_that_waits_for_the_hosts_own_driver_points_at_the_host() -> None:
    pool = {**SHARED["pools[0]"], "driver": "host"}  # type: ignore[dict-item]
    cluster = made({**SHARED, "pools[0]": pool})
    for name in ("driver", "toolkit"):
        del cluster.pods[name]
    unready(cluster.pods["plugin"], init={"toolkit-validation": {"running": {}}})
    assert (
        status_of(cluster)
        .nodes[0]
        .causes[0]
        .endswith("; that proves the node's own toolkit: try nvidia-smi on the node")
    )


def test_rp_49_a_driver_pod_that_is_not_there_is_named() -> None:
    cluster = made(SHARED)
    for name in ("driver", "toolkit"):
        del cluster.pods[name]
    unready(cluster.pods["plugin"], init={"toolkit-validation": RUNS})
    assert status_of(cluster).nodes[0].causes[0].endswith("toolkit-validation, and no driver pod is on the node")


def test_an_operands_pod_is_known_by_its_daemon_set_as_well() -> None:
    cluster = made(SHARED)
    driver = cluster.pods["driver"]
    driver["spec"]["containers"][0]["name"] = "own"
    unready(driver, main=crash_loop("own", "x"))
    assert status_of(cluster).nodes[0].causes[0].startswith("driver pod nvidia-driver-daemonset-x is not ready")


def test_pods_of_another_operator_are_not_ours_to_judge() -> None:
    cluster = made(SHARED)
    other = cluster.pods["driver"]
    other["metadata"]["namespace"] = "elsewhere"
    unready(other, main=crash_loop("nvidia-driver-ctr", "x"))
    assert status_of(cluster).agrees


def test_an_old_pod_beside_a_ready_one_is_no_cause() -> None:
    cluster = made(SHARED)
    old = json.loads(json.dumps(cluster.pods["driver"]))
    old["metadata"] |= {"name": "old", "deletionTimestamp": "2026-12-01T00:00:00Z"}
    cluster.pods["old"] = old
    assert status_of(cluster).agrees


# --- conditions


def test_rp_47_a_node_with_a_gpu_fault_is_never_to_be_uncordoned() -> None:
    """It offers all it should, and only the condition says that a GPU is gone."""
    cluster = made(SHARED)
    cordoned(cluster)
    condition(cluster, "GPUMissing", "True", "GPUMissing", "expected 1 GPU, found 0")
    status = status_of(cluster)
    assert "uncordon" not in render(status)
    note = "cordoned: no new pods get onto it; leave it so until condition GPUMissing is repaired"
    assert status.nodes[0].notes == (note,)


def test_a_node_with_unhealthy_gpus_is_not_to_be_uncordoned_either() -> None:
    cluster = made(SHARED)
    cordoned(cluster)
    unhealthy(cluster)
    assert "uncordon" not in render(status_of(cluster))


def test_a_cordoned_node_without_fault_is_named_and_agrees() -> None:
    cluster = made(SHARED)
    cordoned(cluster)
    condition(cluster, "GPUMissing", "False", "NoGPUMissing", "all GPUs are there")
    status = status_of(cluster)
    assert status.agrees
    assert status.nodes[0].notes == ("cordoned: no new pods get onto it until `kubectl uncordon n1`",)


@pytest.mark.parametrize(
    ("one", "fault"),
    [
        (Condition("GPUMissing", "True"), True),
        (Condition("NVLinkStatusInactive", "True"), True),
        (Condition("XIDErrors", "True"), True),
        (Condition("IBLinkFlapping", "True"), True),
        (Condition("UnhealthyNvidiaDevicePlugin", "True"), True),
        (Condition("GPUMissing", "False"), False),
        (Condition("GPUMissing", "Unknown"), False),
        (Condition("AcceleratedHardwareReady", "False"), True),
        (Condition("AcceleratedHardwareReady", "True"), False),
        (Condition("GpuUnhealthy", "True"), True),
        (Condition("GpuHealthy", "True"), False),
        (Condition("GpuHealthy", "False"), True),
        (Condition("NvidiaDriverLoaded", "True"), False),
        (Condition("NvidiaDriverUnavailable", "True"), True),
        (Condition("KernelDeadlock", "True", "x", "NVRM: Xid (PCI:0000:17:00): 79"), True),
        (Condition("KernelDeadlock", "True", "DockerHung", "task docker:7 blocked"), False),
        (Condition("KernelDeadlock", "False", "KernelHasNoDeadlock", "no GPU trouble"), False),
        (Condition("ReadonlyFilesystem", "True", "FilesystemIsReadOnly", "/dev/taxi is read-only"), False),
        (Condition("Ready", "False", "KubeletNotReady", "nvidia runtime is missing"), False),
    ],
)
def test_rp_47_which_conditions_are_gpu_faults(one: Condition, fault: bool) -> None:
    node = ObservedNode("n", True, {}, (), {}, conditions=(one,))
    assert (gpu_faults(node) == [one]) is fault


# --- unhealthy devices


def test_rp_48_some_devices_are_unhealthy() -> None:
    cluster = made(SHARED)
    offers(cluster, {"nvidia.com/gpu": 4}, {"nvidia.com/gpu": 3})
    causes = status_of(cluster).nodes[0].causes
    assert causes[0].startswith("1 of 4 devices of nvidia.com/gpu are unhealthy")
    assert "Xid" in causes[0]
    assert "delete its pod" not in causes[0]
    assert causes[1] == "offers nvidia.com/gpu: 3 instead of 4"


@pytest.mark.parametrize("state", ["no plugin", "plugin not ready"])
def test_devices_of_a_plugin_that_does_not_run_are_not_called_unhealthy(state: str) -> None:
    """The kubelet keeps the capacity of a plugin that has gone, with nothing allocatable."""
    cluster = made(SHARED)
    unhealthy(cluster)
    if state == "no plugin":
        del cluster.pods["plugin"]
    else:
        unready(cluster.pods["plugin"], main=crash_loop("nvidia-device-plugin", "x"))
    assert not any("unhealthy" in cause for cause in status_of(cluster).nodes[0].causes)


def test_what_is_left_of_an_old_name_is_not_called_unhealthy() -> None:
    cluster = made(SHARED)
    offers(
        cluster, {"nvidia.com/gpu": 4, "nvidia.com/gpu.shared": 8}, {"nvidia.com/gpu": 4, "nvidia.com/gpu.shared": 0}
    )
    assert status_of(cluster).agrees


# --- pods that hold too much


@pytest.mark.parametrize(
    ("count", "more", "agrees"),
    [
        (4, {}, True),
        (5, {}, False),
        (9, {"phase": "Succeeded"}, True),
        (9, {"phase": "Failed"}, True),
    ],
)
def test_rp_50_only_pods_that_run_count(count: int, more: dict[str, Any], agrees: bool) -> None:
    cluster = made(SHARED)
    holders(cluster, count, **more)
    assert status_of(cluster).agrees is agrees


def test_rp_50_pods_that_are_going_do_not_count() -> None:
    cluster = made(SHARED)
    holders(cluster, 9)
    for one in cluster.workloads[:5]:
        one["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
    assert status_of(cluster).agrees


def test_rp_50_every_pod_is_named() -> None:
    cluster = made(SHARED)
    holders(cluster, 9)
    cause = status_of(cluster).nodes[0].causes[0]
    assert all(f"default/notebook-{i}" in cause for i in range(9))
    assert cause.endswith("they keep it until they end")


def test_figures_that_are_no_devices_do_not_count() -> None:
    """HAMi's pods ask for memory under the same prefix; no node ever offers it."""
    cluster = made(SHARED)
    holders(cluster, 3, "nvidia.com/gpumem")
    assert status_of(cluster).agrees


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}] * 2}, {"nvidia.com/gpu": 2}),
        (
            {
                "initContainers": [{"resources": {"limits": {"nvidia.com/gpu": "3"}}}],
                "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}] * 2,
            },
            {"nvidia.com/gpu": 3},
        ),
        (
            {
                "initContainers": [{"restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
                "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
            },
            {"nvidia.com/gpu": 2},
        ),
        ({"containers": [{"resources": {"limits": {"cpu": "1"}}}, {}]}, {}),
    ],
)
def test_devices_are_summed_as_the_scheduler_does(spec: dict[str, Any], wanted: dict[str, int]) -> None:
    assert pod_requests(spec) == wanted


# --- the operator


@pytest.mark.parametrize(
    ("state", "reason", "agrees"),
    [
        ("ready", "", True),
        ("notReady", "OperandNotReady", True),
        ("notReady", "", True),
        ("notReady", "ReconcileFailed", False),
    ],
)
def test_a_cluster_policy_that_waits_for_its_pods_is_no_cause_by_itself(state: str, reason: str, agrees: bool) -> None:
    cluster = made(SHARED)
    conditions = [{"type": "Error", "status": "True", "reason": reason, "message": "m"}] if reason else []
    cluster.policy["status"] = {"state": state, "conditions": conditions}
    status = status_of(cluster)
    assert status.agrees is agrees
    assert status.causes == (() if agrees else (f"ClusterPolicy cluster-policy is notReady: {reason}: m",))


def _no_detection(cluster: Made) -> None:
    cluster.pods.clear()
    del cluster.node["metadata"]["labels"]["nvidia.com/gpu.present"]


def _deleted_by_hand(cluster: Made) -> None:
    del cluster.pods["plugin"]


@pytest.mark.parametrize(
    ("goes_wrong", "says"),
    [
        (_no_detection, "no plugin pod: the operator takes the node for one without a GPU"),
        (_deleted_by_hand, "no plugin pod of namespace gpu-operator is on the node; `pulumi up --refresh`"),
    ],
)
def test_why_no_plugin_pod_is_there(goes_wrong: Callable[[Made], None], says: str) -> None:
    cluster = made(SHARED)
    goes_wrong(cluster)
    assert status_of(cluster).nodes[0].causes[0].startswith(says)
