"""What the advertiser makes of pods, ConfigMaps and nodes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.unit.twin_standins.objects import GPU, IMAGE, configmaps, mounted, node, plugin, pod, sharing
from twin.advertiser import node as rules
from twin.advertiser import pods, verdicts


def offered(on_node: list[dict[str, Any]], maps: Any = None, of: dict[str, Any] | None = None) -> dict[str, int]:
    return rules.wanted(of or node(), on_node, maps or {}, operator=False).resources


def trouble(on_node: list[dict[str, Any]], maps: Any = None, of: dict[str, Any] | None = None) -> tuple[str, str]:
    [verdict] = rules.wanted(of or node(), on_node, maps or {}, operator=False).verdicts
    assert verdict.trouble is not None
    return verdict.trouble.reason, verdict.trouble.message


def test_no_plugin_no_gpus() -> None:
    assert offered([]) == {}
    assert offered([pod({"name": "x", "image": "busybox"})]) == {}
    assert offered([pod(plugin(config=False))]) == {GPU: 1}


def test_the_config_that_this_pod_mounts_counts() -> None:
    maps = configmaps(sharing(4)) | configmaps(sharing(8), "other")
    assert offered([pod(plugin(), volumes=mounted("sharing"))], maps) == {GPU: 4}
    assert offered([pod(plugin(), volumes=mounted("other"))], maps) == {GPU: 8}
    assert offered([pod(plugin(), volumes=mounted("other"))], maps, node(gpus=2)) == {GPU: 16}
    by_option = plugin(env=[], args=["--config-file=/config/config.yaml"])
    assert offered([pod(by_option, volumes=mounted("other"))], maps) == {GPU: 8}


def test_an_edit_in_place_changes_nothing_until_the_pod_is_replaced() -> None:
    running = pod(plugin(), volumes=mounted())
    first = rules.wanted(node(), [running], configmaps(sharing(4)), False)
    note = verdicts.pod_annotation(running, first.verdicts)
    assert note
    running["metadata"]["annotations"] = {verdicts.READ: note}
    edited = rules.wanted(node(), [running], configmaps(sharing(8)), False)
    assert edited.resources == {GPU: 4}
    assert verdicts.pod_annotation(running, edited.verdicts) is None
    assert offered([running], configmaps("version: v9")) == {GPU: 4}
    assert offered([running], {}) == {GPU: 4}  # the ConfigMap went away
    assert offered([pod(plugin(), volumes=mounted(), name="new")], configmaps(sharing(8))) == {GPU: 8}


def test_a_plugin_that_ended_with_an_error_reads_again() -> None:
    broken = pod(plugin(), volumes=mounted())
    failing = rules.wanted(node(), [broken], configmaps(sharing(1)), False).verdicts
    assert verdicts.pod_annotation(broken, failing) is None
    status = verdicts.pod_status(broken, failing, "now")
    assert status
    [shown] = status["containerStatuses"]
    waiting = shown["state"]["waiting"]
    assert (shown["ready"], shown["restartCount"], waiting["reason"]) == (False, 1, "CrashLoopBackOff")
    assert "replicas must be >= 2" in waiting["message"]
    assert [one["status"] for one in status["conditions"]] == ["False"]
    broken["status"] |= status
    assert verdicts.pod_status(broken, failing, "later") is None  # no second patch for the same trouble
    healed = rules.wanted(node(), [broken], configmaps(sharing(2)), False)
    assert healed.resources == {GPU: 2}
    status = verdicts.pod_status(broken, healed.verdicts, "later")
    assert status
    assert (status["containerStatuses"][0]["ready"], status["conditions"][0]["status"]) == (True, "True")


@pytest.mark.parametrize(("volumes", "container", "maps", "reason", "words"), [
    (mounted("absent"), plugin(), {}, "ContainerCreating", 'configmap "absent" not found'),
    (mounted("absent", optional=True), plugin(), {}, "CrashLoopBackOff", "no such file"),
    (mounted(), plugin(), configmaps(sharing(4), key="any"), "CrashLoopBackOff", "open /config/config.yaml"),
    (mounted(items=[{"key": "x", "path": "config.yaml"}]), plugin(), configmaps(sharing(4)), "ContainerCreating",
     "non-existent config key: x"),
    ([], plugin(volumeMounts=[]), {}, "CrashLoopBackOff", "no such file"),
])
def test_files_that_are_not_there(volumes: Any, container: Any, maps: Any, reason: str, words: str) -> None:
    got = trouble([pod(container, volumes=volumes)], maps)
    assert got[0] == reason
    assert words in got[1]


def test_items_sub_path_and_projected_volumes() -> None:
    maps = configmaps(sharing(4), key="t4")
    items = [{"key": "t4", "path": "config.yaml"}]
    assert offered([pod(plugin(), volumes=mounted(items=items))], maps) == {GPU: 4}
    sub = plugin(volumeMounts=[{"name": "config", "mountPath": "/config/config.yaml", "subPath": "t4"}])
    assert offered([pod(sub, volumes=mounted())], maps) == {GPU: 4}
    projected = [{"name": "config", "projected": {"sources": [{"configMap": {"name": "sharing", "items": items}}]}}]
    assert offered([pod(plugin(), volumes=projected)], maps) == {GPU: 4}


def managed(default: str = "", fallbacks: str = "empty") -> dict[str, Any]:
    manager = {"name": "config-manager", "image": IMAGE, "command": ["config-manager"], "volumeMounts": [
        {"name": "configs", "mountPath": "/available-configs"}, {"name": "config", "mountPath": "/config"}], "env": [
        {"name": "DEFAULT_CONFIG", "value": default}, {"name": "FALLBACK_STRATEGIES", "value": fallbacks},
        {"name": "NODE_LABEL", "value": "nvidia.com/device-plugin.config"}]}
    volumes = [{"name": "configs", "configMap": {"name": "sharing"}}, {"name": "config", "emptyDir": {}}]
    return pod(plugin(), manager, volumes=volumes)


BOTH = {("gpu", "sharing"): {"data": {"four": sharing(4), "eight": sharing(8)}}}


def test_config_manager_label_then_default_then_fallbacks() -> None:
    labelled = node(labels={"nvidia.com/device-plugin.config": "eight"})
    assert offered([managed("four")], BOTH) == {GPU: 4}
    assert offered([managed("four")], BOTH, labelled) == {GPU: 8}
    assert offered([managed("")], BOTH) == {GPU: 1}  # empty: runs without sharing
    single = {("gpu", "sharing"): {"data": {"one": sharing(3)}}}
    assert offered([managed("", "named,single")], single) == {GPU: 3}
    named = {("gpu", "sharing"): {"data": {"default": sharing(5), "one": sharing(3)}}}
    assert offered([managed("", "named,single")], named) == {GPU: 5}
    assert "no fallback fits" in trouble([managed("", "named,single")], BOTH)[1]
    assert "specified config nine does not exist" in trouble([managed("nine")], BOTH)[1]


def test_config_manager_switches_a_running_plugin_but_not_for_an_edit() -> None:
    running = managed("four")
    note = verdicts.pod_annotation(running, rules.wanted(node(), [running], BOTH, False).verdicts)
    running["metadata"]["annotations"] = {verdicts.READ: note}
    edited = {("gpu", "sharing"): {"data": {"four": sharing(5), "eight": sharing(9)}}}
    assert offered([running], edited) == {GPU: 4}
    assert offered([running], edited, node(labels={"nvidia.com/device-plugin.config": "eight"})) == {GPU: 9}


def test_without_a_driver_nothing_is_offered_until_one_comes() -> None:
    bare = node(driver="none")
    assert trouble([pod(plugin(config=False))], of=bare)[0] == "CrashLoopBackOff"
    patient = plugin(config=False, env=[{"name": "FAIL_ON_INIT_ERROR", "value": "false"}])
    assert trouble([pod(patient)], of=bare) == ("", "no driver on this node: waiting indefinitely")
    operand = pod(plugin(config=False), inits=["toolkit-validation"])
    assert trouble([operand], of=bare)[0] == "PodInitializing"
    driver = pod({"name": "nvidia-driver-ctr", "image": "nvcr.io/nvidia/driver:595.91.07-ubuntu24.04"}, name="d")
    assert offered([operand, driver], of=bare) == {GPU: 1}
    assert offered([pod(plugin(config=False))], of=node(driver=None)) == {GPU: 1}


def test_mig_layouts_and_aks_profiles() -> None:
    aks = node(gpus=8)
    aks["metadata"]["annotations"] |= {"twin.gpufleet.dev/gpu-model": "A100-SXM4-40GB",
                                       "twin.gpufleet.dev/gpu-instance-profile": "MIG1g"}
    single = plugin(config=False, env=[{"name": "MIG_STRATEGY", "value": "single"}])
    mixed = plugin(config=False, env=[{"name": "MIG_STRATEGY", "value": "mixed"}])
    assert offered([pod(single)], of=aks) == {GPU: 56}
    assert offered([pod(mixed)], of=aks) == {"nvidia.com/mig-1g.5gb": 56}
    assert offered([pod(plugin(config=False))], of=aks) == {GPU: 8}
    host = node(gpus=2)
    host["metadata"]["annotations"]["twin.gpufleet.dev/mig"] = "0=1g.10gb;1="
    assert trouble([pod(single)], of=host)[0] == "CrashLoopBackOff"


def test_node_status_keeps_the_capacity_of_a_resource_whose_plugin_went() -> None:
    before = node()
    before["status"] = {"capacity": {"cpu": "4", GPU: "4"}, "allocatable": {"cpu": "4", GPU: "4"}}
    assert rules.node_status(before, {GPU: 4}) is None
    assert rules.node_status(before, {}) == {"status": {"capacity": {}, "allocatable": {GPU: "0"}}}
    assert rules.node_status(before, {"nvidia.com/gpu.shared": 4}) == {"status": {
        "capacity": {"nvidia.com/gpu.shared": "4"}, "allocatable": {"nvidia.com/gpu.shared": "4", GPU: "0"}}}


def test_gfd_labels_follow_its_own_file() -> None:
    gfd = plugin(name="gfd", command=["gpu-feature-discovery"])
    found = rules.wanted(node(), [pod(gfd, volumes=mounted())], configmaps(sharing(4)), False)
    assert found.resources == {}
    assert found.labels["gfd"]["nvidia.com/gpu.product"] == "Tesla-T4-SHARED"
    renamed = rules.wanted(node(), [pod(gfd, volumes=mounted())], configmaps(sharing(4, rename=True)), False)
    assert renamed.labels["gfd"]["nvidia.com/gpu.product"] == "Tesla-T4"
    assert renamed.labels["gfd"]["nvidia.com/gpu.replicas"] == "4"


NFD = pod({"name": "w", "image": "registry.k8s.io/nfd/node-feature-discovery:v0.19.0", "command": ["nfd-worker"]},
          name="w")


def test_operator_labels_need_discovery_and_respect_what_is_set() -> None:
    assert rules.wanted(node(), [], {}, operator=True).labels == {"operator": {}}
    found = rules.wanted(node(), [NFD], {}, operator=True).labels["operator"]
    assert found["nvidia.com/gpu.present"] == found["nvidia.com/gpu.deploy.device-plugin"] == "true"
    assert "nvidia.com/gpu.deploy.mig-manager" not in found
    off = node(labels={"nvidia.com/gpu.deploy.driver": "false"})
    assert rules.wanted(off, [NFD], {}, True).labels["operator"]["nvidia.com/gpu.deploy.driver"] == "false"
    none = node(labels={"nvidia.com/gpu.deploy.operands": "false"})
    assert rules.wanted(none, [NFD], {}, True).labels["operator"] == {"nvidia.com/gpu.present": "true"}


def test_the_driver_container_steps_aside_where_a_driver_is() -> None:
    driver = pod({"name": "d", "image": "nvcr.io/nvidia/driver:595.91.07-ubuntu24.04"}, name="d")
    key = "nvidia.com/gpu.deploy.driver"
    assert rules.wanted(node(), [NFD, driver], {}, True).labels["operator"][key] == "pre-installed"
    assert rules.wanted(node(driver="none"), [NFD, driver], {}, True).labels["operator"][key] == "true"


def test_only_own_labels_are_dropped_and_not_while_they_linger() -> None:
    one = node(labels={"team": "x", "nvidia.com/gpu.deploy.driver": "false"})
    wanted = rules.wanted(one, [NFD], {}, True)
    patch = rules.node_labels(one, wanted.labels)
    assert patch
    assert "nvidia.com/gpu.deploy.driver" not in patch["metadata"]["labels"]
    after = copy.deepcopy(one)
    after["metadata"]["labels"] |= patch["metadata"]["labels"]
    after["metadata"]["annotations"] |= patch["metadata"]["annotations"]
    assert rules.node_labels(after, wanted.labels) is None
    assert rules.node_labels(after, {}, frozenset({"nfd", "operator"})) is None
    gone = rules.node_labels(after, {})
    assert gone
    kept = {"team", "nvidia.com/gpu.deploy.driver"}
    assert set(gone["metadata"]["labels"]) == set(after["metadata"]["labels"]) - kept
    assert set(gone["metadata"]["labels"].values()) == {None}
    assert gone["metadata"]["annotations"] == {rules.WROTE: None}
    assert json.loads(after["metadata"]["annotations"][rules.WROTE])["nfd"] == [
        "feature.node.kubernetes.io/pci-10de.present"]


@pytest.mark.parametrize(("container", "role"), [
    ({"image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}, "plugin"),
    ({"image": "reg.example:5000/a/b/k8s-device-plugin@sha256:abc", "command": ["/bin/sh", "-c"],
      "args": ["/bin/entrypoint.sh"]}, "plugin"),
    ({"image": "k8s-device-plugin", "command": ["/usr/bin/gpu-feature-discovery"]}, "gfd"),
    ({"image": "k8s-device-plugin", "args": ["config-manager"]}, "config-manager"),
    ({"image": "nvcr.io/nvidia/gpu-operator:v26.7.0", "command": ["gpu-operator"]}, "operator"),
    ({"image": "nvcr.io/nvidia/gpu-operator:v26.7.0", "command": ["sh", "-c", "sleep"]}, ""),
    ({"image": "nvcr.io/nvidia/driver:595.91.07"}, "driver"), ({"image": "example/gpu-driver-tool:1"}, ""),
    ({"image": "mirror.example/projecthami/hami:v2.10.0", "command": ["nvidia-device-plugin"]}, "hami"),
    ({"image": "docker.io/projecthami/hami:v2.10.0", "command": ["vGPUmonitor"]}, ""),
    ({"image": "docker.io/projecthami/hami:v2.10.0", "command": ["scheduler"]}, ""),
    ({"image": "nvcr.io/nvidia/cloud-native/k8s-mig-manager:v0.15.0"}, "mig-manager"),
    ({"image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "command": ["mps-control-daemon"]}, "mps"),
])
def test_roles(container: dict[str, Any], role: str) -> None:
    assert pods.role(container) == role
