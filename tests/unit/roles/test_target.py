"""Which driver fits which GPUs, and which packages make it up."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.catalog import driver_branches
from gpufleet.hosts import driver, fabric
from gpufleet.hosts.platform import system_of

from . import plans
from .hosts import codes, gpu, gpus, host, probe

# device ids: T4 1eb8, V100 1db4, P40 1b38, A100 SXM 20b2, A100 PCIe 20b5, H100 2330, H200 2335, B200 2901, GB200 2941,
# RTX PRO 6000 Blackwell Server 2bb5


NEWEST = "the newest version that the catalogue knows"


def chosen(devices: list[dict[str, Any]], **variables: Any) -> tuple[Any, ...]:
    context = host(probe(hardware={"gpus": devices}), **variables)
    target = context.target
    row = driver_branches().get(target.branch or 0)
    own = str(variables.get("gpu_driver_version", ""))
    version = NEWEST if row and target.version == row.newest_seen and not own else target.version
    return target.branch, version, target.flavour, codes(target.problems)


@pytest.mark.parametrize(
    ("devices", "variables", "expected"),
    [
        # nothing said: the newest long-term branch with a known version, open modules
        ([gpu("1eb8")], {}, (580, NEWEST, "open", [])),
        # Volta: 580 is the last branch, proprietary modules
        ([gpu("1db4")], {}, (580, NEWEST, "proprietary", [])),
        ([gpu("1db4")], {"gpu_driver_branch": "595"}, (595, NEWEST, "proprietary", ["GF704"])),
        ([gpu("1db4")], {"gpu_driver_branch": "580", "gpu_driver_flavour": "open"}, (580, NEWEST, "open", ["GF712"])),
        ([gpu("1b38")], {"gpu_driver_version": "590.48.01"}, (590, "590.48.01", "proprietary", ["GF704"])),
        # Blackwell: open only, not before its first driver
        ([gpu("2901")], {"gpu_driver_branch": "580"}, (580, NEWEST, "open", [])),
        (
            [gpu("2bb5")],
            {"gpu_driver_branch": "580", "gpu_driver_flavour": "proprietary"},
            (580, NEWEST, "proprietary", ["GF712"]),
        ),
        ([gpu("2901")], {"gpu_driver_version": "570.124.06"}, (570, "570.124.06", "open", ["GF706", "GF710"])),
        ([gpu("2335")], {"gpu_driver_version": "535.309.01"}, (535, "535.309.01", "proprietary", ["GF706", "GF710"])),
        # old and new in one host
        ([gpu("1db4"), gpu("1eb8")], {}, (580, NEWEST, "proprietary", [])),
        ([gpu("1db4"), gpu("2901")], {}, (580, NEWEST, None, ["GF713"])),
        # 620 has open modules only; its version has to be given
        ([gpu("1eb8")], {"gpu_driver_branch": "620"}, (620, NEWEST, "open", ["GF711"])),
        (
            [gpu("1eb8")],
            {"gpu_driver_version": "620.30.01", "gpu_driver_flavour": "proprietary"},
            (620, "620.30.01", "proprietary", ["GF714"]),
        ),
        # the vendor's default flavour changed with 560
        ([gpu("1eb8")], {"gpu_driver_branch": "550"}, (550, NEWEST, "proprietary", [])),
        ([gpu("1eb8")], {"gpu_driver_branch": "555"}, (555, NEWEST, "proprietary", [])),
        ([gpu("1eb8")], {"gpu_driver_branch": "560"}, (560, NEWEST, "open", [])),
        # malformed, contradicting, unknown, ended
        ([gpu("1eb8")], {"gpu_driver_branch": "535.104.05"}, (None, None, None, ["GF707"])),
        ([gpu("1eb8")], {"gpu_driver_version": "latest"}, (None, None, None, ["GF707"])),
        ([gpu("1eb8")], {"gpu_driver_branch": "580", "gpu_driver_version": "595.91.07"}, (580, None, None, ["GF708"])),
        ([gpu("1eb8")], {"gpu_driver_branch": "577"}, (577, None, None, ["GF709"])),
        ([gpu("1eb8")], {"gpu_driver_branch": "535"}, (535, NEWEST, "proprietary", ["GF710"])),
        # a device that the catalogue does not know changes nothing
        ([gpu("ffff")], {}, (580, NEWEST, "open", [])),
    ],
)
def test_target(devices: list[dict[str, Any]], variables: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert chosen(devices, **variables) == expected


def test_a_card_with_two_models_is_told_by_its_subsystem() -> None:
    reading = probe(hardware={"gpus": [gpu("25b6", subsystem="157e"), gpu("25b6", subsystem="14a9"), gpu("25b6")]})
    assert [g.name for g in host(reading).gpus] == ["A2", "A16", "10de:25b6"]


def names(reading: dict[str, Any] | None = None, **variables: Any) -> list[str]:
    return [item["name"] for item in plans.driver_want(host(reading, **variables)) if not item.get("optional")]


@pytest.mark.parametrize(
    ("branch", "flavour", "expected"),
    [
        ("535", "proprietary", ["cuda-drivers-535"]),
        ("550", "open", ["nvidia-open"]),
        ("580", "open", ["nvidia-open"]),
        ("580", "proprietary", ["cuda-drivers-580"]),
        ("590", "proprietary", ["cuda-drivers"]),
        ("595", "open", ["nvidia-open"]),
        ("610", "proprietary", ["cuda-drivers"]),
    ],
)
def test_package_names_by_branch(branch: str, flavour: str, expected: list[str]) -> None:
    assert names(gpu_driver_branch=branch, gpu_driver_flavour=flavour) == expected


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        ("535", ["nvidia-fabricmanager-535", "libnvidia-nscq-535"]),
        ("570", ["nvidia-fabricmanager-570", "libnvidia-nscq-570"]),
        ("580", ["nvidia-fabricmanager", "libnvidia-nscq"]),
        ("595", ["nvidia-fabricmanager", "libnvidia-nscq"]),
    ],
)
def test_fabric_names_by_branch(branch: str, expected: list[str]) -> None:
    reading = probe(hardware={"gpus": gpus("20b2", 8), "nvswitches": [{"slot": "s", "device": "1af1"}]})
    assert [
        n for n in names(reading, gpu_driver_branch=branch) if "nvidia-open" not in n and "cuda" not in n
    ] == expected


EL9 = {"id": "rocky", "version_id": "9.4", "manager": "dnf", "python": "3.9.18"}


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        ("550", ["nvidia-fabric-manager", "libnvidia-nscq-550"]),
        ("580", ["nvidia-fabricmanager", "libnvidia-nscq"]),
    ],
)
def test_fabric_manager_has_a_hyphen_on_rpm_below_580(branch: str, expected: list[str]) -> None:
    hardware = {"gpus": gpus("2330", 8), "nvswitches": [{"slot": "s", "device": "22a3"}]}
    reading = probe(system=EL9, hardware=hardware)
    found = names(reading, gpu_driver_branch=branch, gpu_driver_flavour="open")
    assert found == ["nvidia-open", *expected, "dkms", "python3-dnf-plugin-versionlock"]


def test_blackwell_board_wants_subnet_manager_and_device_monitor() -> None:
    hardware = {"gpus": gpus("2901", 8), "switch_ports": ["mlx5_4"]}
    seen = fabric.fabric_of(host(probe(hardware=hardware)))
    assert (seen.id, seen.unit, seen.modules) == (
        "hgx-b200-b300",
        "nvidia-fabricmanager.service",
        ("ib_umad", "mlx5_core"),
    )
    assert names(probe(hardware=hardware)) == [
        "nvidia-open",
        "nvidia-fabricmanager",
        "libnvidia-nscq",
        "libnvsdm",
        "nvlsm",
        "infiniband-diags",
    ]


def test_device_monitor_exists_for_x86_alone() -> None:
    hardware = {"gpus": gpus("2901", 8), "switch_ports": ["mlx5_4"]}
    assert "libnvsdm" not in names(probe(system={"architecture": "aarch64"}, hardware=hardware))


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        ({"gpus": gpus("20b2", 8), "nvswitches": [{"slot": "s", "device": "1af1"}]}, "hgx-a100-h100-h200"),
        ({"gpus": gpus("20b2", 8), "nvswitch_devices": ["0000:c0:00.0"]}, "hgx-a100-h100-h200"),
        ({"gpus": gpus("20b2", 4)}, "none"),  # a board of four is wired directly
        ({"gpus": gpus("20b5", 4)}, "none"),
        ({"gpus": gpus("2941", 4)}, "nvl72"),
        ({"gpus": []}, "none"),
    ],
)
def test_fabric_is_decided_by_what_is_seen(hardware: dict[str, Any], expected: str) -> None:
    assert fabric.fabric_of(host(probe(hardware=hardware))).id == expected
    assert fabric.fabric_of(host(probe(hardware=hardware), gpu_fabric_mode="none")).id == "none"


@pytest.mark.parametrize(
    ("identity", "version", "architecture", "key", "directory"),
    [
        ("ubuntu", "22.04", "x86_64", "ubuntu-22.04", "ubuntu2204/x86_64"),
        ("ubuntu", "24.04", "aarch64", "ubuntu-24.04", "ubuntu2404/sbsa"),
        ("ubuntu", "26.04", "x86_64", "ubuntu-26.04", "ubuntu2604/x86_64"),
        ("debian", "12", "x86_64", "debian-12", "debian12/x86_64"),
        ("debian", "13", "x86_64", "debian-13", "debian13/x86_64"),
        ("debian", "13", "aarch64", "debian-13", None),
        ("rhel", "9.4", "x86_64", "rhel-9", "rhel9/x86_64"),
        ("rocky", "10.0", "x86_64", "rhel-10", "rhel10/x86_64"),
        ("almalinux", "9.5", "aarch64", "rhel-9", "rhel9/sbsa"),
        ("ol", "8.9", "x86_64", "rhel-8", "rhel8/x86_64"),
        ("kylin", "V11", "x86_64", "kylin-V11", "kylin11/x86_64"),
        ("kylin", "V11", "aarch64", "kylin-V11", None),
        ("openEuler", "22.03", "x86_64", "openEuler-22.03", None),
        ("openEuler", "24.03", "aarch64", "openEuler-24.03", None),
        ("anolis", "8.8", "x86_64", "anolis", None),
        ("gentoo", "2.15", "x86_64", "gentoo-2.15", None),
    ],
)
def test_repository_directory_comes_from_the_table(
    identity: str, version: str, architecture: str, key: str, directory: str | None
) -> None:
    system = system_of(identity, version, architecture)
    assert (system.key, system.tree) == (key, directory)
    assert bool(system.no_tree) is (directory is None)


@pytest.mark.parametrize(
    ("identity", "version", "refused"),
    [
        ("rocky", "8.10", True),
        ("kylin", "V10", True),
        ("openEuler", "20.03", True),
        ("anolis", "8.8", True),
        ("rhel", "9.4", False),
        ("kylin", "V11", False),
        ("openEuler", "24.03", False),
        ("debian", "12", False),
    ],
)
def test_refused_platforms_have_a_reason(identity: str, version: str, refused: bool) -> None:
    assert bool(system_of(identity, version, "x86_64").refused) is refused


@pytest.mark.parametrize(
    ("system", "kernel", "expected"),
    [
        ({"id": "ubuntu", "version_id": "24.04"}, "6.8.0-45-generic", [("linux-headers-6.8.0-45-generic", None)]),
        (
            {"id": "rocky", "version_id": "9.4", "manager": "dnf"},
            "5.14.0-427.el9.x86_64",
            [("kernel-devel-matched", "5.14.0-427.el9"), ("kernel-headers", None)],
        ),
        (
            {"id": "rhel", "version_id": "9.4", "manager": "dnf"},
            "5.14.0-427.el9.aarch64+64k",
            [("kernel-64k-devel-matched", "5.14.0-427.el9"), ("kernel-headers", None)],
        ),
        (
            {"id": "ol", "version_id": "9.4", "manager": "dnf"},
            "5.15.0-300.el9uek.x86_64",
            [("kernel-uek-devel", "5.15.0-300.el9uek"), ("kernel-headers", None)],
        ),
        (
            {"id": "openEuler", "version_id": "22.03", "manager": "dnf"},
            "5.10.0-60.18.0.50.oe2203.x86_64",
            [("kernel-devel", "5.10.0-60.18.0.50.oe2203"), ("kernel-headers", None)],
        ),
    ],
)
def test_headers_are_those_of_the_running_kernel(
    system: dict[str, str], kernel: str, expected: list[tuple[str, str | None]]
) -> None:
    context = host(probe(system=system, kernel={"release": kernel, "headers": False}))
    assert [(item.name, item.version) for item in driver.headers_want(context)] == expected


def test_ubuntu_archive_pairs_with_signed_modules() -> None:
    assert names(gpu_driver_method="distro", gpu_driver_branch="580", gpu_driver_flavour="open") == [
        "nvidia-headless-580-server-open",
        "nvidia-utils-580-server",
        "linux-modules-nvidia-580-server-open-generic",
    ]
