"""What the driver and its library NVML know of the GPUs: who they are, which of them work, their settings."""

from __future__ import annotations

from typing import Any

from . import base

LIB = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"

NOT_FOUND, NO_PERMISSION, BAD_ARGUMENT, NO_DEVICES, NO_DRIVER, MISMATCH = 6, 4, 2, 6, 9, 18


class Failed(Exception):  # noqa: N818 - the program's own answer
    """nvidia-smi ends with this message and status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def library_version() -> str | None:
    """Return the version of the installed NVML, from the file that its link names."""
    link = base.ROOT / LIB
    return link.readlink().name.partition(".so.")[2] if link.is_symlink() else None


def connect() -> str:
    """Return the driver version, or raise Failed with the answer that a broken stack gives."""
    library = library_version()
    loaded = base.boot_state()["modules"].get("nvidia")
    if library is None:
        raise Failed(
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
            12,
        )
    if loaded is None:
        raise Failed(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            NO_DRIVER,
        )
    if loaded["version"] != library:
        short = ".".join(library.split(".")[:2])
        raise Failed(
            f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {short}", MISMATCH
        )
    if base.failure("smi"):
        raise Failed(str(base.failure("smi")), 255)
    return library


def usable() -> list[dict[str, Any]]:
    """Return the GPUs that the loaded driver drives, each with its settings. Raises Failed when there are none."""
    state, lasting = base.boot_state(), base.lasting_state()
    driver = state["modules"]["nvidia"]
    found = []
    for gpu in base.gpus():
        if refuse_gpu(gpu, driver["version"], driver["flavour"]):
            continue
        key = str(gpu["index"])
        found.append({**gpu, "set": state["gpus"].get(key, {}), "kept": lasting["gpus"].get(key, {})})
    if not found:
        raise Failed("No devices were found", NO_DEVICES)
    return found


def setting(gpu: dict[str, Any], **changes: Any) -> None:
    """Change settings of a GPU that the next boot clears."""
    with base.locked():
        state = base.boot_state()
        state["gpus"].setdefault(str(gpu["index"]), {}).update(changes)
        base.save_boot_state(state)


def keep(gpu: dict[str, Any], **changes: Any) -> None:
    """Change settings of a GPU that survive a boot."""
    with base.locked():
        lasting = base.lasting_state()
        lasting["gpus"].setdefault(str(gpu["index"]), {}).update(changes)
        base.save_lasting_state(lasting)


def bus_id(gpu: dict[str, Any]) -> str:
    """Return the bus id as nvidia-smi writes it: eight digits of domain, capital letters."""
    return f"0000{gpu['pci']}".upper()


def cuda_version(version: str) -> str:
    """Return the newest CUDA version that a driver serves, as the table's head shows it."""
    steps = ((620, "13.4"), (610, "13.3"), (595, "13.2"), (590, "13.1"), (580, "13.0"), (570, "12.8"), (550, "12.4"))
    return next((cuda for branch, cuda in steps if base.branch(version) >= branch), "12.2")


def refuse_gpu(gpu: dict[str, Any], version: str, flavour: str) -> str | None:
    """Return the kernel's line when this driver cannot drive this GPU, else None."""
    where = f"NVRM: The NVIDIA GPU {gpu['pci']} (PCI ID: {gpu['vendor']}:{gpu['device']})"
    number = base.branch(version)
    newest = gpu.get("newest_branch")
    if newest and number > newest:
        return f"{where} installed in this system is supported through the NVIDIA {newest}.xx Legacy drivers."
    minimum = gpu.get("min_driver")
    if minimum and base.version_key(version) < base.version_key(minimum):
        return f"{where} installed in this system is not supported by the NVIDIA {version} driver release."
    if flavour == "open" and gpu["modules"] == "proprietary":
        return (
            f"{where} installed in this system is not supported by open nvidia.ko because it does not include the "
            "required GPU System Processor (GSP)."
        )
    if flavour == "open" and gpu.get("open_since") and number < gpu["open_since"]:
        return f"{where} installed in this system is not supported by open nvidia.ko in the {number} release."
    if flavour == "proprietary" and gpu["modules"] == "open":
        return f"{where} installed in this system requires use of the NVIDIA open kernel modules."
    return None
