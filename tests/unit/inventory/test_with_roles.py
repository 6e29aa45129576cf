"""What the roles make of an inventory, and that the mirror list names what they ask for."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from gpufleet.catalog import driver_branches
from gpufleet.fleet.resolve import resolve
from gpufleet.hosts import driver, mig, sources, toolkit
from gpufleet.hosts.context import Context
from gpufleet.hosts.reading import Source
from gpufleet.inventory.inventory import inventory
from gpufleet.mirror.mirror_list import MirrorList, mirror_list
from gpufleet.places.existing.hosts import kernel_modules, target_driver
from gpufleet.places.existing.model import ExistingStack
from gpufleet.plan.compile import compile_plan

from tests.unit.inventory.stacks import FULL
from tests.unit.inventory.test_inventory import stack_of
from tests.unit.roles import plans
from tests.unit.roles.hosts import TODAY, gpus, host, probe

#: PCI device ids and what else the probe sees of the GPU's board.
BOARDS = {
    "T4": ("1eb8", {}),
    "V100-PCIE-32GB": ("1db6", {}),
    "A100-SXM4-80GB": ("20b2", {"nvswitches": [{"slot": "0000:c5:00.0", "device": "1af1"}]}),
    "H100-SXM5-80GB": ("2330", {"nvswitches": [{"slot": "0000:c5:00.0", "device": "22a3"}]}),
    "B200": ("2901", {"switch_ports": ["mlx5_0"]}),
    "L40S": ("26b9", {}),
}
SYSTEMS = {
    "ubuntu-22.04": ("ubuntu", "22.04", "apt"),
    "ubuntu-24.04": ("ubuntu", "24.04", "apt"),
    "debian-12": ("debian", "12", "apt"),
    "debian-13": ("debian", "13", "apt"),
    "rocky-9": ("rocky", "9.6", "dnf"),
    "rhel-10": ("rhel", "10.1", "dnf"),
    "kylin-V11": ("kylin", "V11", "dnf"),
}
DAY = date.fromisoformat(TODAY)


def seen(gpu: str, system: str, machine: str = "x86_64", **variables: Any) -> Context:
    """The host that the roles would see."""
    device, board = BOARDS[gpu]
    identity, version, manager = SYSTEMS[system]
    reading = probe(
        system={"id": identity, "version_id": version, "manager": manager, "architecture": machine},
        hardware={"gpus": gpus(device, 2), **board},
    )
    known = {k: v for k, v in variables.items() if k.startswith("gpu_")}
    return host(reading, **known)


def pool_stack(gpu: str, system: str, **pool: Any) -> ExistingStack:
    """A stack with one pool of one host."""
    data: dict[str, Any] = {
        "cluster": FULL["cluster"],
        "stack": {"kind": "plugin"},
        "pools": [{"name": "p", "gpu": gpu, "gpusPerNode": 2, "hosts": {"h": {"address": "h"}}, "os": system, **pool}],
    }
    stack = stack_of(data)
    assert isinstance(stack, ExistingStack)
    return stack


def listed(stack: ExistingStack) -> MirrorList:
    fleet = resolve(stack)
    return mirror_list(fleet, compile_plan("x", fleet), DAY)


def variables(stack: ExistingStack, name: str = "h") -> dict[str, Any]:
    return inventory(resolve(stack)).variables()[name]


COMBINATIONS = [
    ("T4", "ubuntu-24.04", {"driverBranch": "580"}),
    ("T4", "ubuntu-22.04", {"driverVersion": "570.26"}),
    ("T4", "debian-12", {}),
    ("T4", "ubuntu-24.04", {"driverBranch": "580", "hostDriver": {"method": "distro"}}),
    ("T4", "ubuntu-24.04", {"driverBranch": "580", "hostDriver": {"flavour": "proprietary"}}),
    ("T4", "rocky-9", {"driverBranch": "595"}),
    ("T4", "debian-12", {"driverBranch": "620", "driverVersion": "620.10.01"}),
    ("V100-PCIE-32GB", "ubuntu-22.04", {}),
    ("V100-PCIE-32GB", "debian-12", {"driverBranch": "550"}),
    ("A100-SXM4-80GB", "ubuntu-22.04", {"driverBranch": "535"}),
    ("A100-SXM4-80GB", "kylin-V11", {"driverBranch": "580"}),
    ("H100-SXM5-80GB", "debian-13", {"driverBranch": "595"}),
    ("H100-SXM5-80GB", "rhel-10", {}),
    ("B200", "ubuntu-24.04", {"driverBranch": "580"}),
    ("B200", "ubuntu-24.04", {"driverBranch": "595", "architecture": "aarch64"}),
    ("L40S", "rocky-9", {"driverBranch": "550"}),
]


@pytest.mark.parametrize(("gpu", "system", "pool"), COMBINATIONS)
def test_the_mirror_list_names_what_the_roles_ask_for(gpu: str, system: str, pool: dict[str, Any]) -> None:
    stack = pool_stack(gpu, system, **pool)
    found = seen(gpu, system, pool.get("architecture", "x86_64"), **variables(stack))
    assert found.target.problems == [] or [code for code, _ in found.target.problems] == ["GF710"]
    wanted = [w for w in plans.driver_want(found) + plans.toolkit_want(found) if w["part"] != "headers"]
    names = {(w["name"], w["version"]) for w in wanted}
    content = listed(stack)
    have = {(p.name, p.version) for r in content.repositories for p in r.packages}
    kernel = found.probe.kernel.release.rpartition("-")[2]
    have = {(name.replace("<kernel flavour>", kernel), version) for name, version in have}
    assert names <= have
    own = {p.name for r in content.repositories if r.name == "operating system" for p in r.packages}
    assert {name for name, _ in have - names} <= {"*", *own}, "nothing that the roles would not ask for"


@pytest.mark.parametrize(("gpu", "system", "pool"), COMBINATIONS)
def test_the_repositories_are_those_that_the_roles_configure(gpu: str, system: str, pool: dict[str, Any]) -> None:
    stack = pool_stack(gpu, system, **pool)
    found = seen(gpu, system, pool.get("architecture", "x86_64"), **variables(stack))
    content = {r.name: r for r in listed(stack).repositories}
    if "cuda" in content:
        theirs = driver.repository_of(found)
        assert content["cuda"].address == content["cuda"].used == theirs.url
        assert [(k.address, k.fingerprint) for k in content["cuda"].keys] == [(theirs.key_url, theirs.fingerprints[0])]
    else:
        assert pool["hostDriver"]["method"] == "distro"
    theirs = toolkit.repository_of(found)
    ours = content["container-toolkit"]
    assert (ours.used or "").rstrip("/") == (theirs.url or "").rstrip("/")
    assert [(k.address, k.fingerprint) for k in ours.keys] == [(theirs.key_url, theirs.fingerprints[0])]


@pytest.mark.parametrize("gpu", sorted(BOARDS))
@pytest.mark.parametrize("branch", [None, *map(str, driver_branches())])
def test_the_driver_is_the_one_that_the_roles_take(gpu: str, branch: str | None) -> None:
    """Branch, version and flavour by the rules of both sides, also where the plan would refuse the branch."""
    stack = pool_stack(gpu, "ubuntu-22.04")
    (pool,) = resolve(stack).pools
    pool = replace(pool, spec=pool.spec.model_copy(update={"driver_branch": branch}))
    target = seen(gpu, "ubuntu-22.04", gpu_driver_branch=branch or "").target
    ours, version = target_driver(pool, DAY)
    assert (ours.branch if ours else None, version) == (target.branch, target.version)
    if ours is not None:
        assert kernel_modules(pool, ours) == target.flavour


@pytest.mark.parametrize("day", ["2026-01-15", "2028-06-30", "2028-07-01"])
@pytest.mark.parametrize("gpu", ["T4", "V100-PCIE-32GB"])
def test_a_branch_whose_support_has_ended_is_not_taken(gpu: str, day: str) -> None:
    reading = probe(system={"date": day}, hardware={"gpus": gpus(BOARDS[gpu][0], 1)})
    ours, version = target_driver(resolve(pool_stack(gpu, "ubuntu-22.04")).pools[0], date.fromisoformat(day))
    target = host(reading).target
    assert (ours.branch if ours else None, version) == (target.branch, target.version)
    assert (ours is None) == (day > "2028-06-30"), "580 is the only one of the table; 620 has no version yet"


def test_a_mirror_reaches_the_roles() -> None:
    full = stack_of(FULL)
    assert isinstance(full, ExistingStack)
    found = seen("A100-SXM4-80GB", "ubuntu-24.04", "aarch64", **variables(full, "gpu01"))
    cuda = driver.repository_of(found)
    assert cuda.url == "https://m.example.com/cuda/ubuntu2404/sbsa/"
    assert (cuda.key_url, cuda.fingerprints) == ("https://m.example.com/cuda.asc", ("EB693B3035CD5710",))
    kit = toolkit.repository_of(found)
    assert (kit.url, kit.suite, kit.components) == ("https://m.example.com/toolkit", "stable", ("main",))
    reading = found.probe.model_copy(update={"sources": (Source(file="a", uri="https://other.example.com/x"),)})
    assert sources.outside_hosts(found.settings, reading, []) == [("a", "other.example.com")]
    runfile = seen("H100-SXM5-80GB", "ubuntu-24.04", **variables(full, "gpu03"))
    plan = plans.driver(runfile)
    assert plan["runfile"]["url"] == "https://m.example.com/580.126.09/NVIDIA-Linux-x86_64-580.126.09.run"
    assert plan["runfile"]["checksum"] == f"sha256:{'0123456789abcdef' * 4}"
    files = listed(full).files
    assert [(f.used, f.sha256) for f in files] == [(plan["runfile"]["url"], "0123456789abcdef" * 4)]


@pytest.mark.parametrize(
    ("spec", "devices"),
    [
        ({"profile": "1g.10gb"}, {"1g.10gb": 7}),
        ({"instances": {"3g.40gb": 1, "1g.10gb": 2}, "naming": "mixed"}, {"3g.40gb": 1, "1g.10gb": 2}),
    ],
)
def test_a_layout_is_one_that_the_role_knows(spec: dict[str, Any], devices: dict[str, int]) -> None:
    shared = {"sharing": "s"}
    stack = stack_of(
        {
            "cluster": FULL["cluster"],
            "stack": {"kind": "plugin"},
            "pools": [
                {"name": "p", "gpu": "A100-SXM4-80GB", "gpusPerNode": 2, "hosts": {"h": {"address": "h"}}, **shared}
            ],
            "sharing": {"s": {"strategy": "mig", **spec}},
        }
    )
    assert isinstance(stack, ExistingStack)
    found = seen("A100-SXM4-80GB", "ubuntu-24.04", **variables(stack))
    layout, _known = mig.layout_of(found)
    assert layout == [{"devices": "all", "mig-enabled": True, "mig-devices": devices}]
    assert mig.problems_of(found) == []


@pytest.mark.parametrize(
    ("stack", "sharing", "accepted"),
    [
        ({"kind": "plugin"}, {"strategy": "timeSlicing", "replicas": 2}, True),
        ({"kind": "operator"}, {"strategy": "timeSlicing", "replicas": 2}, False),
        ({"kind": "operator"}, {"strategy": "hami"}, True),
    ],
)
def test_unprivileged_pods_get_the_gpus_that_their_plugin_names(
    stack: dict[str, Any], sharing: dict[str, Any], accepted: bool
) -> None:
    pool = {
        "name": "p",
        "gpu": "T4",
        "gpusPerNode": 1,
        "hosts": {"h": {"address": "h"}},
        "driver": "host",
        "sharing": "s",
    }
    whole = stack_of({"cluster": FULL["cluster"], "stack": stack, "pools": [pool], "sharing": {"s": sharing}})
    assert isinstance(whole, ExistingStack)
    found = seen("T4", "ubuntu-24.04", **variables(whole))
    written = {f["path"]: f["content"] for f in plans.toolkit(found)["files"]}
    text = written["/etc/nvidia-container-runtime/config.toml"]
    assert f"accept-nvidia-visible-devices-envvar-when-unprivileged = {str(accepted).lower()}" in text
