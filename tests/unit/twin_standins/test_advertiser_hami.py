"""HAMi's plugin on a node, alone and beside NVIDIA's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.twin_standins.objects import GPU, configmaps, mounted, node, plugin, pod, sharing
from twin.advertiser import node as rules
from twin.advertiser import verdicts


def hami(name: str = "hami-device-plugin-x", started: str = "2026-11-30T10:00:05Z", strategy: str = "none",
         **more: Any) -> dict[str, Any]:
    container = {
        "name": "device-plugin", "image": "docker.io/projecthami/hami:v2.10.0",
        "command": ["nvidia-device-plugin", "--config-file=/device-config.yaml", f"--mig-strategy={strategy}"],
        "volumeMounts": [
            {"name": "deviceconfig", "mountPath": "/config"},
            {"name": "device-config", "mountPath": "/device-config.yaml", "subPath": "device-config.yaml"}]}
    return pod(container, name=name, started=started, **more, volumes=[
        {"name": "deviceconfig", "configMap": {"name": "hami-device-plugin"}},
        {"name": "device-config", "configMap": {"name": "hami-scheduler-device"}}])


def files(split: Any = 10, nodes: str = '{"nodeconfig": []}', resource: str = GPU) -> dict[Any, Any]:
    device = f"nvidia:\n  resourceCountName: {resource}\n  deviceSplitCount: {split}\n  deviceMemoryScaling: 1.5\n"
    return {("gpu", "hami-scheduler-device"): {"data": {"device-config.yaml": device}},
            ("gpu", "hami-device-plugin"): {"data": {"config.json": nodes}}}


def entry(**fields: Any) -> str:
    return json.dumps({"nodeconfig": [{"name": "n1", **fields}]})


def wanted(pods: list[dict[str, Any]], maps: Any, of: dict[str, Any] | None = None) -> rules.Wanted:
    return rules.wanted(of or node(gpus=2), pods, maps, operator=False)


def test_every_gpu_is_offered_as_often_as_it_is_split() -> None:
    found = wanted([hami()], files(split=7))
    assert found.resources == {GPU: 14}
    assert found.annotations[rules.SECOND] is None
    assert wanted([hami()], files(3, resource="example.com/vgpu")).resources == {"example.com/vgpu": 6}


@pytest.mark.parametrize(("nodes", "offered"), [
    (entry(devicesplitcount=4), 8), (entry(devicesplitcount=0), 20), (entry(filterdevices={"index": [1]}), 10),
    (json.dumps({"nodeconfig": [{"name": "n2", "devicesplitcount": 4}]}), 20),
    ("{nodeconfig", 20),  # no JSON: ignored, with a line in the log
])
def test_the_entry_of_this_node_goes_over_the_count_of_all(nodes: str, offered: int) -> None:
    assert wanted([hami()], files(10, nodes)).resources == {GPU: offered}


def test_a_count_that_is_edited_in_place_waits_for_the_next_pod() -> None:
    running = hami()
    note = verdicts.pod_annotation(running, wanted([running], files(10)).verdicts)
    running["metadata"]["annotations"] = {verdicts.READ: note}
    assert wanted([running], files(5)).resources == {GPU: 20}
    assert wanted([hami("new")], files(5)).resources == {GPU: 10}


@pytest.mark.parametrize(("maps", "of", "reason", "words"), [
    (files("many"), None, "CrashLoopBackOff", "deviceSplitCount"),
    ({**files(), ("gpu", "hami-scheduler-device"): {"data": {"device-config.yaml": "amd: {}"}}}, None,
     "CrashLoopBackOff", "failed to load device config file"),
    ({}, None, "ContainerCreating", 'configmap "hami-scheduler-device" not found'),
    ({key: one for key, one in files().items() if key[1] != "hami-device-plugin"}, None, "ContainerCreating",
     'configmap "hami-device-plugin" not found'),
    (files(), node(driver="none"), "CrashLoopBackOff", "no driver on this node"),
])
def test_what_keeps_it_from_serving(maps: Any, of: Any, reason: str, words: str) -> None:
    found = wanted([hami()], maps, of)
    assert found.resources == {}
    [verdict] = found.verdicts
    assert verdict.trouble is not None
    assert verdict.trouble.reason == reason
    assert words in verdict.trouble.message


def test_it_waits_for_the_toolkit_where_it_is_told_to() -> None:
    [verdict] = wanted([hami(inits=["toolkit-validation"])], files(), node(driver="none")).verdicts
    assert verdict.trouble is not None
    assert verdict.trouble.reason == "PodInitializing"


def test_mig_devices_are_never_split() -> None:
    cut = node(2, model="A100-SXM4-40GB", layout="0=1g.5gb,1g.5gb")
    assert wanted([hami()], files(5), cut).resources == {GPU: 10}
    assert wanted([hami(strategy="mixed")], files(5), cut).resources == {GPU: 5, "nvidia.com/mig-1g.5gb": 2}


NVIDIA = "2026-11-30T10:00:00Z"
MAPS = files(10) | configmaps(sharing(4)) | configmaps(sharing(4, rename=True), "renamed")


def nvidia(started: str = NVIDIA, config: str = "sharing", name: str = "nvidia-x") -> dict[str, Any]:
    return pod(plugin(), volumes=mounted(config), name=name, started=started)


def noted(found: rules.Wanted) -> dict[str, Any]:
    note: dict[str, Any] = json.loads(found.annotations[rules.SECOND] or "{}")
    return note


def test_beside_nvidias_plugin_the_last_one_that_registered_has_the_name() -> None:
    late = wanted([hami(), nvidia()], MAPS)
    assert late.resources == {GPU: 20}
    assert noted(late) == {"plugins": ["gpu/nvidia-x", "gpu/hami-device-plugin-x"], "lost": {GPU: ["gpu/nvidia-x"]}}
    early = wanted([hami(), nvidia(started="2026-11-30T10:00:09Z")], MAPS)
    assert early.resources == {GPU: 8}
    assert noted(early)["lost"] == {GPU: ["gpu/hami-device-plugin-x"]}


def test_names_that_differ_stand_beside_each_other_and_are_noted() -> None:
    found = wanted([hami(), nvidia(config="renamed")], MAPS)
    assert found.resources == {GPU: 20, "nvidia.com/gpu.shared": 8}
    assert noted(found) == {"plugins": ["gpu/nvidia-x", "gpu/hami-device-plugin-x"], "lost": {}}


def test_a_plugin_that_lost_its_name_does_not_get_it_back_by_itself() -> None:
    both = wanted([hami(), nvidia()], MAPS)
    at = node(gpus=2)
    at["metadata"]["annotations"][rules.SECOND] = both.annotations[rules.SECOND]
    left = wanted([nvidia()], MAPS, at)
    assert left.resources == {}
    assert noted(left) == {"plugins": ["gpu/nvidia-x"], "lost": {GPU: ["gpu/nvidia-x"]}}
    at["metadata"]["annotations"][rules.SECOND] = left.annotations[rules.SECOND]
    again = wanted([nvidia(name="nvidia-y")], MAPS, at)
    assert again.resources == {GPU: 8}
    assert rules.node_annotations(at, again.annotations) == {"metadata": {"annotations": {rules.SECOND: None}}}


def test_a_pod_of_the_same_daemon_set_takes_over_without_a_conflict() -> None:
    old, new = nvidia(), nvidia("2026-11-30T10:00:09Z", "renamed", "nvidia-y")
    for one in (old, new):
        one["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "uid": "ds", "controller": True}]
    found = wanted([old, new], MAPS)
    assert found.resources == {"nvidia.com/gpu.shared": 8}
    assert found.annotations[rules.SECOND] is None


def test_a_plugin_that_serves_nothing_is_no_second_one() -> None:
    found = wanted([hami(), nvidia(config="absent")], MAPS)
    assert found.resources == {GPU: 20}
    assert found.annotations[rules.SECOND] is None
