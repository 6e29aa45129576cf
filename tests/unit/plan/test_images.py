"""Images that a stack pulls, for a mirror."""

from __future__ import annotations

from typing import Any

import pytest

from infra.catalog import components_of
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
        ({"images": {"registry": "mirror"}, "version": "v1"}, "mirror/k8s-device-plugin:v1"),
    ],
)
def test_the_plugin_elsewhere(stack: dict[str, Any], image: str) -> None:
    changes = {f"stack.{k}": v for k, v in stack.items()}
    plan = compile_base("aks-plugin", changes).plan
    assert plan is not None
    assert plan.plugin is not None
    assert plan.images == (image,)
    assert [d.image for d in plan.plugin.daemon_sets] == [image]


def test_the_operator_and_all_that_it_brings() -> None:
    found = images("aks-operator")
    assert list(found) == sorted(set(found))
    for image in ("gpu-operator:v26.7.0", "k8s-device-plugin:v0.20.0", "k8s/container-toolkit:v1.20.0"):
        assert f"nvcr.io/nvidia/{image}" in found
    known = {c.image for c in components_of("gpu-operator") if c.image}
    assert known <= set(found)
    assert all(":" in image for image in found)


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
