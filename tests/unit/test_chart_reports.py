"""Reports about chart values and images, each as somebody had it; the test's id names the report."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.findings.finding import Severity

from tests.unit.config.samples import compile_base, the_one
from tests.unit.lint.told import one
from tests.unit.lint.told import told as lint_told

LAB = {"cluster.distribution": "kubeadm", "pools[0].gpu": "A100-SXM4-80GB", "pools[0].gpusPerNode": 8}
OWN = {**LAB, "pools[0].driver": "operator", "pools[0].os": "ubuntu-22.04"}


def compiled(values: dict[str, Any], **more: Any) -> Any:
    return compile_base("existing-operator", {**OWN, "stack.values": values, **more})


#: Report -> values, and of each finding code, path, closest, and what is said.
REFUSED: dict[str, tuple[dict[str, Any], list[tuple[str, str, str | None, str]]]] = {
    "RP-13": ({"gpuCluster": {"deployCR": True}},
              [("GF252", "gpuCluster.deployCR", None, "gpuCluster excludes the ClusterPolicy")]),
    "RP-14": ({"driver": {"usePrecompield": True, "rdma": {"enable": True}}},
              [("GF250", "driver.usePrecompield", "usePrecompiled", "Write `usePrecompiled`"),
               ("GF250", "driver.rdma.enable", "enabled", "Write `enabled`")]),
    "RP-78-driver": ({"driver": True}, [("GF251", "driver", None, "Write e.g. `driver: {enabled: true}`")]),
    "RP-78-plugin": ({"devicePlugin": [1]},
                     [("GF251", "devicePlugin", None, "Write e.g. `devicePlugin: {enabled: true}`")]),
}  # fmt: skip


@pytest.mark.parametrize("report", REFUSED)
def test_refused(report: str) -> None:
    values, expected = REFUSED[report]
    found = compiled(values).found
    assert [(d.code, d.path, d.closest, d.severity) for d in found] == [
        (code, f"stack.values.{path}", closest, Severity.ERROR) for code, path, closest, _ in expected
    ]
    for finding, (_, _, _, says) in zip(found, expected, strict=True):
        assert says in f"{finding.reason} {finding.remedy}" and finding.line


@pytest.mark.parametrize(
    ("report", "values", "images", "unknown"),
    [
        ("RP-15", {"driver": {"usePrecompiled": True}}, (), "driver:580-KERNEL-ubuntu22.04"),
        ("RP-17", {"gds": {"enabled": True}, "gdrcopy": {"enabled": True}},
         ("nvidia-fs:2.29.4-ubuntu22.04", "gdrdrv:v2.6-ubuntu22.04", "driver:580.173.02-ubuntu22.04"), ""),
    ],
)  # fmt: skip
def test_images(report: str, values: dict[str, Any], images: tuple[str, ...], unknown: str) -> None:
    registry = {"stack.images": {"registry": "reg.example.com:5000/nv"}, "pools[0].driverBranch": "580"}
    plan = compiled(values, **registry).plan
    assert plan is not None
    assert {f"reg.example.com:5000/nv/{image}" for image in images} <= set(plan.images)
    assert any(unknown in line for line in plan.images_unknown) if unknown else plan.images_unknown == ()


DRA = """\
nvidiaDriverRoot: /run/nvidia/driver
gpuResourcesEnabledOverride: true
resources: {gpus: {enabled: true}, computeDomains: {enabled: false}}
featureGates: {TimeSlicingSettings: true}
kubeletPlugin: {tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}
"""


@pytest.mark.parametrize(("report", "text", "chart"), [("RP-25", DRA, "dra-driver-nvidia-gpu")])
def test_no_error_in_lint(report: str, text: str, chart: str) -> None:
    assert [d.severity for d in lint_told(text)] == [Severity.NOTE]
    assert one("GF576", text).value == chart


@pytest.mark.parametrize("report", ["RP-14"])
def test_the_same_slips_in_lint(report: str) -> None:
    found = lint_told("driver: {usePrecompield: true, rdma: {enable: true}}\ndcgmExporter: {enabled: true}\n")
    assert [(d.code, d.path, d.closest) for d in found] == [
        ("GF550", "driver.usePrecompield", "usePrecompiled"),
        ("GF550", "driver.rdma.enable", "enabled"),
    ]
    whole = compiled({"driver": {"usePrecompield": True}})
    assert the_one(whole, "GF250").closest == "usePrecompiled"
