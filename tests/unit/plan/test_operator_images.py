"""Every image that the operator's release pulls, by its parts; registry and pull secret on all of them.

The lists below are those of NVIDIA/gpu-operator v26.7.0: values.yaml, state_manager.go and object_controls.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.config.samples import compile_base

HERE = {"cluster.distribution": "kubeadm", "pools[0].os": "ubuntu-22.04"}
OWN = {**HERE, "pools[0].driver": "operator"}
NV, K8S, NATIVE = "nvcr.io/nvidia", "nvcr.io/nvidia/k8s", "nvcr.io/nvidia/cloud-native"

#: Without a driver of the operator: the operator with its validator, plugin (also MPS daemon and config-manager) and
#: feature discovery, exporter, and the subchart.
BASE = {
    f"{NV}/gpu-operator:v26.7.0",
    f"{NV}/k8s-device-plugin:v0.20.0",
    f"{K8S}/dcgm-exporter:4.6.0-4.8.3-distroless",
    "registry.k8s.io/nfd/node-feature-discovery:v0.19.0",
}
#: What the operator's driver and toolkit add.
DRIVER = {
    f"{NV}/driver:595.91.07-ubuntu22.04",
    f"{NATIVE}/k8s-driver-manager:v0.12.0",
    f"{K8S}/container-toolkit:v1.20.0",
}
SANDBOX = {
    f"{NATIVE}/k8s-driver-manager:v0.12.0",
    f"{NATIVE}/vgpu-device-manager:v0.5.0",
    f"{NV}/kubevirt-gpu-device-plugin:v1.6.0",
    f"{NATIVE}/nvidia-sandbox-device-plugin:v0.0.5",
    f"{NATIVE}/k8s-cc-manager:v0.4.3",
}
MIG = {
    "sharing.m": {"strategy": "mig", "instances": {"1g.5gb": 7}},
    "pools[0].sharing": "m",
    "pools[0].gpu": "A100-SXM4-40GB",
}
ON = {"enabled": True}
VGPU = {"enabled": True, "repository": "r.example.com/x", "version": "580.1"}


def lists(changes: dict[str, Any], values: dict[str, Any]) -> tuple[set[str], tuple[str, ...]]:
    plan = compile_base("existing-operator", {**changes, "stack.values": values}).plan
    assert plan is not None
    return set(plan.images), plan.images_unknown


@pytest.mark.parametrize(
    ("changes", "values", "images"),
    [
        (HERE, {}, BASE),
        (OWN, {}, BASE | DRIVER),
        (HERE, {"dcgmExporter": {"enabled": False}}, BASE - {f"{K8S}/dcgm-exporter:4.6.0-4.8.3-distroless"}),
        (HERE, {"dcgm": ON}, BASE | {f"{NATIVE}/dcgm:4.6.0-1-ubuntu24.04"}),
        (HERE, {"nodeStatusExporter": ON}, BASE),
        (HERE, {"nodeStatusExporter": {**ON, "version": "v26.3.3"}}, BASE | {f"{NV}/gpu-operator:v26.3.3"}),
        (HERE, {"validator": {"version": ""}, "node-feature-discovery": {"image": {"tag": ""}}}, BASE),
        (HERE, {"operator": {"version": "v26.7.1"}}, BASE | {f"{NV}/gpu-operator:v26.7.1"}),
        (OWN, {"gds": ON, "gdrcopy": ON},
         BASE | DRIVER | {f"{NATIVE}/nvidia-fs:2.29.4-ubuntu22.04", f"{NATIVE}/gdrdrv:v2.6-ubuntu22.04"}),
        (HERE, {"gds": ON, "gdrcopy": ON}, BASE),
        (HERE, {"sandboxWorkloads": ON}, BASE | SANDBOX),
        (HERE, {"sandboxWorkloads": ON, "vfioManager": {"enabled": False}, "ccManager": {"enabled": False}},
         BASE | SANDBOX - {f"{NATIVE}/k8s-driver-manager:v0.12.0", f"{NATIVE}/k8s-cc-manager:v0.4.3"}),
        (HERE, {"vfioManager": ON, "ccManager": ON}, BASE),
        (OWN, {"sandboxWorkloads": ON, "vgpuManager": VGPU},
         BASE | DRIVER | SANDBOX | {"r.example.com/x/vgpu-manager:580.1-ubuntu22.04"}),
        (HERE, {"sandboxWorkloads": ON, "vgpuManager": VGPU},
         BASE | SANDBOX | {"r.example.com/x/vgpu-manager:580.1-ubuntu22.04"}),
        (HERE, {"sandboxWorkloads": ON, "vfioManager": {"driverManager": {"version": "v0.11.0"}}},
         BASE | SANDBOX | {f"{NATIVE}/k8s-driver-manager:v0.11.0"}),
        ({**OWN, **MIG}, {}, BASE | DRIVER | {f"{NATIVE}/k8s-mig-manager:v0.15.0"}),
        (HERE, {"node-feature-discovery": {"image": {"tag": "v0.19.1", "repository": "r/nfd"}}},
         BASE - {"registry.k8s.io/nfd/node-feature-discovery:v0.19.0"} | {"r/nfd:v0.19.1"}),
        ({**OWN, "pools[0].driverBranch": "580"}, {}, BASE | DRIVER - {f"{NV}/driver:595.91.07-ubuntu22.04"}
         | {f"{NV}/driver:580.173.02-ubuntu22.04"}),
    ],
)  # fmt: skip
def test_the_list_of_images(changes: dict[str, Any], values: dict[str, Any], images: set[str]) -> None:
    """RP-17: exactly what the operator pulls, with the operating system where the operator appends it."""
    assert lists(changes, values) == (images, ())


def test_a_list_for_precompiled_drivers() -> None:
    """RP-15: tagged by branch, kernel and system, so that nobody knows the image before the kernel."""
    images, unknown = lists({**OWN, "pools[0].driverBranch": "580"}, {"driver": {"usePrecompiled": True}})
    assert not [i for i in images if "/driver:" in i]
    (line,) = unknown
    assert line.startswith("image nvcr.io/nvidia/driver:580-KERNEL-ubuntu22.04: one image for each kernel")


def test_a_digest_is_taken_as_it_is() -> None:
    digest = "sha256:" + "a" * 64
    images, unknown = lists(OWN, {"gds": {**ON, "version": digest}})
    assert f"{NATIVE}/nvidia-fs@{digest}" in images and unknown == ()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"sandboxWorkloads": ON, "vgpuManager": ON}, "image of vgpu-manager: neither values nor chart name its "
         "repository and version"),
        ({"toolkit": {"repository": ""}}, "image of operator-toolkit: neither values nor chart name its repository"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said(values: dict[str, Any], says: str) -> None:
    assert says in lists(OWN, values)[1]


def test_a_system_without_a_known_tag_is_said_for_each_image() -> None:
    nothing_said = {"cluster.distribution": "kubeadm", "pools[0].driver": "operator"}
    images, unknown = lists(nothing_said, {"gds": ON})
    assert not [i for i in images if "nvidia-fs" in i]
    assert [line.partition(" of pools")[0] for line in unknown] == [
        f"image {NV}/driver:595.91.07-OS",
        f"image {NATIVE}/nvidia-fs:2.29.4-OS",
    ]


@pytest.mark.parametrize(
    ("os", "end"),
    [("ubuntu-22.04", "ubuntu22.04"), ("rhel-9.6", "rhel9"), ("rocky-10.1", "rocky10"), ("rhel-10.1", "rhel10")],
)
def test_tags_carry_the_system_as_the_operator_writes_it(os: str, end: str) -> None:
    """RP-17; from v26.7.0 on RHEL and Rocky Linux by their major number (cloud-native-docs, platform-support)."""
    images, unknown = lists({**HERE, "pools[0].driver": "operator", "pools[0].os": os}, {"gds": ON, "gdrcopy": ON})
    wanted = (f"{NV}/driver:595.91.07", f"{NATIVE}/nvidia-fs:2.29.4", f"{NATIVE}/gdrdrv:v2.6")
    assert {f"{image}-{end}" for image in wanted} <= set(images)
    assert not unknown


OFF_BY_DEFAULT = ("dcgm", "nodeStatusExporter", "gds", "gdrcopy", "sandboxWorkloads", "vfioManager")
EVERYTHING = {**dict.fromkeys(OFF_BY_DEFAULT, ON), "vgpuManager": VGPU}
#: Parts with a repository of their own; the last ones are containers in the pods of others.
PARTS = (
    "operator", "validator", "driver", "toolkit", "devicePlugin", "gfd", "dcgm", "dcgmExporter", "nodeStatusExporter",
    "gds", "gdrcopy", "vgpuManager", "vgpuDeviceManager", "vfioManager", "sandboxDevicePlugin",
    "kataSandboxDevicePlugin", "ccManager",
)  # fmt: skip
IN_PODS = ("driver.manager", "vgpuManager.driverManager", "vfioManager.driverManager")


def at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values


def test_registry_and_pull_secret_on_every_part() -> None:
    """RP-17: each part has a repository of its own, so one that is forgotten pulls from the vendor."""
    changes = {**OWN, "stack.images": {"registry": "reg.example.com:5000/nv", "pullSecrets": ["regcred"]}}
    plan = compile_base("existing-operator", {**changes, "stack.values": EVERYTHING}).plan
    assert plan is not None and plan.operator is not None
    values = plan.operator.values
    own = {p: at(values, f"{p}.repository") for p in (*PARTS, *IN_PODS)}
    assert own == {**dict.fromkeys(own, "reg.example.com:5000/nv"), "vgpuManager": "r.example.com/x"}
    assert at(values, "node-feature-discovery.image.repository") == "reg.example.com:5000/nv/node-feature-discovery"
    assert {p: at(values, f"{p}.imagePullSecrets") for p in PARTS} == {p: ["regcred"] for p in PARTS}
    assert at(values, "node-feature-discovery.imagePullSecrets") == [{"name": "regcred"}]
    assert not [p for p in IN_PODS if "imagePullSecrets" in at(values, p)], "the chart takes none there"
    elsewhere = [i for i in plan.images if not i.startswith(("reg.example.com:5000/nv/", "r.example.com/x/"))]
    assert elsewhere == [] and plan.images_unknown == ()


def test_a_registry_reaches_parts_of_the_chosen_release_only() -> None:
    plan = compile_base("aks-operator", {"stack.version": "v26.3.3", "stack.images": {"registry": "mirror"}}).plan
    assert plan is not None and plan.operator is not None
    assert "draDriver" not in plan.operator.values
