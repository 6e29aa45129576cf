"""Services of the driver: fabric manager, persistence daemon, IMEX; and a stand-in for a process that uses the GPUs."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from . import base, fabric, modules, nvml, tree


def _run_forever() -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        time.sleep(3600)


def _daemonize(pid_file: Path) -> None:
    """Go to the background like a classic daemon; the starter ends once the record is written."""
    pid_file.parent.mkdir(parents=True, exist_ok=True)
    read, write = os.pipe()
    if os.fork():
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    os.setsid()
    os.close(read)
    pid_file.write_text(f"{os.getpid()}\n")
    os.write(write, b"1")
    os.close(write)


def driver_version() -> str | None:
    """Return the version of the loaded driver."""
    loaded = base.boot_state()["modules"].get("nvidia")
    return loaded["version"] if loaded else None


def main_nv_fabricmanager(arguments: list[str]) -> int:
    """Run fabric manager: refuse without switches, without driver, and with a driver of any other version."""
    own = (base.ROOT / "usr/share/nvidia/nvswitch/version").read_text().strip()
    if "--version" in arguments or "-v" in arguments:
        print(f"Fabric Manager version is : {own}")
        return 0
    settings = base.scenario().get("fabric") or {}
    loaded = driver_version()
    problem = None
    if loaded is None:
        problem = "NVIDIA driver is not loaded, aborting fabric manager"
    elif loaded != own:
        problem = f"fabric manager NVIDIA GPU driver interface version {own} don't match with driver version {loaded}."
    elif not settings.get("present"):
        problem = "failed to detect any NVSwitch device on the system, aborting fabric manager"
    elif base.failure("fabric_manager"):
        problem = str(base.failure("fabric_manager"))
    if problem:
        print(problem, file=sys.stderr)
        with (base.ROOT / "var/log/fabricmanager.log").open("a") as log:
            log.write(f"[ERROR] {problem}\n")
        return 1
    _daemonize(base.ROOT / "run/nvidia-fabricmanager/nv-fabricmanager.pid")
    base.hold("nv-fabricmanager", "fabricmanager")
    fabric.configured()
    _run_forever()
    return 0


def main_nvidia_persistenced(arguments: list[str]) -> int:
    """Run the persistence daemon; it needs a loaded driver of its own version and a GPU."""
    if "--version" in arguments or "-V" in arguments:
        print(f"nvidia-persistenced:  version {nvml.library_version()}")
        return 0
    loaded = driver_version()
    if loaded is None or loaded != nvml.library_version() or not base.gpus():
        print("nvidia-persistenced failed to initialize. Check syslog for more details.", file=sys.stderr)
        return 1
    if base.failure("persistenced"):
        print(str(base.failure("persistenced")), file=sys.stderr)
        return 1
    _daemonize(base.ROOT / "run/nvidia-persistenced/nvidia-persistenced.pid")
    base.hold("nvidia-persistenced", "persistenced")
    _run_forever()
    return 0


def main_nvidia_imex(arguments: list[str]) -> int:
    """Run IMEX in the foreground."""
    if driver_version() is None:
        print("NVIDIA driver is not loaded", file=sys.stderr)
        return 1
    base.hold("nvidia-imex", "imex")
    _run_forever()
    return 0


def main_hold(arguments: list[str]) -> int:
    """Use the GPUs under a name until killed, as a workload or a monitoring agent does: hold NAME [cuda|nvml]."""
    base.hold(arguments[0] if arguments else "python3", arguments[1] if len(arguments) > 1 else "cuda")
    _run_forever()
    return 0


def main_nvidia_modprobe(arguments: list[str]) -> int:
    """Load the driver and make its device files: -u for uvm, -m for modeset."""
    names = ["nvidia"]
    names += ["nvidia_uvm"] if "-u" in arguments else []
    names += ["nvidia_modeset"] if "-m" in arguments else []
    return modules.main_modprobe(["-a", *names])


def main_render(arguments: list[str]) -> int:
    """Bring the files in line after the scenario changed."""
    with base.locked():
        tree.render()
    return 0


def main_kernel_log(arguments: list[str]) -> int:
    """Write one line to the kernel log."""
    base.kernel_log(" ".join(arguments))
    return 0
