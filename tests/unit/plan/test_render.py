"""The plan in plain words: what a reviewer reads."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.plan.render import render, table

from tests.unit.config.samples import REMOVE, compile_base


def shown(base: str, changes: dict[str, Any] | None = None) -> str:
    compiled = compile_base(base, changes)
    return render(compiled.name, compiled.plan, compiled.found)


RICH = {
    "sharing.half": {"strategy": "timeSlicing", "replicas": 2, "renameByDefault": True},
    "pools[0].sharing": "half",
    "pools[0].taints": ["sku=gpu:NoSchedule"],
    "pools[0].count": REMOVE,
    "pools[0].autoscale": {"min": 1, "max": 3},
    "teams": [{"name": "vision", "namespace": "vis", "pools": ["t4"], "quota": {"gpu": 4}}],
}


def test_aks_with_the_plugin() -> None:
    lines = shown("aks-plugin", RICH).splitlines()
    assert "stack test: AKS cluster dev, plugin route" in lines
    row = next(line for line in lines if line.startswith("t4 "))
    assert row.split("  ")[0] == "t4"
    for part in ("1 to 3", "1 x T4", "half", "nvidia.com/gpu.shared: 2", "7.5 GiB"):
        assert part in row
    for line in (
        "  driver      AKS installs it",
        "  taints      sku=gpu:NoSchedule",
        "  labels      gpufleet.dev/pool=t4",
        "  autoscaler  1 to 3 nodes, 2 pods per node, 2 to 6 pods",
        "device plugin, namespace gpu-plugin:",
        "  DaemonSet gpufleet-plugin-half on pools t4",
        "team vision, namespace vis, quota requests.nvidia.com/gpu.shared: 4",
        "  nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
    ):
        assert line in lines
    assert any("(gpuProfile.driver: Install)" in line for line in lines)
    assert any("tolerates sku=gpu:NoSchedule" in line for line in lines)
    assert any("ask for nvidia.com/gpu.shared: 1" in line and "tolerate sku=gpu:NoSchedule" in line for line in lines)
    assert lines[-1] == "test: no errors or warnings.", "notes are shown, and not counted"


def test_an_existing_cluster_with_the_operator() -> None:
    text = shown("existing-operator", {"pools[0].hosts": {"n2": {}, "n1": {}}})
    for part in (
        "stack test: existing cluster idc, operator route",
        "  driver      the Ansible roles install it on the host",
        "  nodes       n1, n2",
        "GPU Operator v26.7.0, namespace gpu-operator, release gpu-operator:",
        "  driver off, toolkit off, CDI on, runtime class nvidia",
        "keys unshared, default unshared",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("base", "changes", "part"),
    [
        ("aks-plugin", {"pools[0].driver": "none"}, "nobody installs it"),
        ("aks-plugin", {"pools[0].driver": "none"}, "nothing"),
        ("existing-plugin", {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"a": "b"}}, "by selector"),
        ("existing-plugin", {}, "runtime class nvidia"),
        ("existing-plugin", {}, "tolerates nothing"),
    ],
)
def test_parts(base: str, changes: dict[str, Any], part: str) -> None:
    assert part in shown(base, changes)


def test_errors_stand_first_and_nothing_is_planned() -> None:
    text = shown("aks-plugin", {"pools[0].driver": "operator", "sharing.spare": {"strategy": "none"}})
    blocks = text.split("\n\n")
    assert blocks[0].startswith("error GF202 pools[0].driver  stacks/Pulumi.test.yaml:")
    assert blocks[1].startswith("warning GF303 sharing.spare")
    assert blocks[-1] == "test: 1 error, 1 warning. Nothing was planned."
    assert "stack test:" not in text


def test_warnings_stand_above_the_plan() -> None:
    text = shown("aks-plugin", {"sharing.spare": {"strategy": "none"}})
    assert text.index("warning GF303") < text.index("stack test:")
    assert text.endswith("test: 1 warning.")


def test_an_acknowledged_warning_is_one_line_with_its_reason() -> None:
    text = shown("aks-plugin", {"sharing.spare": {"strategy": "none"}, "acknowledge": {"GF303": "for next week"}})
    assert "warning GF303 sharing.spare  stacks/Pulumi.test.yaml:13: acknowledged, for next week" in text
    assert "No pool uses" not in text
    assert text.endswith("test: no errors or warnings, 1 acknowledged.")


def test_an_error_stays_an_error_whatever_is_acknowledged() -> None:
    text = shown("aks-plugin", {"pools[0].driver": "operator", "acknowledge": {"GF202": "we know"}})
    assert "error GF202" in text
    assert "error GF111" in text


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(("a", "bb"), [("1", "2"), ("333", "4")]) == ["a    bb", "---  --", "1    2", "333  4"]
    assert table(("a",), []) == ["a", "-"]
