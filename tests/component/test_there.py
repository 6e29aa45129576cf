"""Objects that are there already: what is registered beside them (RP-08), and keys that stay for a while (RP-46)."""

from __future__ import annotations

import pytest
from gpufleet.parts.seen import Seen, SeenClass, SeenConfigMap

from tests.component.recording import Recorded, run
from tests.component.stacks import TEXTS

OURS = {"app.kubernetes.io/managed-by": "gpufleet"}
PLUGIN = """\
config:
  gpufleet:cluster:
    kind: existing
    name: lab
    site: lab
    distribution: DISTRIBUTION
    existingNamespaces: [THERE]
    kubeconfig: {path: k.conf}
  gpufleet:pools: [{name: a, hosts: {n1: {}}, gpu: L4, gpusPerNode: 1, os: ubuntu-24.04}]
  gpufleet:stack: {kind: plugin, images: {pullSecrets: [regcred]}}
  gpufleet:teams: [{name: vision, namespace: vision, pools: [a], quota: {gpu: 1}}]
"""


def plugin(distribution: str = "kubeadm", there: str = "", seen: Seen | None = None) -> Recorded:
    made = run(PLUGIN.replace("DISTRIBUTION", distribution).replace("THERE", there), seen=seen)
    assert made.error is None, made.error
    return made


def classes(labels: dict[str, str]) -> Seen:
    return Seen(runtime_classes={"nvidia": SeenClass("nvidia", labels)})


@pytest.mark.parametrize("distribution", ["k3s", "rke2"])
def test_no_class_is_made_where_the_distribution_has_it(distribution: str) -> None:
    """RP-08: pods name the class, and nothing registers it."""
    made = plugin(distribution)
    assert made.of("RuntimeClass") == []
    assert made.one("DaemonSet").inputs["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"


def test_a_class_of_somebody_else_is_not_registered() -> None:
    """RP-08"""
    assert plugin(seen=classes({})).of("RuntimeClass") == []


def test_our_own_class_stays_registered() -> None:
    """The look finds it at every `up`; without its registration it would be deleted."""
    made = plugin(seen=classes(OURS)).one("RuntimeClass")
    assert (made.labels, made.retain_on_delete) == (OURS, False)


def test_a_class_that_an_older_provider_took_over_is_never_deleted() -> None:
    """RP-08: k3s brings it, our label is on it: a destroy leaves it."""
    assert plugin("k3s", seen=classes(OURS)).one("RuntimeClass").retain_on_delete is True


def test_namespaces_that_exist_get_labels_and_no_owner() -> None:
    made = plugin(there="gpu-plugin, vision", seen=Seen(namespaces={"gpu-plugin": {}, "vision": {}}))
    assert made.of("Namespace") == []
    patches = {r.inputs["metadata"]["name"]: r for r in made.of("NamespacePatch")}
    assert {name: r.labels for name, r in patches.items()} == {
        "gpu-plugin": {"pod-security.kubernetes.io/enforce": "privileged"},
        "vision": {"gpufleet.dev/team": "vision"},
    }
    assert patches["gpu-plugin"].urn in made.one("DaemonSet").dependencies
    assert made.one("ResourceQuota").inputs["metadata"]["namespace"] == "vision"


def test_what_is_found_wrong_ends_it_before_anything_is_registered() -> None:
    made = run(PLUGIN.replace("DISTRIBUTION", "kubeadm").replace("THERE", ""), seen=Seen(namespaces={"vision": {}}))
    assert made.resources == []
    assert made.error == "test: 1 error. Nothing was changed."
    assert any("GF451" in message for level, message in made.messages if level == "error")


def test_a_warning_of_the_look_is_told_and_goes_on() -> None:
    made = run(TEXTS["local-chart"], seen=Seen(nfd=(("nfd/worker", ""),)))
    assert made.error is None
    assert any("GF465" in message for level, message in made.messages if level == "warning")
    assert made.one("Release")


@pytest.mark.parametrize(("name", "space"), [("local-chart", "gpu"), ("aks-mixed", "gpu-operator")])
def test_old_keys_stay_in_the_config_map_that_the_release_mounts(name: str, space: str) -> None:
    """RP-46, on both kinds of cluster: the ConfigMap can change later, and is the one that the release names."""
    route = {**OURS, "gpufleet.dev/route": "operator"}
    seen = Seen(
        nodes={"n9": {"nvidia.com/device-plugin.config": "old"}},
        config_maps=(SeenConfigMap(space, "gpufleet-sharing-1", route, {"old": "text", "gone": "text"}),),
    )
    made = run(TEXTS[name], seen=seen)
    assert made.error is None, made.error
    sent, before = made.one("ConfigMap").inputs, run(TEXTS[name]).one("ConfigMap").inputs
    assert sent["data"] == {**before["data"], "old": "text"}
    assert "immutable" not in sent
    release = made.one("Release").inputs
    assert release["values"]["devicePlugin"]["config"]["name"] == sent["metadata"]["name"] == before["metadata"]["name"]
    assert any("keeps old" in message for _, message in made.messages)


MOVES = Seen(nodes={"n1": {"nvidia.com/device-plugin.config": "old"}})


def test_labels_wait_until_all_pods_mount_the_new_keys() -> None:
    """RP-46: a DaemonSet that does not roll out in time ends the `up`, and no label that names a key was registered."""
    asked: list[tuple[str, list[str]]] = []

    def late(kubeconfig: str, context: str | None, space: str, names: list[str], seconds: float) -> list[str]:
        asked.append((space, names))
        return ["nvidia-device-plugin-daemonset"]

    made = run(TEXTS["local-chart"], seen=MOVES, wait=late)
    assert [space for space, _ in asked] == ["gpu"]
    assert asked[0][1] == [r.inputs["metadata"]["name"] for r in made.of("ConfigMap")]
    assert made.error is not None and "nvidia-device-plugin-daemonset" in made.error
    assert [r.name for r in made.of("NodePatch")] == ["node-n1-first"]


def test_labels_that_stay_wait_for_nothing() -> None:
    def never(*_: object) -> list[str]:
        raise AssertionError("nothing moves")

    now = run(TEXTS["local-chart"]).node_labels()
    made = run(TEXTS["local-chart"], seen=Seen(nodes=now), wait=never)
    assert made.error is None
    assert len(made.of("NodePatch")) == 2
