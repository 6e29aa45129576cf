"""Every finding of preflight: seen where it belongs, absent on a host without fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpufleet.catalog import driver_branch
from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import rules
from gpufleet.hosts import paths, preflight, report
from gpufleet.hosts.context import Answer, Context
from gpufleet.hosts.work import FoundPackage

from . import plans
from .hosts import KERNEL, answer, answered, codes, file, gpu, gpus, host, merged, package, packages, probe, unit

FIXTURES = Path(__file__).parent / "fixtures"
QUIET = ["GF728"]  # the note about HMM that no source bounds
CONTAINERD: dict[str, Any] = {
    "runtime": {
        **probe()["runtime"],
        "containerd": "1.7.20",
        "containerd_dump": "version = 2\n",
        "sockets": ["/run/containerd/containerd.sock"],
    },
    "files": {paths.CONTAINERD_CONFIG: file("version = 2\n")},
}
ROCKY9 = {"id": "rocky", "version_id": "9.4", "manager": "dnf", "python": "3.9.18"}


def found(reading: dict[str, Any] | None = None, **variables: Any) -> list[str]:
    return codes(preflight.findings(host(reading, **variables)))


def with_answer(context: Context, missing: tuple[str, ...] = (), **more: Any) -> list[Finding]:
    request = plans.request(preflight.resolve_request(context))
    context.resolved = answered(request["want"], missing, **more)
    return preflight.findings(context)


def test_a_bare_server_without_fault_has_nothing_to_report() -> None:
    assert found() == QUIET
    assert found(probe(**CONTAINERD)) == QUIET
    assert codes(with_answer(host())) == QUIET


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # platform and controller
    ("GF701", {"system": {"id": "rocky", "version_id": "8.10", "manager": "dnf", "python": "3.9"}}, {}),
    ("GF701", {"system": {"id": "kylin", "version_id": "V10", "manager": "dnf", "python": "3.8"}}, {}),
    ("GF702", {"system": {"id": "openEuler", "version_id": "22.03", "manager": "dnf"}}, {"gpu_driver_method": "none"}),
    ("GF703", {"system": {"id": "openEuler", "version_id": "22.03", "manager": "dnf"}}, {}),
    ("GF703", {"system": {"id": "debian", "version_id": "13", "architecture": "aarch64"}}, {}),
    ("GF703", {"system": {"id": "debian", "version_id": "12"}}, {"gpu_driver_method": "distro"}),
    ("GF720", {"system": {"python": "3.6.8"}}, {}),
    ("GF763", {"system": {"architecture": "aarch64"}, "hardware": {"gpus": [gpu("2941")]}}, {}),
    # GPUs and driver
    ("GF704", {"hardware": {"gpus": [gpu("1db4")]}}, {"gpu_driver_branch": "595"}),
    ("GF705", {"hardware": {"gpus": [gpu("fffe")]}}, {}),
    ("GF706", {"hardware": {"gpus": [gpu("2901")]}}, {"gpu_driver_version": "570.124.06"}),
    ("GF707", {}, {"gpu_driver_branch": "535.104.05"}),
    ("GF708", {}, {"gpu_driver_branch": "580", "gpu_driver_version": "595.91.07"}),
    ("GF709", {}, {"gpu_driver_branch": "577"}),
    ("GF710", {}, {"gpu_driver_branch": "535"}),
    ("GF712", {"hardware": {"gpus": [gpu("2901")]}}, {"gpu_driver_flavour": "proprietary"}),
    ("GF713", {"hardware": {"gpus": [gpu("1db4"), gpu("2901")]}}, {}),
    ("GF714", {}, {"gpu_driver_version": "620.30.01", "gpu_driver_flavour": "proprietary"}),
    ("GF715", {}, {"gpu_driver_version": "535.183.01", "gpu_preflight_cuda_target": "13.0"}),
    (
        "GF716",
        {"hardware": {"gpus": gpus("2330", 8)}},
        {"gpu_driver_version": "535.183.01", "gpu_driver_flavour": "open"},
    ),
    ("GF716", {"packages": {"enroot": package("3.5")}}, {"gpu_container_toolkit_version": "1.17.7-1"}),
    ("GF716", {"runtime": {"docker": True}}, {"gpu_container_toolkit_version": "1.18.0"}),
    (
        "GF717",
        {"hardware": {"gpus": gpus("20b2", 1)}},
        {"gpu_driver_version": "570.148.08", "gpu_mig_layout": "all-1g.10gb"},
    ),
    ("GF718", {"hardware": {"gpus": []}}, {}),
    ("GF719", {}, {"gpu_preflight_gpu_count": 8}),
    ("GF719", {}, {"gpu_preflight_gpu_model": "A100-SXM4-80GB"}),
    # kernel
    ("GF723", {"kernel": {"compiler": "12", "gcc": "11"}}, {}),
    ("GF724", {"kernel": {"secure_boot": True, "mok": {"/var/lib/dkms/mok.pub": False}}}, {}),
    ("GF725", {"kernel": {"modules": {"nouveau": 1}}}, {}),
    ("GF726", {"hardware": {"gpus": [gpu("1eb8", driver="nova_core")]}}, {}),
    ("GF726", {"hardware": {"gpus": [gpu("1eb8", driver="vfio-pci")]}}, {}),
    ("GF727", {"kernel": {"log": [{"id": "bar", "line": "pci: BAR 1: can't assign"}]}}, {}),
    # packages and repositories
    ("GF729", {"runfile": True}, {}),
    ("GF730", {"packages": {"nvidia-kernel-dkms": package("535.216.01-1~deb12u1")}}, {}),
    ("GF730", {"packages": {"nvidia-headless-580-server-open": package("580.65.06-0ubuntu0.24.04.1")}}, {}),
    ("GF731", {"driver": {"version": "580.95.05", "flavour": "open"}}, {"gpu_driver_method": "none"}),
    ("GF732", {"driver": {"version": "580.95.05", "flavour": "open"}, "library": "580.126.09"}, {}),
    (
        "GF733",
        {"system": {"id": "debian", "version_id": "13", "sqv": True}},
        {
            "gpu_driver_repo_url": "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/",
            "gpu_driver_repo_key_url": "https://mirror/3bf863cc.pub",
            "gpu_driver_repo_key_fingerprints": ["EB693B3035CD5710E231E123A4B469963BF863CC"],
        },
    ),
    ("GF733", {"system": {"id": "ubuntu", "version_id": "26.04", "sqv": True}}, {}),
    (
        "GF734",
        {
            "keyrings": {
                "/etc/apt/trusted.gpg.d/cuda.gpg": [
                    {"fingerprint": "AE09FE4BBD223A84B2CCFCE3F60F4B3D7FA2AF80", "sha1_only": False}
                ]
            }
        },
        {},
    ),
    ("GF738", {"system": {"id": "openEuler", "version_id": "22.03"}}, {"gpu_driver_repo_url": "https://mirror/own/"}),
    ("GF739", {"system": {"lock": 812}}, {}),
    ("GF739", {"system": {"cloud_init_running": True}}, {}),
    ("GF740", {"system": {"unfinished": ["nvidia-dkms-580-open"]}}, {}),
    (
        "GF741",
        {
            "sources": [
                {
                    "file": "/etc/apt/sources.list",
                    "uri": "https://developer.download.nvidia.com/x/",
                    "suite": "/",
                    "components": [],
                    "signed_by": None,
                    "enabled": True,
                }
            ]
        },
        {"gpu_mirror_profile": "cn", "gpu_mirror_profiles": {"cn": {"allowed_hosts": ["mirror.example"]}}},
    ),
    (
        "GF742",
        {
            "system": ROCKY9,
            "packages": {"kmod-nvidia-open-dkms": package("3:580.95.05-1"), "dnf-plugin-nvidia": package("2.0-1")},
        },
        {},
    ),
    ("GF743", {"system": {"free_mib": {"/usr": 100, "/var": 9000}}}, {}),
    ("GF752", {"packages": {"nvidia-docker2": package("2.14.0-1")}}, {}),
    (
        "GF756",
        {"packages": packages("570.158.01", "nvidia-open"), "system": {"in_cluster": True}},
        {"gpu_driver_version": "580.126.09"},
    ),
    ("GF757", {}, {"gpu_mirror_profile": "nowhere"}),
    ("GF758", {}, {"gpu_driver_method": "runfile"}),
    ("GF759", {"packages": {"unattended-upgrades": package("2.9")}}, {}),
    # container runtime
    ("GF744", {"runtime": {"sockets": ["/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock"]}}, {}),
    ("GF745", {}, {"gpu_runtime_owner": "docker"}),
    (
        "GF746",
        {
            "runtime": {"containerd": "2.0.5", "containerd_dump": "version = 3\n"},
            "files": {paths.CONTAINERD_CONFIG: file("version = 3\n")},
        },
        {"gpu_container_toolkit_version": "1.17.3"},
    ),
    ("GF747", {"runtime": {"containerd": "1.7.20", "containerd_dump": None}}, {}),
    ("GF747", {**CONTAINERD, "files": {paths.CONTAINERD_CONFIG: file("version = 2\nversion = 2\n")}}, {}),
    (
        "GF748",
        {
            **CONTAINERD,
            "files": {paths.CONTAINERD_CONFIG: file("version = 2\nimports = []\n")},
            "runtime": {**CONTAINERD["runtime"], "drop_ins": {paths.CONTAINERD_DROP_IN: file("version = 2\n")}},
        },
        {},
    ),
    (
        "GF749",
        {
            **CONTAINERD,
            "files": {paths.CONTAINERD_CONFIG: file('version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n')},
            "runtime": {**CONTAINERD["runtime"], "drop_ins": {paths.CONTAINERD_DROP_IN: file("version = 4\n")}},
        },
        {},
    ),
    ("GF750", {**CONTAINERD, "holders": [{"pid": 9, "name": "python3"}]}, {"gpu_container_toolkit_mode": "legacy"}),
    ("GF751", {"runtime": {"cdi_specs": ["/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"]}}, {}),
    # MIG
    (
        "GF753",
        {"hardware": {"gpus": gpus("20b2", 1)}},
        {
            "gpu_mig_layout": "x",
            "gpu_mig_layouts": {"x": [{"devices": "all", "mig-enabled": True, "mig-devices": {"7g.80gb": 2}}]},
        },
    ),
    ("GF754", {}, {"gpu_mig_layout": "all-1g.10gb"}),
    ("GF755", {"hardware": {"gpus": gpus("20b2", 1)}}, {"gpu_mig_layout": "nonsense"}),
]


@pytest.mark.parametrize(("code", "reading", "variables"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)])
def test_finding(code: str, reading: dict[str, Any], variables: dict[str, Any]) -> None:
    assert code in found(probe(**reading), **variables)


def test_findings_that_come_with_the_repositories_answer() -> None:
    board = {"gpus": gpus("2330", 8), "nvswitches": [{"slot": "s", "device": "22a3"}]}
    context = host(probe(hardware=board), gpu_driver_version="535.183.01", gpu_driver_flavour="proprietary")
    result = with_answer(context, ("nvidia-fabricmanager-535",), available={"nvidia-fabricmanager-535": ["535.216.03"]})
    (item,) = [f for f in result if f.code == "GF737"]
    assert "nvidia-fabricmanager-535" in item.message and "535.216.03" in item.remedy
    for system in ({}, ROCKY9):
        context = host(probe(hardware=board, system=system), gpu_driver_version="570.26")
        found = ["570.124.06", "570.26", "570.26~rc1"]
        asked = with_answer(context, ("nvidia-open",), available={"nvidia-open": found})
        assert "570.26~rc1, 570.26, 570.124.06" in next(f.remedy for f in asked if f.code == "GF736")

    context = host(gpu_driver_version="580.95.05")
    assert "GF736" in codes(with_answer(context, ("nvidia-open",)))

    context = host(probe(kernel={"headers": False}))
    (item,) = [f for f in with_answer(context, (f"linux-headers-{KERNEL}",)) if f.code == "GF722"]
    assert KERNEL in item.message

    context = host()
    result = with_answer(
        context, errors=[{"url": "https://mirror/cuda-keyring_1.0-1_all.deb", "answer": "HTTP Error 404"}]
    )
    assert "GF735" in codes(result)


def test_without_repository_management_nothing_outside_is_asked() -> None:
    request = plans.request(preflight.resolve_request(host(gpu_repo_manage=False)))
    assert request["repositories"] == [] and request["urls"] == []
    assert {item["repository"] for item in request["want"]} == {""}


def test_a_set_that_the_hosts_own_lists_cannot_confirm_is_not_available() -> None:
    context = host(gpu_repo_manage=False)
    want = plans.request(preflight.resolve_request(context))["want"]
    context.resolved = Answer.model_validate({"request": want, "unknown": [w["name"] for w in want]})
    (item,) = [f for f in preflight.findings(context) if f.code == "GF736" and "nvidia-open" in f.message]
    assert item.severity == "error"


def test_headers_without_package_lists_are_left_to_the_transaction() -> None:
    context = host(probe(kernel={"headers": False}))
    want = plans.request(preflight.resolve_request(context))["want"]
    told = answer(want, unknown=[f"linux-headers-{KERNEL}"])
    told["packages"] = [p for p in told["packages"] if p["part"] != "headers"]
    context.resolved = Answer.model_validate(told)
    assert "GF722" not in codes(preflight.findings(context))
    headers = context.answer([w for w in context.resolved.request if w.part == "headers"])
    assert headers and FoundPackage(f"linux-headers-{KERNEL}", None, "headers") in headers.packages


def test_nothing_is_asked_when_everything_is_installed() -> None:
    installed = {
        **packages("580.126.09", "nvidia-open"),
        **packages(
            "1.20.0",
            "nvidia-container-toolkit",
            "libnvidia-container1",
            "nvidia-container-toolkit-base",
            "libnvidia-container-tools",
        ),
    }
    reading = probe(packages=installed, library="580.126.09")
    assert preflight.resolve_request(host(reading, gpu_driver_version="580.126.09")) is None


def test_everything_wrong_with_a_host_is_reported_at_once() -> None:
    reading = probe(
        system={"python": "3.6.8", "lock": 7},
        runfile=True,
        kernel={"compiler": "12", "gcc": "11", "secure_boot": True},
        hardware={"gpus": [gpu("1db4", driver="vfio-pci")]},
        runtime={"sockets": ["/run/docker.sock", "/run/crio/crio.sock"]},
    )
    result = found(reading, gpu_driver_branch="595", gpu_preflight_cuda_target="13.0")
    assert set(result) >= {"GF704", "GF720", "GF723", "GF724", "GF726", "GF729", "GF739", "GF744"}


def test_secure_boot_is_satisfied_by_a_key_or_by_signed_modules() -> None:
    enrolled = probe(kernel={"secure_boot": True, "mok": {"/var/lib/dkms/mok.pub": True}})
    assert "GF724" not in found(enrolled)
    signed = probe(kernel={"secure_boot": True})
    assert "GF724" not in found(signed, gpu_driver_method="distro", gpu_driver_branch="580")


def test_sqv_accepts_a_resigned_mirror_an_early_date_and_a_stated_policy() -> None:
    sqv = {"system": {"id": "ubuntu", "version_id": "26.04", "sqv": True}}

    def mirror(**more: Any) -> dict[str, Any]:
        return {
            "gpu_mirror_profile": "own",
            "gpu_mirror_profiles": {"own": {"cuda_url": "https://mirror/cuda", **more}},
        }

    keys = {name: (FIXTURES / f"key-{name}.asc").read_text() for name in ("sha1", "sha512")}
    assert "GF733" not in found(probe(**sqv), **mirror(cuda_key=keys["sha512"]))
    assert "GF733" in found(probe(**sqv), **mirror(cuda_key=keys["sha1"]))
    assert "GF733" in found(probe(**sqv), **mirror())  # a copy of the tree has the vendor's key
    early = merged(sqv, {"system": {"date": "2026-01-31"}})
    assert "GF733" not in found(probe(**early))
    assert "GF733" in found(probe(**sqv), gpu_preflight_allow_sha1_key=True)
    policy = merged(sqv, {"system": {"crypto_policy": True}})
    assert "GF733" not in found(probe(**policy), gpu_preflight_allow_sha1_key=True)


def test_an_own_mirror_opens_the_repository_route_on_a_platform_without_directory() -> None:
    euler = {"system": {"id": "openEuler", "version_id": "22.03", "manager": "dnf"}}
    variables = {"gpu_driver_repo_url": "https://mirror/rhel9/x86_64/", "gpu_driver_repo_key": "text"}
    assert "GF703" not in found(probe(**euler), **variables)
    assert "GF703" not in found(probe(**euler), gpu_driver_method="runfile", gpu_driver_runfile_sha256="0" * 64)


def test_kaslr_workarounds() -> None:
    assert "GF728" not in found(probe(kernel={"cmdline": "quiet nokaslr"}))
    assert "GF728" not in found(gpu_driver_module_options={"nvidia_uvm": "uvm_disable_hmm=1"})


def test_docker_beside_a_kubelet_on_containerd_is_ambiguous() -> None:
    runtime = {"docker": True, "containerd": "1.7.20", "containerd_dump": "version = 2\n"}
    assert "GF744" not in found(probe(runtime=runtime))
    assert "GF744" in found(probe(runtime=runtime, units={"kubelet.service": unit()}))


def test_foreign_holder_is_an_error_only_when_no_reboot_helps() -> None:
    def severity(driver: str) -> str:
        items = preflight.findings(host(probe(hardware={"gpus": [gpu("1eb8", driver=driver)]})))
        return next(f.severity for f in items if f.code == "GF726")

    assert severity("nova_core") == "warning" and severity("vfio-pci") == "error"


def test_warnings_are_accepted_with_a_reason_and_errors_never() -> None:
    items = preflight.findings(host(probe(runfile=True), gpu_driver_branch="535"))
    accepted = report.accept(items, {"GF710": "until March", "GF729": "no"})
    by_code = {f.code: f for f in accepted}
    assert by_code["GF710"].severity == "note" and "until March" in by_code["GF710"].remedy
    assert by_code["GF729"].severity == "error"
    assert report.accept(items, {"GF710": " "}) == report.ordered(items)


def test_every_code_of_preflight_has_a_test_and_every_text_can_be_filled() -> None:
    elsewhere = {"GF711", "GF721", "GF722", "GF735", "GF736", "GF737", "GF760", "GF761", "GF762"}
    tested = {case[0] for case in CASES} | elsewhere | set(QUIET)
    assert {code for code in rules() if "GF7" < code < "GF770"} == tested
    assert report.text(report.ordered(preflight.findings(host(probe(runfile=True))))).startswith(
        "GF729 error: Driver from"
    )


def test_an_old_controller_is_refused() -> None:
    context = host()
    context.ansible_core = "2.9.27"
    assert "GF721" in codes(preflight.findings(context))


def test_a_branch_without_a_known_version_wants_one() -> None:
    context = host(gpu_driver_branch="515")
    row = driver_branch("515", context.tables)
    assert row and row.newest_seen is None
    assert "GF711" in codes(preflight.findings(context))
