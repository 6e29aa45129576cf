"""What runs on the host: reading sysfs, procfs, nvidia-smi, keys, packages, indexes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from ansible_collections.gpufleet.hosts.plugins.module_utils import (
    hardware,
    index,
    openpgp,
    order,
    packages,
    runtime,
    smi,
)

from .hosts import interesting

FIXTURES = Path(__file__).parent / "fixtures"


def device(root: Path, slot: str, vendor: str, number: str, kind: str, driver: str | None = None) -> None:
    folder = root / "bus/pci/devices" / slot
    folder.mkdir(parents=True)
    for name, value in (("vendor", vendor), ("device", number), ("class", kind), ("subsystem_device", "0x14a9")):
        (folder / name).write_text(f"{value}\n")
    if driver:
        target = root / "bus/pci/drivers" / driver
        target.mkdir(parents=True, exist_ok=True)
        (folder / "driver").symlink_to(os.path.relpath(target, folder))


def test_gpus_and_switches_are_told_apart(tmp_path: Path) -> None:
    device(tmp_path, "0000:17:00.0", "0x10de", "0x2330", "0x030200", "nova_core")
    device(tmp_path, "0000:c0:00.0", "0x10de", "0x22a3", "0x068000")
    device(tmp_path, "0000:17:00.1", "0x10de", "0x10f9", "0x040300")  # the card's audio function
    device(tmp_path, "0000:01:00.0", "0x8086", "0x1563", "0x020000")
    found = hardware.pci_devices(str(tmp_path))
    assert [(g["slot"], g["device"], g["driver"], g["subsystem"]) for g in found["gpus"]] == [
        ("0000:17:00.0", "2330", "nova_core", "14a9")
    ]
    assert [s["device"] for s in found["nvswitches"]] == ["22a3"]
    assert hardware.pci_devices(str(tmp_path / "none")) == {"gpus": [], "nvswitches": []}


def test_switch_ports_are_found_in_vital_product_data(tmp_path: Path) -> None:
    for name, data in (("mlx5_0", b"\x82\x00ConnectX-7"), ("mlx5_4", b"\x82\x00\x01\xffSW_MNG\x00")):
        folder = tmp_path / "class/infiniband" / name / "device"
        folder.mkdir(parents=True)
        (folder / "vpd").write_bytes(data)
    assert hardware.switch_management_ports(str(tmp_path)) == ["mlx5_4"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)",
            {"version": "580.159.04", "flavour": "open"},
        ),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024",
            {"version": "535.183.01", "flavour": "proprietary"},
        ),
        ("something else", None),
    ],
)
def test_loaded_driver(tmp_path: Path, text: str, expected: dict[str, str] | None) -> None:
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").write_text(text + "\n")
    assert hardware.loaded_driver(str(tmp_path)) == expected


@pytest.mark.parametrize(
    ("text", "major"),
    [
        (
            "Linux version 6.1.0-18-amd64 (debian-kernel@x) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld) #1",
            "12",
        ),
        (
            "Linux version 5.14.0-503.el9 (mock@x) (gcc (GCC) 11.5.0 20240719 (Red Hat 11.5.0-2), GNU ld) #1",
            "11",
        ),
        (
            "Linux version 6.8.0-45 (buildd@x) (x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0-23ubuntu4) 13.2.0, GNU ld) #45",
            "13",
        ),
        ("Linux version 6.18 (b@x) (clang version 19.1.0, LLD 19.1.0) #1", None),
    ],
)
def test_compiler_of_the_kernel(tmp_path: Path, text: str, major: str | None) -> None:
    (tmp_path / "version").write_text(text)
    assert hardware.kernel(str(tmp_path))["compiler"] == major


def test_modules_keep_their_reference_count(tmp_path: Path) -> None:
    (tmp_path / "modules").write_text(
        "nvidia_uvm 1830912 2 - Live 0x0 (O)\nnvidia 14299136 - - Live 0x0 (O)\next4 1 1 - Live 0x0\n"
    )
    assert hardware.loaded_modules(str(tmp_path)) == {"nvidia_uvm": 2, "nvidia": None}


def test_secure_boot_is_the_fifth_byte(tmp_path: Path) -> None:
    assert hardware.secure_boot(str(tmp_path)) is None
    path = tmp_path / hardware._SECURE_BOOT
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x06\x00\x00\x00\x01")
    assert hardware.secure_boot(str(tmp_path)) is True
    path.write_bytes(b"\x06\x00\x00\x00\x00")
    assert hardware.secure_boot(str(tmp_path)) is False


def test_holders_are_processes_with_a_gpu_open(tmp_path: Path) -> None:
    for pid, target, name in (
        ("10", "/dev/nvidia0", "python3"),
        ("11", "/dev/nvidiactl", "dcgm"),
        ("12", "/dev/null", "sh"),
    ):
        (tmp_path / pid / "fd").mkdir(parents=True)
        (tmp_path / pid / "fd/3").symlink_to(target)
        (tmp_path / pid / "comm").write_text(name + "\n")
    assert hardware.device_holders(str(tmp_path)) == [{"pid": 10, "name": "python3"}]


def test_report_of_a_real_gpu() -> None:
    report = smi.parse((FIXTURES / "nvidia-smi-q-h200.txt").read_text())
    assert report and report["driver_version"] == "580.159.04"
    (gpu,) = report["gpus"]
    assert (gpu["name"], gpu["mig_current"], gpu["ecc_uncorrectable"], gpu["power_limit_w"], gpu["memory_mib"]) == (
        "NVIDIA H200",
        "Disabled",
        0,
        700.0,
        143771,
    )
    assert gpu["fabric_state"] is None and gpu["recovery_action"] == "None"


def test_report_with_a_fabric_and_errors() -> None:
    text = (FIXTURES / "nvidia-smi-q-h200.txt").read_text()
    text = text.replace(
        "        State                                          : N/A", "        State : In Progress", 1
    )
    text = re.sub(r"(DRAM Uncorrectable +): 0", r"\1: 3", text, count=1)
    text = re.sub(r"(Remapping Failure Occurred +): No", r"\1: Yes", text)
    (gpu,) = smi.parse(text)["gpus"]
    assert (gpu["fabric_state"], gpu["ecc_uncorrectable"], gpu["remap_failed"]) == ("In Progress", 3, True)


@pytest.mark.parametrize("text", ["", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."])
def test_no_report(text: str) -> None:
    assert smi.parse(text) is None


def test_keys_are_read_without_gpg() -> None:
    weak = (FIXTURES / "key-sha1.asc").read_bytes()
    strong = (FIXTURES / "key-sha512.asc").read_bytes()
    assert openpgp.keys(weak) == [{"fingerprint": "FAD54B5F484F2DBE81E30785AA23A50360824288", "sha1_only": True}]
    assert openpgp.keys(strong) == [{"fingerprint": "0A221AFCC82973DBE4ECD55D019B6ACBC04A59C0", "sha1_only": False}]
    assert len(openpgp.keys(weak + strong)) == 2
    assert openpgp.keys(b"no key") == [] and openpgp.keys(b"") == []


STATUS = """Package: nvidia-open
Status: hold ok installed
Version: 580.95.05-1

