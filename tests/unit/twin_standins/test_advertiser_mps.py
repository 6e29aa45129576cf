"""MPS: the plugin registers once a control daemon with its own configuration is there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.twin_standins.objects import GPU, IMAGE, configmaps, node, plugin, pod, sharing
from twin.advertiser import node as rules
from twin.advertiser import verdicts

ROOT = "/run/nvidia/mps"


def mps(replicas: int, more: str = "") -> str:
    return f"version: v1\nsharing: {{mps: {{resources: [{{name: nvidia.com/gpu, replicas: {replicas}}}]{more}}}}}\n"


def member(container: str, config: str, root: str | None, **more: Any) -> dict[str, Any]:
    """A pod as the standalone route has it: the configuration from a folder, /mps from the host, MPS_ROOT set."""
    mounts = [{"name": "config", "mountPath": "/config"}]
    mounts += [{"name": "mps-root", "mountPath": "/mps"}] if root else []
    env = [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}, {"name": "MPS_ROOT", "value": root or ROOT}]
    command = {"command": ["mps-control-daemon"]} if container == "mps-control-daemon" else {}
    volumes = [{"name": "config", "configMap": {"name": config}}, {"name": "mps-root", "hostPath": {"path": root}}]
    return pod({"name": container, "image": IMAGE, "env": env, "volumeMounts": mounts, **command}, volumes=volumes,
               name=container, **more)


def served(config: str = "sharing", root: str | None = ROOT, **more: Any) -> dict[str, Any]:
    return member("nvidia-device-plugin", config, root, **more)


def daemon(config: str = "sharing", root: str | None = ROOT, **more: Any) -> dict[str, Any]:
    return member("mps-control-daemon", config, root, **more)


def not_ready(of: dict[str, Any]) -> dict[str, Any]:
    of["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    return of


MAPS = (configmaps(mps(4)) | configmaps(mps(8), "eight") | configmaps(sharing(4), "sliced")
        | configmaps("# the same, told otherwise\n" + mps(4, ", failRequestsGreaterThanOne: true"), "same")
        | configmaps(mps(49), "crowd") | configmaps(mps(17), "seventeen"))


def wanted(pods: list[dict[str, Any]], of: dict[str, Any] | None = None, maps: Any = None) -> rules.Wanted:
    return rules.wanted(of or node(gpus=2), pods, maps or MAPS, operator=False)


def reasons(found: rules.Wanted) -> list[tuple[str, str, str]]:
    return [(one.container, one.trouble.reason, one.trouble.message) for one in found.verdicts if one.trouble]


def test_with_its_daemon_the_plugin_offers_the_shares() -> None:
    assert wanted([served(), daemon()]).resources == {GPU: 8}
    assert wanted([daemon(), served("same")]).resources == {GPU: 8}
    assert wanted([served("sliced")]).resources == {GPU: 8}  # time-slicing needs none


@pytest.mark.parametrize(("daemons", "words"), [
    ([], "none on this node"), ([daemon("eight")], "mismatched sharing config"), ([daemon("sliced")], "mismatched"),
    ([daemon(root="/var/mps")], "none on this node that has /run/nvidia/mps at /mps"), ([daemon(root=None)], "none on"),
    ([not_ready(daemon())], "it is not ready"), ([daemon("absent")], "none on this node"),
])
def test_it_waits_and_offers_nothing_without(daemons: list[dict[str, Any]], words: str) -> None:
    found = wanted([served(), *daemons])
    assert found.resources == {}
    name, reason, message = reasons(found)[-1]
    assert (name, reason) == ("nvidia-device-plugin", "")  # the pod runs and is ready; only its log says why
    assert words in message
    assert verdicts.pod_annotation(served(), [one for one in found.verdicts if one.container == name]) is None


def test_a_plugin_without_the_folder_of_the_host_never_finds_its_daemon() -> None:
    [(_, _, message)] = reasons(wanted([served(root=None), daemon()]))
    assert message == "error waiting for MPS daemon: no folder of the host at /mps"


def test_once_registered_it_stays() -> None:
    running = served()
    note = verdicts.pod_annotation(running, wanted([running, daemon()]).verdicts)
    assert note
    running["metadata"]["annotations"] = {verdicts.READ: note}
    assert wanted([running]).resources == {GPU: 8}


def test_a_gpu_takes_48_clients_and_older_ones_16() -> None:
    found = wanted([served("crowd"), daemon("crowd")])
    assert found.resources == {}
    assert reasons(found)[0][:2] == ("mps-control-daemon", "CrashLoopBackOff")
    assert "replicas exceeded: 49 > 48" in reasons(found)[0][2]
    old = node(2, model="V100-PCIE-16GB")
    assert wanted([served("seventeen"), daemon("seventeen")]).resources == {GPU: 34}
    assert "replicas exceeded: 17 > 16" in reasons(wanted([served("seventeen"), daemon("seventeen")], old))[0][2]


def test_the_daemon_needs_a_driver_and_no_mps_root_of_its_own() -> None:
    alone = daemon()
    alone["spec"]["containers"][0]["env"].pop()
    assert wanted([served(), alone]).resources == {GPU: 8}
    found = reasons(wanted([served(), daemon()], node(driver="none")))
    assert [one[:2] for one in found] == [("mps-control-daemon", "CrashLoopBackOff"),
                                          ("nvidia-device-plugin", "CrashLoopBackOff")]


def test_mig_devices_and_mps_do_not_go_together() -> None:
    cut = node(1, model="A100-SXM4-40GB", layout="0=1g.5gb,1g.5gb")
    single = served()
    single["spec"]["containers"][0]["env"].append({"name": "MIG_STRATEGY", "value": "single"})
    [(_, reason, message)] = reasons(wanted([single, daemon()], cut))
    assert (reason, "MIG devices" in message) == ("CrashLoopBackOff", True)
    assert wanted([served(), daemon()], cut).resources == {GPU: 4}  # strategy none: the whole GPU


def test_shares_of_a_resource_that_is_not_there_need_no_daemon() -> None:
    maps = configmaps("sharing: {mps: {resources: [{name: nvidia.com/gpus, replicas: 4}]}}")
    assert wanted([served()], maps=maps).resources == {GPU: 2}


def test_a_plain_plugin_is_served_beside_a_daemon() -> None:
    assert wanted([pod(plugin(config=False)), daemon()]).resources == {GPU: 2}
