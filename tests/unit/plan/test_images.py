"""Images that a stack pulls, for a mirror."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.config.samples import compile_base


def images(base: str, changes: dict[str, Any] | None = None) -> tuple[str, ...]:
    plan = compile_base(base, changes).plan
    assert plan is not None
    return plan.images


def test_the_plugin() -> None:
    assert images("aks-plugin") == ("nvcr.io/nvidia/k8s-device-plugin:v0.20.0",)


@pytest.mark.parametrize(
    ("stack", "image"),
    [
        ({"version": "v0.19.0"}, "nvcr.io/nvidia/k8s-device-plugin:v0.19.0"),
        (
            {"images": {"registry": "mirror.example.com:5000/a/b"}},
            "mirror.example.com:5000/a/b/k8s-device-plugin:v0.20.0",
        ),
        ({"images": {"registry": "mirror"}, "version": "v0.19.0-ubi9"}, "mirror/k8s-device-plugin:v0.19.0-ubi9"),
    ],
)
def test_the_plugin_elsewhere(stack: dict[str, Any], image: str) -> None:
    changes = {f"stack.{k}": v for k, v in stack.items()}
    plan = compile_base("aks-plugin", changes).plan
    assert plan is not None
    assert plan.plugin is not None
    assert plan.images == (image,)
    assert [d.image for d in plan.plugin.daemon_sets] == [image]


def names(found: tuple[str, ...]) -> set[str]:
    return {image.rpartition("/")[2].partition(":")[0] for image in found}


ALWAYS = {"gpu-operator", "k8s-device-plugin", "dcgm-exporter", "node-feature-discovery"}
DRIVER = {"driver", "k8s-driver-manager", "container-toolkit"}


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, DRIVER),
        ({"pools[0].driver": "aks"}, set()),
        ({"stack.values": {"dcgmExporter": {"enabled": True}, "gds": {"enabled": True}}}, DRIVER | {"nvidia-fs"}),
        ({"stack.values": {"gdrcopy": {"enabled": True}}}, DRIVER | {"gdrdrv"}),
        (
            {"stack.values": {"sandboxWorkloads": {"enabled": True}}},
            DRIVER | {"k8s-cc-manager", "vgpu-device-manager", "kubevirt-gpu-device-plugin"}
            | {"nvidia-sandbox-device-plugin"},
        ),
        (
            {"sharing.m": {"strategy": "mig", "instances": {"1g.10gb": 7}}, "pools[0].sharing": "m",
             "pools[0].vmSize": "Standard_NC24ads_A100_v4"},
            DRIVER | {"k8s-mig-manager"},
        ),
    ],
)  # fmt: skip
def test_the_operator_and_what_its_values_switch_on(changes: dict[str, Any], more: set[str]) -> None:
    found = images("aks-operator", {"cluster.version": "1.36", **changes})
    assert list(found) == sorted(set(found))
    assert names(found) == ALWAYS | more
    assert "nvcr.io/nvidia/gpu-operator:v26.7.0" in found


def test_parts_that_the_values_switch_off() -> None:
    off = {"cluster.version": "1.36", "stack.values": {"dcgmExporter": {"enabled": False}}}
    assert names(images("aks-operator", off)) == (ALWAYS | DRIVER) - {"dcgm-exporter"}


@pytest.mark.parametrize(
    ("changes", "tags"),
    [
        ({"cluster.version": "1.36"}, {"595.91.07-ubuntu24.04"}),
        ({"cluster.version": "1.36", "pools[0].osSku": "Ubuntu2204"}, {"595.91.07-ubuntu22.04"}),
        ({"cluster.version": "1.36.2", "pools[0].driverBranch": "580"}, {"580.173.02-ubuntu24.04"}),
    ],
)
def test_the_driver_image_ends_with_the_operating_system(changes: dict[str, Any], tags: set[str]) -> None:
    found = images("aks-operator", changes)
    assert {i for i in found if "nvidia/driver:" in i} == {f"nvcr.io/nvidia/driver:{tag}" for tag in tags}


def test_a_driver_image_of_an_unknown_system_is_said() -> None:
    """Which Ubuntu the nodes run follows the cluster's version, which this stack leaves to AKS."""
    plan = compile_base("aks-operator").plan
    assert plan is not None
    assert not [i for i in plan.images if "nvidia/driver:" in i]
    (line,) = plan.images_unknown
    assert line.startswith("image nvcr.io/nvidia/driver:595.91.07-OS of pools ")


def test_versions_and_names_of_the_stacks_own_values() -> None:
    values = {
        "toolkit": {"version": "v1.19.0", "repository": "r.example.com/x", "image": "ct"},
        "gfd": {"version": "sha256:" + "a" * 64},
    }
    found = images("aks-operator", {"stack.values": values})
    assert "r.example.com/x/ct:v1.19.0" in found
    assert "nvcr.io/nvidia/k8s-device-plugin@sha256:" + "a" * 64 in found
    assert not [i for i in found if "container-toolkit" in i]


def test_an_older_chart_brings_its_own_versions() -> None:
    changes = {"stack.version": "v26.3.3", "stack.values": {"gfd": {"version": "v0.19.2"}}, "cluster.version": "1.36"}
    plan = compile_base("aks-operator", changes).plan
    assert plan is not None
    assert set(plan.images) == {
        "nvcr.io/nvidia/gpu-operator:v26.3.3",
        "nvcr.io/nvidia/driver:580.126.20-ubuntu24.04",
        "nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.11.0",
        "nvcr.io/nvidia/k8s/container-toolkit:v1.19.1",
        "nvcr.io/nvidia/k8s-device-plugin:v0.19.3",
        "nvcr.io/nvidia/k8s-device-plugin:v0.19.2",
        "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless",
    }
    assert plan.images_unknown == (
        "image of node-feature-discovery: the catalogue does not know what the chart v26.3.3 brings",
    )