Package: nvidia-dkms-580-open
Status: install ok half-configured
Version: 580.95.05-1

Package: libnvidia-compute-535
Status: deinstall ok config-files
Version: 535.1-1

Package: bash
Status: install ok installed
Version: 5.2
"""


def test_dpkg_status() -> None:
    found = packages.dpkg_packages(STATUS, interesting)
    assert found == {
        "nvidia-open": {"version": "580.95.05-1", "hold": True, "state": "installed"},
        "nvidia-dkms-580-open": {"version": "580.95.05-1", "hold": False, "state": "half-configured"},
    }
    assert packages.dpkg_unfinished(STATUS) == ["nvidia-dkms-580-open"]


def test_rpm_listing_with_locks() -> None:
    listing = (
        "nvidia-open\t3\t610.57.04-1.el9\nkernel\t(none)\t5.14.0-503.el9\nbash\t(none)\t5-1\n"
        "nvidia-driver\t3\t610.57.04-1.el9\nlibnvidia-ml\t3\t610.57.04-1.el9\n"
    )
    locks = (
        "# comment\nnvidia-open-3:610.57.04-1.el9.*\nnvidia-driver-3:580.126.09-1.el9.*\n!kernel-0:5.14.0-503.el9.*\n"
    )
    found = packages.rpm_packages(listing, locks, interesting)
    assert found["nvidia-open"] == {"version": "3:610.57.04-1.el9", "hold": True, "lock": True, "state": "installed"}
    assert (found["kernel"]["hold"], found["kernel"]["lock"]) == (False, False) and "bash" not in found
    # A lock on another version holds nothing, and keeps the wanted one away.
    assert (found["nvidia-driver"]["hold"], found["nvidia-driver"]["lock"]) == (False, True)
    assert (found["libnvidia-ml"]["hold"], found["libnvidia-ml"]["lock"]) == (False, False)


def test_apt_sources_of_both_forms(tmp_path: Path) -> None:
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (folder / "cuda.list").write_text(
        "# deb http://old/ /\ndeb [signed-by=/k.gpg arch=amd64] https://a.example/cuda/ /\n"
    )
    (folder / "x.sources").write_text(
        "Types: deb deb-src\nURIs: http://b.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\n"
        "Enabled: no\nTypes: deb\nURIs: http://c.example/\nSuites: /\nSigned-By:\n"
        " -----BEGIN PGP PUBLIC KEY BLOCK-----\n"
    )
    found = packages.apt_sources(str(tmp_path))
    assert [(s["uri"], s["suite"], s["signed_by"], s["enabled"]) for s in found] == [
        ("https://a.example/cuda/", "/", "/k.gpg", True),
        ("http://b.example/debian", "bookworm", None, True),
        ("http://b.example/debian", "bookworm-updates", None, True),
        ("http://c.example/", "/", None, False),
    ]


def test_yum_sources(tmp_path: Path) -> None:
    (tmp_path / "a.repo").write_text(
        "[cuda]\nbaseurl=https://a.example/cuda/\nenabled=1\n[off]\nmirrorlist=https://b/x\nenabled=0\n"
    )
    assert [(s["id"], s["uri"], s["enabled"]) for s in packages.yum_sources(str(tmp_path))] == [
        ("cuda", "https://a.example/cuda/", True),
        ("off", "https://b/x", False),
    ]


def test_blacklist_of_unattended_upgrades(tmp_path: Path) -> None:
    (tmp_path / "50").write_text('Unattended-Upgrade::Package-Blacklist {\n // "linux-";\n "^nvidia-"; };\n')
    assert packages.unattended_blacklist(str(tmp_path)) == ["^nvidia-"]


INDEX = """Package: cuda-drivers-535
Version: 535.183.01-1
Depends: nvidia-driver-535 (>= 535.183.01-1)

