"""One word per pool decides what AKS, operator, plugin and node labels say (design, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from gpufleet.plan.model import Plan

from tests.unit.config.samples import compile_base, told

AKS_CLASS, NVIDIA = "nvidia-container-runtime", "nvidia"
#: What several owners under one release need.
NO_CDI = {"stack.values.cdi.enabled": False}
OFF = {"nvidia.com/gpu.deploy.driver": "false"}
OFF_BOTH = {**OFF, "nvidia.com/gpu.deploy.container-toolkit": "false"}
NO_OPERANDS = {"nvidia.com/gpu.deploy.operands": "false"}


@dataclass(frozen=True)
class Row:
    """`refused` by this code, or planned: AKS driver, operator's driver and toolkit, runtime class, node labels.

    On the plugin route `driver` and `toolkit` are None, and `runtime` is the class of the plugin's pods.
    """

    cluster: str
    owner: str
    route: str
    refused: str | None = None
    aks: str | None = None
    driver: bool | None = None
    toolkit: bool | None = None
    runtime: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    served: bool = True

    def __str__(self) -> str:
        return f"{self.cluster}-{self.owner}-{self.route}"


TABLE = [
    Row("aks", "aks", "operator", aks="Install", driver=False, toolkit=False, runtime=AKS_CLASS,
        labels=tuple(OFF_BOTH.items())),
    Row("aks", "aks", "plugin", aks="Install"),
    Row("aks", "operator", "operator", aks="None", driver=True, toolkit=True, runtime=NVIDIA),
    Row("aks", "operator", "plugin", refused="GF202"),
    Row("aks", "host", "operator", refused="GF201"),
    Row("aks", "host", "plugin", refused="GF201"),
    Row("aks", "managed", "operator", refused="GF203"),
    Row("aks", "managed", "plugin", refused="GF203"),
    Row("aks", "none", "operator", aks="None", driver=False, toolkit=False, runtime=AKS_CLASS,
        labels=tuple(NO_OPERANDS.items()), served=False),
    Row("aks", "none", "plugin", aks="None", served=False),
    Row("existing", "host", "operator", driver=False, toolkit=False, runtime=NVIDIA),
    Row("existing", "host", "plugin", runtime=NVIDIA),
    Row("existing", "operator", "operator", driver=True, toolkit=True, runtime=NVIDIA),
    Row("existing", "operator", "plugin", refused="GF202"),
    Row("existing", "aks", "operator", refused="GF201"),
    Row("existing", "aks", "plugin", refused="GF201"),
    Row("existing", "managed", "operator", refused="GF201"),
    Row("existing", "managed", "plugin", refused="GF201"),
    Row("existing", "none", "operator", driver=False, toolkit=False, runtime=NVIDIA,
        labels=tuple(NO_OPERANDS.items()), served=False),
    Row("existing", "none", "plugin", served=False),
]  # fmt: skip


def _plan(base: str, changes: dict[str, Any]) -> Plan:
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


def _deploy_labels(labels: dict[str, str]) -> dict[str, str]:
    return {k: v for k, v in labels.items() if k.startswith("nvidia.com/gpu.deploy.")}


def test_the_table_is_complete() -> None:
    assert {(r.cluster, r.owner, r.route) for r in TABLE} == {
        (c, o, r)
        for c in ("aks", "existing")
        for o in ("aks", "operator", "host", "managed", "none")
        for r in ("plugin", "operator")
    }


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_row(row: Row) -> None:
    base = f"{row.cluster}-{row.route}"
    if row.refused:
        compiled = compile_base(base, {"pools[0].driver": row.owner})
        assert compiled.plan is None
        assert (row.refused, "pools[0].driver") in told(compiled)
        return
    plan = _plan(base, {"pools[0].driver": row.owner})
    pool = plan.pools[0]
    assert pool.driver_owner == row.owner
    assert (pool.resource.driver if pool.resource and row.aks else None) == row.aks
    assert _deploy_labels(pool.labels) == dict(row.labels)
    assert (pool.profile is not None) == row.served
    assert [p.name for p in plan.profiles] == (["unshared"] if row.served else [])
    method = {"gpufleet.dev/method": "none"} if row.cluster == "existing" and row.served else {}
    assert {k: v for k, v in pool.labels.items() if k.startswith("gpufleet.dev/")} == {
        "gpufleet.dev/pool": "t4",
        **method,
    }
    assert (pool.node.resources == {"nvidia.com/gpu": 1}) == row.served
    if row.route == "plugin":
        assert plan.operator is None
        assert plan.plugin is not None
        assert [d.pools for d in plan.plugin.daemon_sets] == ([("t4",)] if row.served else [])
        assert [d.runtime_class for d in plan.plugin.daemon_sets] == ([row.runtime] if row.served else [])
        return
    assert plan.plugin is None
    assert plan.operator is not None
    values = plan.operator.values
    assert values["driver"]["enabled"] is row.driver
    assert values["toolkit"]["enabled"] is row.toolkit
    assert values["operator"]["runtimeClass"] == row.runtime
    assert values["devicePlugin"]["enabled"] is True
    assert ("version" in values["driver"]) is False


def test_toolkit_on_aks_reads_the_file_and_not_the_command() -> None:
    """AKS's containerd file has version 2; a drop-in from `containerd config dump` stops containerd (aicr#1688)."""
    plan = _plan("aks-operator", {})
    assert plan.operator is not None
    assert plan.operator.values["toolkit"]["env"] == [{"name": "RUNTIME_CONFIG_SOURCE", "value": "file"}]


