"""The GPU layer that runs on the hosts: kernel modules, secure boot, initramfs, MIG, nvidia-smi."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from twin.hosts import scenarios
from twin.hosts.guest import base, boot, daemons, fabric, kernel_log, kernel_tools, mig_layout, modules, nvml, smi, tree

KERNEL = "6.1.0-test"


class Box:
    """A host's files in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("twin", "boot", "dev", "etc/modprobe.d", "usr/lib/x86_64-linux-gnu", f"lib/modules/{KERNEL}"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        (root / f"boot/vmlinuz-{KERNEL}").write_text("")

    def scenario(self, what: str | dict[str, Any]) -> None:
        (self.root / "twin/scenario.json").write_text(scenarios.dump(scenarios.load(what), "box"))

    def headers(self, kernel: str = KERNEL) -> None:
        (self.root / f"lib/modules/{kernel}/build").mkdir(parents=True)

    def in_tree(self, name: str) -> None:
        file = self.root / f"lib/modules/{KERNEL}/kernel/{name}.ko"
        file.parent.mkdir(exist_ok=True)
        file.write_text('{"signer": "distribution"}')

    def driver(self, version: str, flavour: str = "open", *, library: str | None = None) -> None:
        """Install a driver: library, source, and the module built by dkms."""
        folder = "kernel-open" if flavour == "open" else "kernel"
        (self.root / f"usr/src/nvidia-{version}/{folder}").mkdir(parents=True)
        self.library(library or version)
        assert kernel_tools.main_dkms(["add", "-m", "nvidia", "-v", version]) == 0
        assert kernel_tools.main_dkms(["install", "-m", "nvidia", "-v", version, "-k", KERNEL]) == 0

    def library(self, version: str) -> None:
        link = self.root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
        link.unlink(missing_ok=True)
        link.symlink_to(f"libnvidia-ml.so.{version}")

    def log(self) -> str:
        return (self.root / "twin/kmsg").read_text()


def forbidden(*_: object) -> None:
    raise AssertionError("the daemon should have refused to start")


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    monkeypatch.setattr(base, "ROOT", tmp_path)
    monkeypatch.setattr(base, "TWIN", tmp_path / "twin")
    monkeypatch.setenv("TWIN_KERNEL", KERNEL)
    monkeypatch.setattr(daemons, "_daemonize", forbidden)  # a daemon would outlive the test
    return Box(tmp_path)


def loaded() -> list[str]:
    return list(base.boot_state()["modules"])


# -- what a driver may drive -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "version", "flavour", "reason"),
    [
        ("t4", "580.95.05", "open", None),
        ("t4", "610.57.04", "proprietary", None),
        ("v100", "580.95.05", "proprietary", None),
        ("v100", "580.95.05", "open", "GPU System Processor"),
        ("v100", "595.91.07", "open", "580.xx Legacy drivers"),
        ("b200", "580.95.05", "open", None),
        ("b200", "580.95.05", "proprietary", "open kernel modules"),
        ("b200", "570.124.06", "open", "not supported by the NVIDIA 570.124.06"),
        ("hgx-h100", "535.216.03", "proprietary", None),
    ],
)
def test_a_driver_drives_what_it_can(box: Box, scenario: str, version: str, flavour: str, reason: str | None) -> None:
    box.scenario(scenario)
    answer = nvml.refuse_gpu(base.gpus()[0], version, flavour)
    assert (answer is None) if reason is None else (answer is not None and reason in answer)


def test_loading_shows_everywhere_and_unloading_takes_it_back(box: Box) -> None:
    box.scenario("hgx-h100")
    box.headers()
    box.driver("580.95.05")
    assert modules.main_modprobe(["nvidia-uvm"]) == 0
    assert loaded() == ["nvidia", "nvidia_uvm"]
    version = (box.root / "twin/proc/driver/nvidia/version").read_text()
    assert "Open Kernel Module for x86_64  580.95.05" in version
    assert (box.root / "twin/proc/modules").read_text().startswith("nvidia_uvm ")
    device = next((box.root / "twin/sys/bus/pci/devices").glob("0000:17*"))
    assert (device / "driver").readlink().name == "nvidia"
    assert len(list((box.root / "twin/proc/driver/nvidia-nvswitch/devices").iterdir())) == 4
    assert (box.root / "dev/nvidia7").exists() and (box.root / "dev/nvidia-uvm").exists()
    assert modules.main_rmmod(["nvidia"]) == 1  # uvm needs it
    assert modules.main_modprobe(["-r", "nvidia-uvm"]) == 0
    assert loaded() == []
    assert not (box.root / "twin/proc/driver/nvidia").exists()
    assert not (box.root / "dev/nvidia0").exists()