Package: cuda-drivers-535
Version: 535.216.03-1
Depends: nvidia-driver-535 (>= 535.216.03-1)

Package: nvidia-driver-535
Version: 535.183.01-1
Depends: nvidia-dkms-535 (= 535.183.01-1) | nvidia-dkms-535-open (= 535.183.01-1), libc6
Recommends: nvidia-settings (>= 535)

Package: nvidia-driver-535
Version: 535.216.03-1
Depends: nvidia-dkms-535 (= 535.216.03-1)

Package: nvidia-dkms-535
Version: 535.183.01-1

Package: nvidia-dkms-535
Version: 535.216.03-1

Package: nvidia-settings
Version: 535.183.01-1

Package: nvidia-fabricmanager-535
Version: 535.216.03-1
"""


def test_the_set_is_pinned_with_everything_it_pulls_in() -> None:
    want = [{"name": "cuda-drivers-535", "version": "535.183.01", "part": "driver"}]
    found = index.closure(index.parse_packages(INDEX, interesting), want, order.comparison("apt"))
    assert {p["name"]: p["version"] for p in found["packages"]} == dict.fromkeys(
        ("cuda-drivers-535", "nvidia-driver-535", "nvidia-dkms-535", "nvidia-settings"), "535.183.01-1"
    )
    assert {p["part"] for p in found["packages"]} == {"driver"} and found["missing"] == []


def test_fabric_manager_that_is_newer_only_is_missing() -> None:
    want = [{"name": "nvidia-fabricmanager-535", "version": "535.183.01", "part": "fabric"}]
    found = index.closure(index.parse_packages(INDEX, interesting), want, order.comparison("apt"))
    assert found["missing"] == ["nvidia-fabricmanager-535"] and found["packages"] == []
    assert found["available"] == {"nvidia-fabricmanager-535": ["535.216.03"]}


def test_the_newest_revision_wins_by_number() -> None:
    known = {"a": dict.fromkeys(["580.95.05-2ubuntu1", "580.95.05-10ubuntu1", "580.95.05-10ubuntu1~rc1"])}
    assert index.pick(known, "a", "580.95.05", order.comparison("apt")) == "580.95.05-10ubuntu1"


def test_rpm_index() -> None:
    import io

    data = (
        b'<metadata xmlns="http://linux.duke.edu/metadata/common"><package type="rpm"><name>nvidia-open</name>'
        b'<version epoch="3" ver="610.57.04" rel="1.el9"/></package><package type="rpm"><name>bash</name>'
        b'<version epoch="0" ver="5" rel="1"/></package></metadata>'
    )
    assert index.parse_primary(io.BytesIO(data), interesting) == {"nvidia-open": {"3:610.57.04-1.el9": []}}


def test_units_with_their_start() -> None:
    text = (
        "Id=containerd.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\nResult=success\n"
        "NeedDaemonReload=no\nStateChangeTimestampMonotonic=5000000\nTimeoutStartUSec=infinity\n\n"
        "Id=nothing.service\nLoadState=not-found\nActiveState=inactive\n"
    )
    found = runtime.units(text, now_monotonic=105.0, now=1000.0)
    assert found == {
        "containerd.service": {
            "load": "loaded",
            "active": "active",
            "enabled": "enabled",
            "result": "success",
            "reload": False,
            "since": 900.0,
            "start_limit": "infinity",
        }
    }


def test_kernel_log_hits() -> None:
    text = "[1] boot\n[2] NVRM: RmInitAdapter failed! (0x62:0xffff:2477)\n[3] NVRM: Xid (PCI:0000:17:00): 79, pid=1\n"
    patterns = [("rm-init", "NVRM: .*RmInitAdapter failed"), ("xid", r"Xid \([^)]*\): 79\b")]
    assert [h["id"] for h in runtime.kernel_log_hits(text, patterns)] == ["rm-init", "xid"]


def test_what_the_driver_said_before_it_was_loaded_last_is_history() -> None:
    old = "[1] Loading of unsigned module is rejected\n[2] NVRM: API mismatch: the client has 570\n"
    load = "[3] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.126.09  Release Build\n"
    patterns = [("mismatch", "NVRM: API mismatch"), ("rejected", "Loading of (?:unsigned )?module is rejected")]
    assert [h["id"] for h in runtime.kernel_log_hits(old, patterns)] == ["rejected", "mismatch"]
    assert [h["id"] for h in runtime.kernel_log_hits(old + load, patterns)] == ["rejected"]
    assert [h["id"] for h in runtime.kernel_log_hits(load + old, patterns)] == ["rejected", "mismatch"]


CYCLE = """\
a.service: Found ordering cycle on b.service/start
a.service: Found dependency on nvidia-cdi-refresh.path/start
a.service: Found dependency on a.service/start
a.service: Job nvidia-cdi-refresh.path/start deleted to break ordering cycle starting with a.service/start
/etc/systemd/system/x.service:3: Unknown key name 'Foo' in section 'Unit', ignoring.
"""


def test_cycles_of_the_boot_order() -> None:
    """Lines as systemd 252 prints them."""
    cycle = {"units": ["b.service", "nvidia-cdi-refresh.path", "a.service"], "lost": "nvidia-cdi-refresh.path"}
    assert runtime.boot_cycles(CYCLE) == [cycle]
    assert runtime.boot_cycles(CYCLE + CYCLE) == [cycle, cycle]
    assert runtime.boot_cycles("") == runtime.boot_cycles("x.service: Command /usr/bin/x is not executable") == []