def test_a_chart_that_no_table_has() -> None:
    given = {"gfd": {"repository": "r/x", "image": "k8s-device-plugin", "version": "v0.18.0"}}
    plan = compile_base("aks-operator", {"stack.version": "v25.10.1", "stack.values": given}).plan
    assert plan is not None
    assert set(plan.images) == {"nvcr.io/nvidia/gpu-operator:v25.10.1", "r/x/k8s-device-plugin:v0.18.0"}
    assert any("image of dcgm-exporter: the catalogue does not know" in line for line in plan.images_unknown)


def test_a_mirror_keeps_names_and_tags() -> None:
    here = images("aks-operator")
    mirrored = images("aks-operator", {"stack.images": {"registry": "mirror/x"}})
    assert set(mirrored) == {f"mirror/x/{i.rpartition('/')[2]}" for i in here}
    assert len(mirrored) == len(here), "two images of one name"


def test_the_operators_chart_pulls_from_the_mirror() -> None:
    """Listing images under the mirror is of no use while the values still name the vendor's registry."""
    changes = {
        "stack.images": {"registry": "mirror/x"},
        "stack.values": {"toolkit": {"repository": "mine/y"}},
    }
    plan = compile_base("aks-operator", changes).plan
    assert plan is not None
    assert plan.operator is not None
    values = plan.operator.values

    def repositories(value: Any, path: str = "") -> dict[str, str]:
        found = {}
        for key, item in value.items():
            if key == "repository":
                found[path] = item
            elif isinstance(item, dict):
                found |= repositories(item, f"{path}.{key}".lstrip("."))
        return found

    found = repositories(values)
    assert found.pop("toolkit") == "mine/y"
    assert found.pop("node-feature-discovery.image") == "mirror/x/node-feature-discovery"
    assert set(found.values()) == {"mirror/x"}
    assert {
        "operator",
        "validator",
        "driver",
        "driver.manager",
        "devicePlugin",
        "gfd",
        "dcgmExporter",
        "migManager",
    } <= set(found)


def test_without_a_mirror_no_repository_is_set() -> None:
    plan = compile_base("aks-operator").plan
    assert plan is not None
    assert "repository" not in plan.as_json().replace('"repository": "https://helm.ngc.nvidia.com/nvidia"', "")


def test_pull_secrets_of_the_plugin() -> None:
    plan = compile_base("aks-plugin", {"stack.images": {"pullSecrets": ["a"]}}).plan
    assert plan is not None
    assert plan.plugin is not None
    assert plan.plugin.pull_secrets == ("a",)


HAMI = {"sharing.h": {"strategy": "hami"}, "pools[0].sharing": "h", "cluster.version": "1.36.2"}
OF_HAMI = {"hami:v2.10.0", "kube-scheduler:v1.36.2", "kube-webhook-certgen:v1.1.1"}


@pytest.mark.parametrize(("base", "beside"), [("existing-plugin", set()), ("existing-operator", ALWAYS)])
def test_hami_brings_images_of_its_own(base: str, beside: set[str]) -> None:
    found = images(base, HAMI)
    assert {i.rpartition("/")[2] for i in found if i.rpartition("/")[2] in OF_HAMI} == OF_HAMI
    assert names(found) - {i.partition(":")[0] for i in OF_HAMI} == beside


def test_hami_pulls_from_the_stacks_registry() -> None:
    changes = {**HAMI, "stack.images": {"registry": "mirror:5000/x", "pullSecrets": ["a"]}}
    plan = compile_base("existing-plugin", changes).plan
    assert plan is not None and plan.artifact("hami") is not None
    assert set(plan.images) == {f"mirror:5000/x/{i}" for i in OF_HAMI}
    values = plan.artifact("hami").values
    assert values["global"] == {"imagePullSecrets": ["a"]}
    scheduler, plugin = values["scheduler"], values["devicePlugin"]
    parts = {
        "hami": [scheduler["extender"], plugin, plugin["monitor"]],
        "kube-scheduler": [scheduler["kubeScheduler"]],
    }
    for name, owners in parts.items():
        for owner in owners:
            assert owner["image"] == {"registry": "mirror:5000/x", "repository": name}
    assert scheduler["patch"]["imageNew"] == {"registry": "mirror:5000/x", "repository": "kube-webhook-certgen"}
    for path in ("extender.image", "kubeScheduler.image", "patch.imageNew"):
        assert hami_chart_knows(["scheduler", *path.split("."), "registry"])
    assert hami_chart_knows(["devicePlugin", "monitor", "image", "repository"])
    assert hami_chart_knows(["global", "imagePullSecrets"]) and not hami_chart_knows(["global", "pullSecrets"])


def hami_chart_knows(path: list[str]) -> bool:
    """Whether the strict schema of the chart's stand-in has the path."""
    schema = json.loads((Path(__file__).parents[3] / "twin/chart/hami/values.schema.json").read_text())
    node = schema
    for part in path:
        node = node.get("properties", {}).get(part)
        if node is None:
            return False
        if "$ref" in node:
            node = schema["definitions"][node["$ref"].rpartition("/")[2]]
    return True
