"""The sysfs, proc and device files that follow from the scenario and the state: /twin/sys, /twin/proc, /dev/nvidia*."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import struct
from pathlib import Path
from typing import Any

from . import base, mig_layout, nvml

SECURE_BOOT = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def render() -> None:
    """Bring the files in line with scenario and state. Cheap: a few hundred small files on a large host."""
    scenario, state = base.scenario(), base.boot_state()
    loaded = state["modules"]
    _sys(scenario, loaded)
    _proc(scenario, loaded)
    _devices(scenario, loaded)
    _nvml(loaded)


def write(path: Path, content: str | bytes) -> None:
    """Write a file only when it differs, in place, so that readers and watchers see real changes alone."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)


def link(path: Path, target: str | None) -> None:
    """Make `path` a link to `target`, or remove it."""
    current = str(path.readlink()) if path.is_symlink() else None
    if current == target:
        return
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    if target is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def config_space(device: dict[str, Any]) -> bytes:
    """Return the first 64 bytes of PCI configuration space, enough for lspci."""
    kind = int(device["class"], 16)
    subsystem = device.get("subsystem", "0000:0000").split(":")
    head = struct.pack(
        "<HHHHBBBBBBBB", int(device["vendor"], 16), int(device["device"], 16), 0x0007, 0x0010, 0xA1, kind & 0xFF,
        (kind >> 8) & 0xFF, kind >> 16, 0, 0, 0, 0,
    )  # fmt: skip
    tail = struct.pack("<HH", int(subsystem[0], 16), int(subsystem[1], 16))
    return head + bytes(0x2C - len(head)) + tail + bytes(64 - 0x2C - len(tail))