@pytest.mark.parametrize(
    ("distribution", "env"),
    [
        ("k3s", {"CONTAINERD_SOCKET": "/run/k3s/containerd/containerd.sock"}),
        ("rke2", {"CONTAINERD_SOCKET": "/run/k3s/containerd/containerd.sock"}),
        (
            "kubeadm",
            {
                "CONTAINERD_CONFIG": "/etc/containerd/config.toml",
                "CONTAINERD_RUNTIME_CLASS": "nvidia",
                "CONTAINERD_SOCKET": "/run/containerd/containerd.sock",
                "RUNTIME_DROP_IN_CONFIG": "/etc/containerd/conf.d/99-nvidia.toml",
            },
        ),
        (
            "microk8s",
            {
                "CONTAINERD_CONFIG": "/var/snap/microk8s/current/args/containerd-template.toml",
                "CONTAINERD_SOCKET": "/var/snap/microk8s/common/run/containerd.sock",
                "RUNTIME_CONFIG_SOURCE": "file=/var/snap/microk8s/current/args/containerd.toml",
            },
        ),
    ],
)
def test_toolkit_finds_the_distributions_runtime(distribution: str, env: dict[str, str]) -> None:
    plan = _plan("existing-operator", {"cluster.distribution": distribution, "pools[0].driver": "operator"})
    assert plan.operator is not None
    assert {e["name"]: e["value"] for e in plan.operator.values["toolkit"]["env"]} == env


def test_no_toolkit_no_environment() -> None:
    plan = _plan("existing-operator", {})
    assert plan.operator is not None
    assert plan.operator.values["toolkit"] == {"enabled": False}


def test_nodes_of_others_are_kept_apart_by_labels() -> None:
    second = {"name": "b", "vmSize": "Standard_NC4as_T4_v3", "driver": "operator"}
    third = {"name": "c", "vmSize": "Standard_NC4as_T4_v3", "driver": "none"}
    plan = _plan("aks-operator", {"pools[1]": second, "pools[2]": third})
    assert [p.resource.driver for p in plan.pools] == ["None", "None", "None"]
    assert [_deploy_labels(p.labels) for p in plan.pools] == [{}, {}, NO_OPERANDS]
    assert [_deploy_labels(p.node.labels) for p in plan.pools] == [{}, {}, NO_OPERANDS]


