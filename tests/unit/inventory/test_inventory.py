"""Stack -> inventory: hosts, groups, and variables that the roles know."""

from __future__ import annotations

import copy
import json
import re
import runpy
from dataclasses import replace
from typing import Any

import pytest
import yaml
from gpufleet.fleet.resolve import resolve
from gpufleet.inventory.inventory import Inventory, cuda_target, inventory, mig_layout
from gpufleet.inventory.load import kubeconfig_path
from gpufleet.inventory.show import as_json, graph, listing
from gpufleet.stackfile.cluster import KubeconfigRef
from gpufleet.stackfile.model import Stack
from hypothesis import given

from tests.unit.config.samples import compile_data, put, told
from tests.unit.inventory.conftest import ROOT
from tests.unit.inventory.stacks import FULL, SHA, host_stacks
from tests.unit.plan.strategies import CALM

DOCUMENT = runpy.run_path(str(ROOT / "roles/document.py"))
SPECIFICATIONS: dict[str, dict[str, Any]] = {
    name: option for role in DOCUMENT["role_names"]() for name, option in DOCUMENT["specification"](role).items()
}
#: Variables of Ansible itself, with their types.
CONNECTION = {"ansible_host": str, "ansible_user": str, "ansible_port": int, "ansible_become": bool}
#: Variables of the playbooks; they have no specification.
PLAYBOOKS = {"upgrade_kubeconfig": str, "upgrade_context": str}


def stack_of(data: dict[str, Any], changes: dict[str, Any] | None = None) -> Stack:
    data = copy.deepcopy(data)
    for path, value in (changes or {}).items():
        put(data, path, value)
    compiled = compile_data(data)
    assert compiled.stack is not None, told(compiled)
    return compiled.stack


def of(changes: dict[str, Any] | None = None) -> Inventory:
    return inventory(resolve(stack_of(FULL, changes)), "/k/idc.conf")


COMMON = {
    "ansible_user": "ubuntu",
    "ansible_become": True,
    "ansible_port": 2222,
    "gpu_reboot_policy": "if_required",
    "gpu_repo_manage": True,
    "gpu_runtime_owner": "containerd",
    "gpu_mirror_profile": "stack",
    "gpu_mirror_profiles": {
        "stack": {
            "cuda_url": "https://m.example.com/cuda/<directory>/<architecture directory>/",
            "cuda_suite": "/",
            "cuda_key_url": "https://m.example.com/cuda.asc",
            "cuda_key_fingerprints": ["EB693B3035CD5710"],
            "toolkit_url": "https://m.example.com/toolkit",
            "toolkit_suite": "stable",
            "toolkit_components": ["main"],
            "runfile_url": "https://m.example.com/<version>/NVIDIA-Linux-<machine>-<version>.run",
            "allowed_hosts": ["m.example.com", "debian.example.com"],
        }
    },
    "upgrade_kubeconfig": "/k/idc.conf",
    "upgrade_context": "admin",
}
HOST = {
    "gpu_fabric_mode": "auto",
    "gpu_container_toolkit_state": "present",
    "gpu_container_toolkit_default_runtime": False,
    "gpu_container_toolkit_cdi": False,
    "gpu_container_toolkit_unprivileged_envvar": True,
    "gpu_driver_method": "cuda_repo",
    "gpu_driver_flavour": "auto",
    "gpu_health_time_slice": "",
    "gpu_mig_layout": "",
}


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        (
            "gpu01",
            {
                **COMMON,
                **HOST,
                "ansible_host": "gpu01.example.com",
                "gpu_preflight_gpu_model": "A100-SXM4-80GB",
                "gpu_preflight_gpu_count": 8,
                "gpu_driver_branch": "580",
                "gpu_mig_layout": "all-1g.10gb",
            },
        ),
        (
            "gpu03",
            {
                **COMMON,
                **HOST,
                "ansible_host": "fd00::3",
                "gpu_preflight_gpu_model": "H200",
                "gpu_preflight_gpu_count": 8,
                "gpu_driver_method": "runfile",
                "gpu_driver_version": "580.126.09",
                "gpu_driver_runfile_sha256": SHA,
                "gpu_container_toolkit_default_runtime": True,
                "gpu_mig_layout": "2x1g.18gb_1x3g.71gb",
                "gpu_mig_layouts": {
                    "2x1g.18gb_1x3g.71gb": [
                        {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.18gb": 2, "3g.71gb": 1}}
                    ]
                },
            },
        ),
        (
            "gpu04",
            {
                **COMMON,
                **HOST,
                "ansible_host": "10.0.0.14",
                "gpu_preflight_gpu_model": "T4",
                "gpu_preflight_gpu_count": 4,
                "gpu_preflight_cuda_target": "12.8",
                "gpu_driver_flavour": "proprietary",
                "gpu_health_time_slice": "long",
            },
        ),
        (
            "gpu05",
            {
                **COMMON,
                "ansible_host": "10.0.0.15",
                "gpu_preflight_gpu_model": "L40S",
                "gpu_preflight_gpu_count": 2,
                "gpu_driver_method": "none",
                "gpu_fabric_mode": "none",
                "gpu_container_toolkit_state": "absent",
            },
        ),
        ("gpu06", {"ansible_user": "ubuntu", "ansible_become": True, "ansible_port": 2222}),
    ],
)
def test_variables(host: str, wanted: dict[str, Any]) -> None:
    assert of().variables()[host] == wanted