def pci_devices(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all PCI devices of the host that matter here: GPUs on the bus, NVSwitches, InfiniBand ports, others."""
    ib = [{**port, "vendor": "15b3", "class": "020700"} for port in scenario.get("infiniband", [])]
    return [*base.gpus(), *scenario.get("nvswitches", []), *ib, *scenario.get("other_pci", [])]


def driver_of(device: dict[str, Any], scenario: dict[str, Any], loaded: dict[str, Any]) -> str | None:
    """Return the driver that a PCI device is bound to."""
    if device["vendor"] == "15b3":
        return "mlx5_core" if "mlx5_core" in loaded else None
    if device["class"].startswith("0680"):
        return "nvidia-nvswitch" if "nvidia" in loaded else None
    if device["vendor"] != "10de":
        return None
    for name in loaded:
        if name in ("nouveau", "nova_core", "nvidia"):
            return name
    return None


def _sys(scenario: dict[str, Any], loaded: dict[str, Any]) -> None:
    top = base.TWIN / "sys"
    devices = top / "bus/pci/devices"
    wanted = pci_devices(scenario)
    for stale in devices.glob("*") if devices.exists() else []:
        if stale.name not in {device["pci"] for device in wanted}:
            shutil.rmtree(stale)
    devices.mkdir(parents=True, exist_ok=True)
    for device in wanted:
        folder = devices / device["pci"]
        subsystem = device.get("subsystem", "0000:0000").split(":")
        write(folder / "vendor", f"0x{device['vendor']}\n")
        write(folder / "device", f"0x{device['device']}\n")
        write(folder / "class", f"0x{device['class']}\n")
        write(folder / "subsystem_vendor", f"0x{subsystem[0]}\n")
        write(folder / "subsystem_device", f"0x{subsystem[1]}\n")
        write(folder / "numa_node", f"{device.get('numa', 0)}\n")
        write(folder / "resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000\n" * 7)
        write(folder / "irq", "0\n")
        write(folder / "config", config_space(device))
        driver = driver_of(device, scenario, loaded)
        if driver:
            (top / "bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        link(folder / "driver", f"../../drivers/{driver}" if driver else None)
    modules = top / "module"
    for stale in modules.glob("*") if modules.exists() else []:
        if stale.name not in loaded:
            shutil.rmtree(stale)
    for name, facts in loaded.items():
        write(modules / name / "initstate", "live\n")
        if facts.get("version"):
            write(modules / name / "version", facts["version"] + "\n")
    for port in scenario.get("infiniband", []):
        write(devices / port["pci"] / "vpd", port.get("vpd", ""))
        link(top / "class/infiniband" / port["name"] / "device", f"../../../bus/pci/devices/{port['pci']}")
    efi = top / "firmware/efi/efivars" / SECURE_BOOT
    if (scenario.get("secure_boot") or {}).get("uefi", True):
        enabled = bool((scenario.get("secure_boot") or {}).get("enabled"))
        write(efi, bytes([6, 0, 0, 0, 1 if enabled else 0]))
    for key, value in (scenario.get("dmi") or {}).items():
        write(top / "class/dmi/id" / key, f"{value}\n")


def nvrm_version(facts: dict[str, Any], compiler: str) -> str:
    """Return the text of /proc/driver/nvidia/version."""
    kind = "Open Kernel Module for x86_64" if facts["flavour"] == "open" else "x86_64 Kernel Module"
    build = "  Release Build  (dvs-builder@twin)" if facts["flavour"] == "open" else ""
    return (
        f"NVRM version: NVIDIA UNIX {kind}  {facts['version']}{build}  Tue Sep 23 10:11:16 UTC 2025\n"
        f"GCC version:  gcc version {compiler}\n"
    )


def _proc(scenario: dict[str, Any], loaded: dict[str, Any]) -> None:
    top = base.TWIN / "proc"
    compiler = scenario["kernel"]["compiler"]
    write(top / "version", f"Linux version {base.kernel()} (build@twin) (gcc-{compiler}, GNU ld 2.40) #1 SMP\n")
    lines = [f"{name} 16384 0 - Live 0x0000000000000000" for name in reversed(list(loaded))]
    write(top / "modules", "".join(line + "\n" for line in lines))
    driver = top / "driver/nvidia"
    driver.parent.mkdir(parents=True, exist_ok=True)
    nvidia = loaded.get("nvidia")
    if nvidia is None:
        shutil.rmtree(driver, ignore_errors=True)
        shutil.rmtree(top / "driver/nvidia-nvswitch", ignore_errors=True)
        return
    write(driver / "version", nvrm_version(nvidia, compiler))
    write(driver / "params", "ResmanDebugLevel: 4294967295\nEnableGpuFirmware: 18\n")
    for gpu in base.gpus():
        text = f"Model: \t\t {gpu['name']}\nIRQ:   \t\t 0\nGPU UUID: \t {gpu['uuid']}\nBus Location: \t {gpu['pci']}\n"
        write(driver / "gpus" / gpu["pci"] / "information", text + f"Device Minor: \t {gpu['index']}\n")
    for switch in scenario.get("nvswitches", []):
        write(top / "driver/nvidia-nvswitch/devices" / switch["pci"], "")


def device_nodes(scenario: dict[str, Any], loaded: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the device files that the loaded modules make: name below /dev -> major and minor number."""
    wanted: dict[str, tuple[int, int]] = {}
    if "nvidia" in loaded:
        wanted["nvidiactl"] = (195, 255)
        wanted.update({f"nvidia{gpu['index']}": (195, gpu["index"]) for gpu in base.gpus()})
        for index in range(len(scenario.get("nvswitches", []))):
            wanted["nvidia-nvswitchctl"] = (236, 255)
            wanted[f"nvidia-nvswitch{index}"] = (236, index)
        wanted.update({f"nvidia-caps/nvidia-cap{number}": (237, number) for number in mig_minors().values()})
    if "nvidia_modeset" in loaded:
        wanted["nvidia-modeset"] = (195, 254)
    if "nvidia_uvm" in loaded and not base.failure("uvm_nodes"):
        wanted.update({"nvidia-uvm": (235, 0), "nvidia-uvm-tools": (235, 1)})
    return wanted


def _devices(scenario: dict[str, Any], loaded: dict[str, Any]) -> None:
    folder = base.ROOT / "dev"
    wanted = device_nodes(scenario, loaded)
    for present in [*folder.glob("nvidia*"), *folder.glob("nvidia-caps/*")]:
        if not present.is_dir() and str(present.relative_to(folder)) not in wanted:
            present.unlink()
    for name, (major, minor) in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            try:
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
                path.chmod(0o666)
            except PermissionError:  # no right to make devices here: at least the name exists
                path.symlink_to("/dev/null")


def mig_minors() -> dict[str, int]:
    """Return the capability files of MIG: name as in mig-minors -> minor number."""
    found = {"config": 1, "monitor": 2}
    for gpu in base.gpus():
        for entry in mig_layout.devices(gpu):
            number = 3 + 2 * (gpu["index"] * 15 + entry["id"])
            found[f"gpu{gpu['index']}/gi{entry['id']}/access"] = number
            found[f"gpu{gpu['index']}/gi{entry['id']}/ci0/access"] = number + 1
    return found


def _nvml(loaded: dict[str, Any]) -> None:
    """Tell the NVML stand-in and the readers of MIG minors what there is; without a driver there is nothing."""
    caps = base.TWIN / "proc/driver/nvidia-caps"
    file = base.TWIN / "nvml"
    nvidia = loaded.get("nvidia")
    if nvidia is None:
        file.unlink(missing_ok=True)
        shutil.rmtree(caps, ignore_errors=True)
        return
    cuda = nvml.cuda_version(nvidia["version"]).split(".")
    lines = [f"driver {nvidia['version']}", f"cuda {int(cuda[0]) * 1000 + int(cuda[1]) * 10}"]
    for gpu in base.gpus():
        if nvml.refuse_gpu(gpu, nvidia["version"], nvidia["flavour"]):
            continue
        mode = -1 if not gpu.get("mig") else int(mig_layout.enabled(gpu))
        major, _, minor = gpu["compute_capability"].partition(".")
        index = gpu["index"]
        facts = f"{gpu['device']} {major} {minor} {gpu['memory_mib']} {mode} {gpu['name']}"
        lines.append(f"gpu {index} {gpu['uuid']} {gpu['pci']} {facts}")
        for entry in mig_layout.devices(gpu):
            lines.append(f"mig {index} {entry['id']} 0 {mig_layout.nvml_facts(gpu, entry['profile'])} {entry['uuid']}")
    write(file, "".join(line + "\n" for line in lines))
    write(caps / "mig-minors", "".join(f"{name} {number}\n" for name, number in mig_minors().items()))
