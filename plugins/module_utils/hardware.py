"""What the kernel says about a host's GPUs: PCI, modules, driver, NVSwitch. Reads files only.

Every function takes the root of sysfs or procfs, so that a test can point it elsewhere.
"""

from __future__ import annotations

import os
import re
from typing import Any

NVIDIA = "10de"
# PCI base classes: 0x03 display controller, 0x0680 other bridge (what an NVSwitch up to the third generation is).
_DISPLAY = "03"
_BRIDGE = "0680"
_SECURE_BOOT = "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
# Modules that matter: NVIDIA's own, those that take the GPU away, and what a fourth-generation NVSwitch needs.
MODULES_OF_INTEREST = frozenset(
    [
        "nvidia",
        "nvidia_uvm",
        "nvidia_modeset",
        "nvidia_drm",
        "nvidia_peermem",
        "nvidia_fs",
        "gdrdrv",
        "nouveau",
        "nova",
        "nova_core",
        "nova_drm",
        "ib_umad",
        "mlx5_core",
        "vfio_pci",
    ]
)


def read_text(path: str, limit: int = 65536) -> str | None:
    """The text of a file, at most `limit` characters, or None when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(limit)
    except OSError:
        return None


def _word(path: str) -> str:
    return (read_text(path, 4096) or "").strip()


def pci_devices(sys_root: str) -> dict[str, Any]:
    """NVIDIA's GPUs and NVSwitches on the PCI bus.

    Returns {"gpus": [...], "nvswitches": [...]}, each device as {"slot", "device", "subsystem", "class",
    "driver"}; ids and class are hexadecimal without 0x, driver is the bound kernel driver or None.
    """
    found: dict[str, Any] = {"gpus": [], "nvswitches": []}
    base = os.path.join(sys_root, "bus/pci/devices")
    try:
        slots = sorted(os.listdir(base))
    except OSError:
        return found
    for slot in slots:
        folder = os.path.join(base, slot)
        if _word(os.path.join(folder, "vendor")).lower().replace("0x", "") != NVIDIA:
            continue
        code = _word(os.path.join(folder, "class")).lower().replace("0x", "")
        link = os.path.join(folder, "driver")
        device = {
            "slot": slot,
            "device": _word(os.path.join(folder, "device")).lower().replace("0x", ""),
            "subsystem": _word(os.path.join(folder, "subsystem_device")).lower().replace("0x", ""),
            "class": code,
            "driver": os.path.basename(os.path.realpath(link)) if os.path.lexists(link) else None,
        }
        if code.startswith(_DISPLAY):
            found["gpus"].append(device)
        elif code.startswith(_BRIDGE):
            found["nvswitches"].append(device)
    return found


def switch_management_ports(sys_root: str) -> list[str]:
    """InfiniBand devices whose vital product data names SW_MNG: ports that manage a fourth-generation NVSwitch."""
    base = os.path.join(sys_root, "class/infiniband")
    ports: list[str] = []
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return ports
    for name in names:
        try:
            with open(os.path.join(base, name, "device/vpd"), "rb") as handle:
                if b"SW_MNG" in handle.read(65536):
                    ports.append(name)
        except OSError:
            continue
    return ports


def loaded_modules(proc_root: str) -> dict[str, int | None]:
    """Name -> reference count (None where the kernel does not tell) of the loaded modules of interest."""
    modules = {}
    for line in (read_text(os.path.join(proc_root, "modules"), 1 << 20) or "").splitlines():
        fields = line.split()
        if len(fields) > 2 and fields[0] in MODULES_OF_INTEREST:
            modules[fields[0]] = int(fields[2]) if fields[2].isdigit() else None
    return modules


def loaded_driver(proc_root: str) -> dict[str, str] | None:
    """{"version", "flavour"} of the NVIDIA driver that the kernel runs, or None. Flavour is open or proprietary."""
    text = read_text(os.path.join(proc_root, "driver/nvidia/version")) or ""
    match = re.search(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", text)
    if match is None:
        return None
    return {"version": match.group(1), "flavour": "open" if "Open Kernel Module" in text else "proprietary"}


def secure_boot(sys_root: str) -> bool | None:
    """True or False as the firmware says; None where there is no such variable (legacy boot, container)."""
    try:
        with open(os.path.join(sys_root, _SECURE_BOOT), "rb") as handle:
            return handle.read(5)[-1:] == b"\x01"
    except OSError:
        return None


def kernel(proc_root: str) -> dict[str, Any]:
    """{"release", "cmdline", "compiler"}: compiler is the major version of the gcc that built the kernel, or None."""
    version = read_text(os.path.join(proc_root, "version")) or ""
    # "gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld ..." and "gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3), GNU ld ..."
    words = re.search(r"gcc(?:[^,()]|\([^()]*\))*", version)
    match = re.search(r"(\d+)\.\d+", re.sub(r"\([^()]*\)", "", words.group(0))) if words else None
    return {
        "release": _word(os.path.join(proc_root, "sys/kernel/osrelease")) or os.uname().release,
        "cmdline": _word(os.path.join(proc_root, "cmdline")),
        "compiler": match.group(1) if match else None,
    }


def device_holders(proc: str = "/proc", limit: int = 200) -> list[dict[str, Any]]:
    """Processes that have a GPU's device file open: [{"pid", "name"}], sorted by id, at most `limit`.

    /dev/nvidia0 and on and /dev/nvidia-uvm count; /dev/nvidiactl alone does not: monitoring opens it without a GPU.
    """
    holders: list[dict[str, Any]] = []
    pattern = re.compile(r"/dev/nvidia(\d+|-uvm)$")
    try:
        ids = sorted(int(name) for name in os.listdir(proc) if name.isdigit())
    except OSError:
        return holders
    for pid in ids:
        folder = os.path.join(proc, str(pid), "fd")
        try:
            links = os.listdir(folder)
        except OSError:
            continue
        for link in links:
            try:
                if pattern.search(os.readlink(os.path.join(folder, link))):
                    holders.append({"pid": pid, "name": _word(os.path.join(proc, str(pid), "comm"))})
                    break
            except OSError:
                continue
        if len(holders) >= limit:
            break
    return holders