def test_groups() -> None:
    assert graph(of()).splitlines() == [
        "@all:",
        "  |--@ungrouped:",
        "  |--@gpu_hosts:",
        "  |  |--@pool_a100_80:",
        "  |  |  |--gpu02",
        "  |  |  |--gpu01",
        "  |  |--@pool_mixed:",
        "  |  |  |--gpu03",
        "  |  |--@pool_t4:",
        "  |  |  |--gpu04",
        "  |  |--@pool_ops:",
        "  |  |  |--gpu05",
        "  |--@driver_host:",
        "  |  |--@pool_a100_80:",
        "  |  |  |--gpu02",
        "  |  |  |--gpu01",
        "  |  |--@pool_mixed:",
        "  |  |  |--gpu03",
        "  |  |--@pool_t4:",
        "  |  |  |--gpu04",
        "  |--@driver_operator:",
        "  |  |--@pool_ops:",
        "  |  |  |--gpu05",
        "  |--@driver_none:",
        "  |  |--@pool_spare:",
        "  |  |  |--gpu06",
    ]


def test_hosts_that_are_left_alone_are_in_no_group_of_a_playbook() -> None:
    children = {group.name: group.children for group in of().groups}
    assert "pool_spare" not in children["gpu_hosts"] and children["driver_none"] == ("pool_spare",)


@pytest.mark.parametrize(
    ("distribution", "owner"), [("kubeadm", "containerd"), ("k3s", "k3s"), ("rke2", "rke2"), ("microk8s", "none")]
)
def test_the_runtime_belongs_to_the_distribution_unless_stated(distribution: str, owner: str) -> None:
    changes = {"cluster.distribution": distribution}
    assert of(changes).variables()["gpu01"]["gpu_runtime_owner"] == owner
    changes["hosts.runtimeOwner"] = "crio"
    assert of(changes).variables()["gpu01"]["gpu_runtime_owner"] == "crio"


@pytest.mark.parametrize(
    ("gpu", "flavour"), [("B200", "open"), ("V100-PCIE-32GB", "proprietary"), ("T4", "auto"), ("H200", "auto")]
)
def test_kernel_modules_follow_the_gpu(gpu: str, flavour: str) -> None:
    cut = {"pools[3].sharing": "cut", "pools[3].gpu": "H100-PCIe"}  # some pool has to use the profile
    changes = {"pools[0].gpu": gpu, "pools[0].sharing": "slices", **cut}
    assert of(changes).variables()["gpu01"]["gpu_driver_flavour"] == flavour