def test_mixed_owners_on_an_existing_cluster_are_kept_apart_by_labels() -> None:
    """Without CDI, so that no path on the nodes has to be the same (RP-11)."""
    second = {"name": "b", "hosts": {"n2": {}}, "gpu": "T4", "gpusPerNode": 1, "driver": "operator"}
    plan = _plan("existing-operator", {"pools[1]": second, **NO_CDI})
    assert [_deploy_labels(p.labels) for p in plan.pools] == [OFF_BOTH, {}]
    assert plan.operator is not None
    values = plan.operator.values
    assert (values["driver"]["enabled"], values["toolkit"]["enabled"]) == (True, True)
    assert values["operator"]["runtimeClass"] == NVIDIA
    assert values["cdi"] == {"enabled": False}


def test_labels_of_the_operator_are_not_set_on_the_plugin_route() -> None:
    plan = _plan("aks-plugin", {"pools[0].driver": "none"})
    assert _deploy_labels(plan.pools[0].labels) == {}


@pytest.mark.parametrize(
    ("pool", "version", "modules"),
    [
        ({}, None, None),
        ({"driverVersion": "580.173.02"}, "580.173.02", None),
        ({"driverBranch": "580"}, "580.173.02", None),
        ({"driverBranch": "580", "driverVersion": "580.95.05"}, "580.95.05", None),
        ({"gpu": "V100-SXM2-16GB", "driverBranch": "580"}, "580.173.02", "proprietary"),
        ({"gpu": "B200"}, None, "open"),
        ({"gpu": "H100-SXM5-80GB"}, None, None),
    ],
)
def test_version_and_kernel_modules_of_the_operators_driver(
    pool: dict[str, str], version: str | None, modules: str | None
) -> None:
    changes = {"pools[0].driver": "operator", **{f"pools[0].{k}": v for k, v in pool.items()}}
    plan = _plan("existing-operator", changes)
    assert plan.operator is not None
    driver = plan.operator.values["driver"]
    assert driver.get("version") == version
    assert driver.get("kernelModuleType") == modules


def test_version_and_kernel_modules_are_of_the_operators_pools_only() -> None:
    second = {"name": "b", "hosts": {"n2": {}}, "gpu": "B200", "gpusPerNode": 8, "driver": "host"}
    second["driverVersion"] = "580.95.05"
    plan = _plan("existing-operator", {"pools[0].driver": "operator", "pools[1]": second, **NO_CDI})
    assert plan.operator is not None
    assert plan.operator.values["driver"] == {"enabled": True}


def test_runtime_class_where_nvidia_is_the_default_runtime() -> None:
    plan = _plan("existing-plugin", {"pools[0].nvidiaDefaultRuntime": True})
    assert plan.plugin is not None
    assert plan.plugin.runtime_class is None
    assert [d.runtime_class for d in plan.plugin.daemon_sets] == [None]


def test_the_runtime_class_is_made_for_any_profile_that_needs_it() -> None:
    changes = {
        "sharing.a": {"strategy": "timeSlicing", "replicas": 2},
        "pools[0].sharing": "a",
        "pools[0].nvidiaDefaultRuntime": True,
        "pools[1]": {"name": "b", "hosts": {"n2": {}}, "gpu": "T4", "gpusPerNode": 1},
    }
    plan = _plan("existing-plugin", changes)
    assert plan.plugin is not None
    assert [d.runtime_class for d in plan.plugin.daemon_sets] == [None, NVIDIA]
    assert plan.plugin.runtime_class == NVIDIA


@pytest.mark.parametrize(("base", "made"), [("existing-plugin", NVIDIA), ("aks-plugin", None)])
def test_runtime_class_to_make(base: str, made: str | None) -> None:
    plan = _plan(base, {})
    assert plan.plugin is not None
    assert plan.plugin.runtime_class == made
