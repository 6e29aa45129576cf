"""Versions that are known to fail, and branches that have ended, said by the plan."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.catalog import driver_branches
from gpufleet.rules.known_bad import known_on

from tests.unit.config.samples import compile_data, the_one, told

CODES = ("GF270", "GF271", "GF272")


def stack(
    distribution: str, pool: dict[str, Any], route: dict[str, Any], sharing: dict[str, Any] | None = None
) -> dict[str, Any]:
    """One pool on an existing cluster."""
    cluster = {"kind": "existing", "name": "lab", "site": "lab", "distribution": distribution}
    own = {"name": "p", "hosts": {"gpu01": {"address": "10.0.0.11"}}, "gpusPerNode": 1, "os": "ubuntu-22.04"}
    return {
        "cluster": {**cluster, "kubeconfig": {"path": "k.conf"}},
        "pools": [{**own, **pool}],
        "stack": route,
        **({"sharing": sharing} if sharing else {}),
    }


def said(data: dict[str, Any]) -> list[tuple[str, str]]:
    return [row for row in told(compile_data(data)) if row[0] in CODES]


A2, MPS = {"gpu": "A2", "driver": "operator"}, {"m": {"strategy": "mps", "replicas": 10}}
SHARED = {"s": {"strategy": "timeSlicing", "replicas": 4}}
VERSION = "pools[0].driverVersion"
B200 = {"gpu": "B200", "gpusPerNode": 8, "os": "ubuntu-24.04"}


def operator(version: str, **values: Any) -> dict[str, Any]:
    return {"kind": "operator", "version": version, **({"values": values} if values else {})}


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (stack("k3s", A2, operator("v25.3.3")), [("GF270", "stack.version")]),
        (stack("rke2", A2, operator("v25.3.3")), [("GF270", "stack.version")]),
        (stack("k3s", A2, operator("v25.3.2")), []),
        (stack("k3s", A2, operator("v25.3.4")), []),
        (stack("kubeadm", A2, operator("v25.3.3")), []),  # the usual socket
        (stack("k3s", {**A2, "driver": "host"}, operator("v25.3.3")), []),  # no toolkit of the operator
    ],
)
def test_rp_31_operator_and_distribution(data: dict[str, Any], wanted: list[tuple[str, str]]) -> None:
    assert said(data) == wanted


def test_a_toolkit_that_reads_the_file() -> None:
    old = operator("v26.7.0", toolkit={"version": "v1.19.1"})
    assert said(stack("microk8s", A2, old)) == [("GF271", "stack.values.toolkit.version")]
    assert said(stack("kubeadm", A2, old)) == []
    assert said(stack("microk8s", A2, operator("v26.7.0", toolkit={"version": "v1.20.0"}))) == []


def test_rp_31_says_what_to_use() -> None:
    found = the_one(compile_data(stack("k3s", A2, operator("v25.3.3"))), "GF270")
    assert "v25.3.3" in found.message and "NVIDIA/gpu-operator#1694" in found.reason
    assert found.remedy == "Use v25.3.4 or a later release."


@pytest.mark.parametrize(
    ("sharing", "route", "wanted"),
    [
        (MPS, operator("v26.3.0"), [("GF270", "stack.version")]),
        (MPS, operator("v26.7.0"), []),
        (MPS, operator("v25.10.1"), []),
        (SHARED, operator("v26.3.0"), []),
        (MPS, operator("v26.7.0", devicePlugin={"version": "v0.19.0"}),
         [("GF270", "stack.values.devicePlugin.version")]),
        (MPS, operator("v26.3.0", devicePlugin={"version": "v0.20.0"}), []),  # another plugin than the release's
        (MPS, {"kind": "plugin", "version": "v0.19.0"}, []),  # one DaemonSet per profile, no config-manager
        (SHARED, operator("v26.7.0", dcgmExporter={"version": "4.4.2-4.7.0"}),
         [("GF271", "stack.values.dcgmExporter.version")]),
        (None, operator("v26.7.0", dcgmExporter={"version": "4.4.2-4.7.0"}), []),  # nothing is shared
    ],
)  # fmt: skip
def test_rp_32_plugin_and_exporter(
    sharing: dict[str, Any] | None, route: dict[str, Any], wanted: list[tuple[str, str]]
) -> None:
    owner = {"driver": "host"} if route["kind"] == "plugin" else {}
    pool = {**A2, **owner, **({"sharing": next(iter(sharing))} if sharing else {})}
    assert said(stack("kubeadm", pool, route, sharing)) == wanted


@pytest.mark.parametrize(
    ("pool", "wanted"),
    [
        ({**B200, "driverVersion": "570.133.20"}, [("GF272", VERSION), ("GF271", VERSION)]),
        ({**B200, "driverVersion": "580.105.08"}, [("GF271", VERSION)]),
        ({**B200, "driverVersion": "580.126.09"}, []),
        ({**B200}, []),
        ({"gpu": "H200", "driverVersion": "570.133.20"}, [("GF272", "pools[0].driverVersion")]),
        ({"gpu": "H100-SXM5-80GB", "gpusPerNode": 8, "driverVersion": "535.309.01",
          "hostDriver": {"flavour": "open"}}, [("GF270", VERSION), ("GF272", VERSION)]),
        ({"gpu": "H100-SXM5-80GB", "gpusPerNode": 8, "driverVersion": "535.309.01",
          "hostDriver": {"flavour": "proprietary"}}, [("GF272", "pools[0].driverVersion")]),
        ({"gpu": "T4", "driverBranch": "535"}, [("GF272", "pools[0].driverBranch")]),
        ({"gpu": "T4", "driverBranch": "580"}, []),
        ({"gpu": "T4"}, []),
    ],
)  # fmt: skip
def test_rp_33_driver_and_gpu(pool: dict[str, Any], wanted: list[tuple[str, str]]) -> None:
    assert said(stack("kubeadm", {"driver": "host", **pool}, {"kind": "plugin"})) == wanted


def test_rp_33_the_operators_driver_too() -> None:
    data = stack("kubeadm", {**B200, "driver": "operator", "driverVersion": "570.133.20"}, operator("v26.7.0"))
    assert said(data) == [("GF272", "pools[0].driverVersion"), ("GF271", "pools[0].driverVersion")]
    fabric = stack("kubeadm", {**B200, "driver": "operator"}, operator("v26.3.3"))
    assert said(fabric) == [("GF271", "stack.version")]
    assert said(stack("kubeadm", {**B200, "driver": "host"}, operator("v26.3.3"))) == []


def test_an_ended_branch_is_told_with_one_that_drives_the_gpu() -> None:
    found = the_one(compile_data(stack("kubeadm", {"gpu": "V100-PCIE-32GB", "driver": "host", "driverBranch": "535"},
                                       {"kind": "plugin"})), "GF272")  # fmt: skip
    assert "2026-06" in found.message and found.remedy == "Set `driverBranch: 580`."


def test_the_plan_is_the_same_on_every_day() -> None:
    """Ended is what had ended when the table was last read, not today."""
    assert known_on().strftime("%Y-%m") == max(row.as_of[:7] for row in driver_branches().values())