RP_10 = {
    "cluster": {"kind": "existing", "name": "lab", "site": "lab", "distribution": "kubeadm",
                "kubeconfig": {"path": "k.conf"}},
    "pools": [{"name": "a100", "hosts": {"gpu01": {"address": "10.0.0.11"}}, "gpu": "A100-SXM4-80GB",
               "gpusPerNode": 8, "os": "ubuntu-24.04", "driver": "host", "driverBranch": "580"}],
}  # fmt: skip


@pytest.mark.parametrize(("route", "wanted"), [("operator", True), ("plugin", False)])
def test_rp_10_hosts_resolve_cdi_devices_where_the_plugin_hands_them_out(route: str, wanted: bool) -> None:
    stack = stack_of({**RP_10, "stack": {"kind": route}})
    variables = inventory(resolve(stack)).variables()["gpu01"]
    assert variables["gpu_container_toolkit_cdi"] is wanted
    assert variables["gpu_container_toolkit_unprivileged_envvar"] is not wanted


def test_root_needs_no_sudo() -> None:
    variables = of({"hosts.ssh": {"user": "root"}}).variables()["gpu01"]
    assert variables["ansible_become"] is False and "ansible_port" not in variables


def test_a_short_name_of_several_models_is_not_compared() -> None:
    variables = of({"pools[0].gpu": "A100-80GB"}).variables()["gpu01"]
    assert variables["gpu_preflight_gpu_model"] == "" and variables["gpu_mig_layout"] == "all-1g.10gb"


@pytest.mark.parametrize(
    ("teams", "target"),
    [
        ([], None),
        ([{"images": ["registry.example.com/a:cuda12.8", "registry.example.com/a:cuda12.10"]}], "12.10"),
        ([{"images": ["registry.example.com/a:cuda13.0"], "cudaCompat": True}], None),
        ([{"images": ["nvidia/cuda:12.8.1-base-ubuntu24.04"]}], None),
        ([{"images": ["registry.example.com/a:1"]}], None),
        ([{"images": ["registry.example.com/a:cuda12.8"], "pools": ["ops"]}], None),
    ],
)
def test_cuda_target(teams: list[dict[str, Any]], target: str | None) -> None:
    rows = [{"name": f"x{i}", "namespace": f"x{i}", "pools": ["t4"], **team} for i, team in enumerate(teams)]
    stack = stack_of(FULL, {"teams": rows})
    assert cuda_target(resolve(stack).pools[2], stack) == target


def test_the_roles_cut_only_where_the_host_owns_the_driver() -> None:
    pools = resolve(stack_of(FULL)).pools
    assert [mig_layout(pool) for pool in pools[:3]] == [
        ("all-1g.10gb", {"1g.10gb": 7}),
        ("2x1g.18gb_1x3g.71gb", {"1g.18gb": 2, "3g.71gb": 1}),
        None,
    ]
    operator = pools[0].spec.model_copy(update={"driver": "operator"})
    assert mig_layout(replace(pools[0], spec=operator)) is None


def test_without_a_kubeconfig_there_is_none() -> None:
    variables = inventory(resolve(stack_of(FULL))).variables()["gpu01"]
    assert not {"upgrade_kubeconfig", "upgrade_context"} & set(variables)