def test_a_process_that_holds_the_gpus_keeps_the_module(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    box.scenario("t4")
    box.headers()
    box.driver("580.95.05")
    modules.main_modprobe(["nvidia"])
    base.hold("exporter", "nvml")
    assert modules.main_rmmod(["nvidia"]) == 1
    assert "in use" in capsys.readouterr().err


def test_a_module_that_was_never_built_is_not_found(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    box.scenario("t4")
    assert modules.main_modprobe(["nvidia"]) == 1
    assert f"FATAL: Module nvidia not found in directory /lib/modules/{KERNEL}" in capsys.readouterr().err


def test_a_bound_gpu_is_refused_and_the_log_names_the_owner(box: Box) -> None:
    box.scenario("nova")
    box.headers()
    box.in_tree("nova_core")
    box.driver("580.95.05")
    modules.main_modprobe(["nova_core"])
    assert modules.main_modprobe(["nvidia"]) == 1
    assert "already bound to nova_core" in box.log()


def test_no_gpu_no_driver(box: Box) -> None:
    box.scenario("no-gpu")
    box.headers()
    box.driver("580.95.05")
    assert modules.main_modprobe(["nvidia"]) == 1


# -- dkms, initramfs, secure boot --------------------------------------------------------------------------------------


def test_dkms_builds_only_for_kernels_with_headers(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    box.scenario("t4")
    box.headers("6.99.1-newer")
    (box.root / "usr/src/nvidia-580.95.05/kernel-open").mkdir(parents=True)
    kernel_tools.main_dkms(["add", "-m", "nvidia", "-v", "580.95.05"])
    assert kernel_tools.main_dkms(["build", "-m", "nvidia", "-v", "580.95.05", "-k", KERNEL]) == 1
    assert "headers" in capsys.readouterr().err
    assert kernel_tools.main_dkms(["install", "-m", "nvidia", "-v", "580.95.05", "-k", "6.99.1-newer"]) == 0
    assert modules.on_disk("nvidia") is None  # for the running kernel
    kernel_tools.main_dkms(["status"])
    assert "nvidia/580.95.05, 6.99.1-newer, x86_64: installed" in capsys.readouterr().out


def test_a_failed_build_says_where_the_log_is(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    box.scenario({"extends": "t4", "failures": {"dkms_build": "error: implicit declaration"}})
    box.headers()
    (box.root / "usr/src/nvidia-580.95.05/kernel-open").mkdir(parents=True)
    assert kernel_tools.main_dkms(["build", "-m", "nvidia", "-v", "580.95.05", "-k", KERNEL]) == 10
    assert "make.log" in capsys.readouterr().err
    assert "implicit declaration" in (box.root / "var/lib/dkms/nvidia/580.95.05/build/make.log").read_text()


def test_nouveau_comes_up_unless_the_initramfs_knows_the_blacklist(box: Box) -> None:
    box.scenario("t4")
    box.in_tree("nouveau")
    kernel_tools.main_update_initramfs(["-u", "-k", "all"])
    boot.main_boot([])
    assert loaded() == ["nouveau"]
    (box.root / "etc/modprobe.d/x.conf").write_text("blacklist nouveau\n")
    boot.main_boot([])
    assert loaded() == ["nouveau"]  # the image is older than the file
    kernel_tools.main_update_initramfs(["-u"])
    boot.main_boot([])
    assert loaded() == []


def test_boot_loads_nvidia_by_itself_and_uvm_only_when_asked(box: Box) -> None:
    box.scenario("t4")
    box.headers()
    box.driver("580.95.05")
    boot.main_boot([])
    assert loaded() == ["nvidia", "nvidia_modeset", "nvidia_drm"]
    (box.root / "etc/modules-load.d").mkdir()
    (box.root / "etc/modules-load.d/nvidia.conf").write_text("# comment\nnvidia-uvm\n")
    (box.root / "etc/modprobe.d/drm.conf").write_text("blacklist nvidia_drm\n")
    boot.main_boot([])
    assert loaded() == ["nvidia", "nvidia_modeset", "nvidia_uvm"]


def test_secure_boot_wants_the_key_enrolled_and_that_takes_a_boot(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    box.scenario("secure-boot")
    box.headers()
    box.driver("580.95.05")
    boot.main_boot([])
    assert modules.main_modprobe(["nvidia"]) == 1
    assert "Key was rejected by service" in capsys.readouterr().err
    assert kernel_tools.main_mokutil(["--test-key", "/var/lib/dkms/mok.pub"]) == 0
    assert kernel_tools.main_mokutil(["--import", "/var/lib/dkms/mok.pub"]) == 0
    assert modules.main_modprobe(["nvidia"]) == 1  # imported is not enrolled
    boot.main_boot([])
    assert "nvidia" in loaded()
    efi = (box.root / "twin/sys/firmware/efi/efivars" / tree.SECURE_BOOT).read_bytes()
    assert efi == bytes([6, 0, 0, 0, 1])


# -- nvidia-smi --------------------------------------------------------------------------------------------------------


def ready(box: Box, scenario: str | dict[str, Any], version: str = "580.95.05") -> None:
    box.scenario(scenario)
    box.headers()
    box.driver(version)
    boot.main_boot([])
    modules.main_modprobe(["nvidia"])


def run_smi(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = smi.main_nvidia_smi(list(arguments))
    return code, capsys.readouterr().out


def test_smi_without_library_without_driver_and_with_another_version(
    box: Box, capsys: pytest.CaptureFixture[str]
) -> None:
    box.scenario("t4")
    box.headers()
    assert run_smi(capsys)[0] == 12
    box.driver("580.95.05")
    code, text = run_smi(capsys)
    assert code == 9 and "couldn't communicate with the NVIDIA driver" in text
    modules.main_modprobe(["nvidia"])
    assert run_smi(capsys)[0] == 0
    box.library("580.126.09")
    code, text = run_smi(capsys)
    assert code == 18 and "Driver/library version mismatch\nNVML library version: 580.126" in text


def test_smi_queries_as_csv(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    ready(box, "a100-pcie")
    query = "--query-gpu=index,name,driver_version,memory.total,mig.mode.current,fabric.state"
    code, text = run_smi(capsys, query, "--format=csv,noheader,nounits", "-i", "1")
    assert (code, text) == (0, "1, NVIDIA A100 80GB PCIe, 580.95.05, 81920, Disabled, N/A\n")
    code, text = run_smi(capsys, "--query-gpu=nonsense", "--format=csv")
    assert code == 2 and "nonsense" in text


def test_a_lost_gpu_and_a_dead_tool(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    ready(box, {"extends": "a100-pcie", "failures": {"gpu_lost": [2]}})
    assert run_smi(capsys, "-L")[1].count("GPU ") == 3
    box.scenario({"extends": "a100-pcie", "failures": {"smi": "Unable to determine the device handle"}})
    assert run_smi(capsys, "-L") == (255, "Unable to determine the device handle\n")


def test_settings_end_with_a_boot(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    ready(box, "a100-pcie")
    assert run_smi(capsys, "-pl", "200")[0] == 0
    assert run_smi(capsys, "compute-policy", "--set-timeslice", "2")[0] == 0
    assert run_smi(capsys, "-pl", "999")[0] == 2
    query = ("--query-gpu=power.limit", "--format=csv,noheader,nounits", "-i", "0")
    assert run_smi(capsys, *query)[1] == "200.00\n"
    assert "Medium" in run_smi(capsys, "compute-policy", "-l")[1]
    boot.main_boot([])
    assert run_smi(capsys, *query)[1] == "300.00\n"
    assert "Medium" not in run_smi(capsys, "compute-policy", "-l")[1]


def test_a_reset_is_refused_while_drm_is_there(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    ready(box, "a100-pcie")
    assert "nvidia_drm" in loaded()
    code, text = run_smi(capsys, "--gpu-reset")
    assert code == 1 and "In use by another client" in text
    modules.main_rmmod(["nvidia_drm"])
    assert run_smi(capsys, "--gpu-reset")[0] == 0


def test_a_host_with_switches_resets_all_gpus_or_none(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    ready(box, "hgx-h100")
    modules.main_rmmod(["nvidia_drm"])
    assert run_smi(capsys, "--gpu-reset", "-i", "0")[0] == 1
    assert run_smi(capsys, "--gpu-reset")[0] == 0


# -- fabric ------------------------------------------------------------------------------------------------------------


def manager(box: Box, version: str) -> None:
    file = box.root / "usr/share/nvidia/nvswitch/version"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(version)
    (box.root / "var/log").mkdir(parents=True, exist_ok=True)


def test_fabric_manager_refuses_another_version_to_the_last_field(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    ready(box, "hgx-h100")
    manager(box, "580.95.06")
    assert daemons.main_nv_fabricmanager([]) == 1
    assert "version 580.95.06 don't match with driver version 580.95.05" in capsys.readouterr().err
    assert fabric.of_gpu() == fabric.WAITING


def test_fabric_manager_refuses_a_host_without_switches(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    ready(box, "a100-pcie")
    manager(box, "580.95.05")
    assert daemons.main_nv_fabricmanager([]) == 1
    assert "NVSwitch" in capsys.readouterr().err


def test_the_fabric_completes_after_its_time_and_not_before(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    ready(box, {"extends": "hgx-h100", "fabric": {"settle_seconds": 5}})
    now = 1000.0
    monkeypatch.setattr(fabric, "seconds", lambda: now)
    assert fabric.of_gpu() == fabric.WAITING
    fabric.configured()
    now = 1004.9
    assert fabric.of_gpu() == fabric.WAITING
    now = 1005.0
    assert fabric.of_gpu() == fabric.DONE


def test_fourth_generation_switches_need_the_subnet_manager(box: Box) -> None:
    ready(box, {"extends": "b200", "fabric": {"settle_seconds": 0}})
    fabric.configured()
    assert fabric.of_gpu() == fabric.WAITING
    (box.root / "opt/nvidia/nvlsm/sbin").mkdir(parents=True)
    (box.root / fabric.NVLSM).write_text("")
    fabric.configured()
    assert fabric.of_gpu() == fabric.WAITING  # ib_umad is not loaded
    box.in_tree("ib_core")
    box.in_tree("ib_umad")
    modules.main_modprobe(["ib_umad"])
    fabric.configured()
    assert fabric.of_gpu() == fabric.DONE


# -- MIG ---------------------------------------------------------------------------------------------------------------


def test_what_fits_on_one_gpu(box: Box) -> None:
    box.scenario("mig-a100")
    gpu = base.gpus()[0]
    mig_layout.check_fit(gpu, ["1g.10gb"] * 7)
    mig_layout.check_fit(gpu, ["3g.40gb", "3g.40gb"])
    for wrong in (["1g.10gb"] * 8, ["7g.80gb", "1g.10gb"], ["4g.40gb", "4g.40gb"], ["3g.40gb", "3g.40gb", "1g.10gb"]):
        with pytest.raises(mig_layout.Impossible):
            mig_layout.check_fit(gpu, wrong)
    with pytest.raises(mig_layout.Impossible, match=r"1g\.5gb does not exist"):
        mig_layout.check_fit(gpu, ["1g.5gb"])


def test_a_mode_change_waits_for_the_holder_on_ampere(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    ready(box, "mig-a100")
    query = ("--query-gpu=mig.mode.current,mig.mode.pending", "--format=csv,noheader", "-i", "0")
    assert run_smi(capsys, "-mig", "1")[0] == 0
    assert run_smi(capsys, *query)[1] == "Disabled, Enabled\n"
    boot.main_boot([])
    assert run_smi(capsys, *query)[1] == "Enabled, Enabled\n"
    assert run_smi(capsys, "-mig", "1")[0] != 0  # enabling what is enabled


def test_mode_and_instances_after_a_boot(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    for scenario, kept in (("mig-a100", "Enabled"), ("hgx-h100", "Disabled")):
        box.scenario(scenario)
        if not (box.root / f"lib/modules/{KERNEL}/build").exists():
            box.headers()
            box.driver("580.95.05")
        (box.root / "twin/lasting.json").unlink(missing_ok=True)
        boot.main_boot([])
        modules.main_rmmod(["nvidia_drm"])
        assert run_smi(capsys, "-mig", "1")[0] == 0
        assert run_smi(capsys, "mig", "-cgi", "19,3g.40gb", "-C")[0] == 0
        assert run_smi(capsys, "-L")[1].count("MIG 1g.10gb") == 8
        boot.main_boot([])
        assert run_smi(capsys, "-L")[1].count("MIG ") == 0
        assert run_smi(capsys, "--query-gpu=mig.mode.current", "--format=csv,noheader", "-i", "0")[1] == f"{kept}\n"


def test_the_kernel_log_as_dmesg_and_as_journal(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    box.scenario("t4")
    base.kernel_log("NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.")
    base.kernel_log("eth0: link up", 6)
    kernel_log.main_dmesg([])
    assert capsys.readouterr().out.count("\n") == 2
    assert kernel_log.main_journalctl(["-k", "-g", "xid", "-o", "json"]) == 0
    entry = json.loads(capsys.readouterr().out)
    assert entry["MESSAGE"].startswith("NVRM: Xid") and entry["_TRANSPORT"] == "kernel"
    assert kernel_log.main_journalctl(["-k", "--grep=nothing such"]) == 1