def test_kubeconfig(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    stack = stack_of(FULL)
    assert kubeconfig_path(resolve(stack), tmp_path, {}) == str(tmp_path / "idc.conf")
    assert kubeconfig_path(resolve(stack), tmp_path, {"GPUFLEET_KUBECONFIG": "/k"}) == "/k"
    assert kubeconfig_path(resolve(stack_of(FULL, {"cluster.kubeconfig.path": "~/k"})), tmp_path, {}) == "/home/x/k"
    assert kubeconfig_path(resolve(stack_of(FULL, {"cluster.kubeconfig.path": "/abs/k"})), tmp_path, {}) == "/abs/k"


def test_a_context_alone_is_looked_for_where_kubectl_looks(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    stack = stack_of(FULL)
    cluster = stack.cluster.model_copy(update={"kubeconfig": KubeconfigRef.model_validate({"context": "a"})})
    stack = stack.model_copy(update={"cluster": cluster})
    assert kubeconfig_path(resolve(stack), tmp_path, {}) == "/home/x/.kube/config"
    assert kubeconfig_path(resolve(stack), tmp_path, {"KUBECONFIG": "/first:/second"}) == "/first"
    assert kubeconfig_path(resolve(stack), tmp_path, {"KUBECONFIG": ":"}) == "/home/x/.kube/config"
    assert kubeconfig_path(resolve(stack), tmp_path, {"KUBECONFIG": "/a", "GPUFLEET_KUBECONFIG": "/k"}) == "/k"
    assert inventory(resolve(stack), "/first").variables()["gpu01"]["upgrade_context"] == "a"


def known(name: str, value: Any) -> str:
    """"" when a role or Ansible takes this value for this variable, else why not."""
    wanted = {**CONNECTION, **PLAYBOOKS}.get(name)
    if wanted is not None:
        return "" if type(value) is wanted else f"{name}: {value!r} is no {wanted}"
    if name not in SPECIFICATIONS:
        return f"no role has {name}"
    option = SPECIFICATIONS[name]
    if type(value) is not DOCUMENT["TYPES"][option["type"]]:
        return f"{name} is {option['type']}, not {value!r}"
    if "choices" in option and value not in option["choices"]:
        return f"{name} may not be {value!r}"
    return ""


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [s for k, v in value.items() for s in (str(k), *strings(v))]
    if isinstance(value, list):
        return [s for v in value for s in strings(v)]
    return [value] if isinstance(value, str) else []


def check(found: Inventory) -> None:
    for host, variables in found.variables().items():
        assert [why for name, value in variables.items() if (why := known(name, value))] == [], host
        assert not any("{{" in s or "{%" in s or "{#" in s for s in strings(variables))
    names = [group.name for group in found.groups]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names), "Ansible takes them as they are"
    assert json.loads(as_json(listing(found)))


def test_every_variable_is_one_of_a_role() -> None:
    check(of())


@CALM
@given(host_stacks())
def test_properties(data: dict[str, Any]) -> None:
    first, second = (inventory(resolve(stack_of(data)), "/k") for _ in range(2))
    check(first)
    assert as_json(listing(first)) == as_json(listing(second))
    listed = [h for p in data["pools"] for h in p.get("hosts", {})]
    assert list(first.hosts) == listed
    members = [h for g in first.groups for h in g.hosts]
    assert sorted(members) == sorted(listed), "each host is in one pool"


def test_variables_of_playbooks_are_used_there() -> None:
    text = "".join(p.read_text() for p in (ROOT / "playbooks").rglob("*.yml"))
    assert [name for name in PLAYBOOKS if not re.search(rf"\b{name}\b", text)] == []


def test_reboot_policies_and_runtime_owners_are_those_of_the_roles() -> None:
    schema = json.loads((ROOT / "stacks/schema.json").read_text())["$defs"]["Hosts"]["properties"]
    assert schema["rebootPolicy"]["enum"] == SPECIFICATIONS["gpu_reboot_policy"]["choices"]
    owners = schema["runtimeOwner"]["anyOf"][0]["enum"]
    assert owners == SPECIFICATIONS["gpu_runtime_owner"]["choices"]
    rows = yaml.safe_load((ROOT / "infra/gpufleet/catalog/tables/distributions.yaml").read_text())["distributions"]
    assert {row["host_runtime_owner"] for row in rows} <= set(owners)
