#!/usr/bin/python
"""Read a GPU host once. Changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: probe
short_description: Read what the GPU roles have to know about a host
description:
  - Reads hardware, kernel, packages, package sources, container runtime and GPU state in one call.
  - Changes nothing and behaves the same in check mode. The result becomes the fact C(gpu_probe).
options:
  sysfs_root: {description: Where sysfs is mounted., type: path, default: /sys}
  proc_root: {description: Where procfs is mounted., type: path, default: /proc}
  dev_root: {description: Where device files are., type: path, default: /dev}
  kernel_log:
    description: File to read the kernel log from. Empty means the log of the running kernel.
    type: str
    default: ""
  kernel_log_patterns:
    description: Name and regular expression pairs to look for in the kernel log.
    type: list
    elements: dict
    default: []
  mig_layout:
    description: Name of the MIG layout to compare the GPUs with. Empty means none.
    type: str
    default: ""
  mig_config:
    description: File of MIG layouts that C(mig_layout) is in.
    type: str
    default: ""
  time_slice: {description: Also read the time-slice policy of the GPUs., type: bool, default: false}
  wait_fabric:
    description: Seconds to wait until no GPU reports its fabric as coming up.
    type: int
    default: 0
  files:
    description: Files to report with their text, beside those of the package sources.
    type: list
    elements: path
    default: []
  keyrings:
    description: Keyring files to read, beside those that apt trusts.
    type: list
    elements: path
    default: []
  units:
    description: systemd units to report.
    type: list
    elements: str
    default: []
  kubelets:
    description: Files of which any makes the host a node of a cluster.
    type: list
    elements: path
    default: []
  containerds:
    description: Programs of containerd that a Kubernetes distribution carries, of which any is asked for its version.
    type: list
    elements: path
    default: []
  packages:
    description: Shell patterns of the names of installed packages to report.
    type: list
    elements: str
    default: []
  thorough:
    description: Also what takes longer, the runtimes that the CRI knows and the order of the units at boot.
    type: bool
    default: false
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Read the host
  gpufleet.hosts.probe:
"""
RETURN = r"""
ansible_facts:
  description: The fact gpu_probe.
  returned: always
  type: dict
"""

import datetime
import glob
import os
import platform
import subprocess
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.hosts.plugins.module_utils import hardware, openpgp, packages, runtime, smi

CONTAINERD_CONFIG = "/etc/containerd/config.toml"
COMMAND_LIMIT = 60  # seconds; nvidia-smi can hang on a GPU that fell off the bus


class Probe:
    """One reading of one host."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.params = module.params
        self.programs: dict[str, Any] = {}
        self.status: str | None = None
        self.interesting = packages.named(self.params["packages"])

    def which(self, name: str) -> str | None:
        if name not in self.programs:
            self.programs[name] = self.module.get_bin_path(name)
        found: str | None = self.programs[name]
        return found

    def command(self, *argv: str, errors: bool = False) -> tuple[int, str]:
        """(exit status, output, the standard one or of errors); 127 when the program is missing, 124 when it hangs."""
        path = self.which(argv[0])
        if path is None:
            return 127, ""
        try:
            done = subprocess.run(
                [path, *argv[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=COMMAND_LIMIT,
                stdin=subprocess.DEVNULL, env=dict(os.environ, LC_ALL="C"), check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 124, ""
        return done.returncode, (done.stderr if errors else done.stdout).decode("utf-8", "replace")

    def result(self) -> dict[str, Any]:
        manager = packages.manager(self.which)
        devices = hardware.pci_devices(self.params["sysfs_root"])
        kernel = hardware.kernel(self.params["proc_root"])
        driver = hardware.loaded_driver(self.params["proc_root"])
        sources = packages.apt_sources() if manager == "apt" else packages.yum_sources()
        # With the text of the sources, one that made way can be put back.
        named = self.params["files"]
        files = [*named, *sorted({source["file"] for source in sources} - set(named))]
        return {
            "schema": 1,
            "system": self.system(manager),
            "kernel": dict(kernel, **self.kernel(kernel["release"])),
            "hardware": dict(
                devices,
                switch_ports=hardware.switch_management_ports(self.params["sysfs_root"]),
                nvswitch_devices=self.names("driver/nvidia-nvswitch/devices"),
                device_files=self.device_files(),
            ),
            "driver": driver,
            "runfile": self.runfile(manager),
            "library": self.library(),
            "smi": self.smi() if driver else None,
            "holders": hardware.device_holders() if driver else [],
            "packages": self.packages(manager),
            "sources": sources,
            "keyrings": self.keyrings(),
            "units": self.units(),
            "boot_cycles": self.boot_cycles() if self.params["thorough"] else [],
            "runtime": self.runtime(),
            "files": {path: record for path in files for record in [runtime.file_record(path)] if record},
            "mig": self.mig() if driver else {},
            "time_slice": self.time_slice() if driver and self.params["time_slice"] else [],
        }

    def system(self, manager: str | None) -> dict[str, Any]:
        release = runtime.os_release(hardware.read_text("/etc/os-release"))
        status, exists = self.dpkg_status() if manager == "apt" else "", os.path.exists
        return {
            "id": release.get("id", ""), "version_id": release.get("version_id", ""),
            "name": release.get("pretty_name", ""), "architecture": platform.machine(),
            "python": platform.python_version(), "manager": manager, "date": datetime.date.today().isoformat(),
            "sqv": self.which("sqv") is not None,
            "crypto_policy": os.path.exists("/etc/crypto-policies/back-ends/apt-sequoia.config"),
            "lock": packages.lock_holder("/var/lib/dpkg/lock-frontend") if manager == "apt" else 0,
            "cloud_init_running": exists("/run/cloud-init/enabled") and not exists("/run/cloud-init/result.json"),
            "unfinished": packages.dpkg_unfinished(status), "free_mib": self.free_space(),
            "unattended_blacklist": packages.unattended_blacklist() if manager == "apt" else [],
            "in_cluster": any(exists(path) for path in self.params["kubelets"]),
        }  # fmt: skip

    def dpkg_status(self) -> str:
        if self.status is None:
            self.status = hardware.read_text("/var/lib/dpkg/status", 1 << 26) or ""
        return self.status

    def packages(self, manager: str | None) -> dict[str, Any]:
        if manager == "apt":
            return packages.dpkg_packages(self.dpkg_status(), self.interesting)
        if manager == "dnf":
            _rc, listing = self.command("rpm", "-qa", "--qf", "%{NAME}\t%{EPOCH}\t%{VERSION}-%{RELEASE}\n")
            locks = hardware.read_text("/etc/dnf/plugins/versionlock.list") or ""
            return packages.rpm_packages(listing, locks, self.interesting)
        return {}

    def free_space(self) -> dict[str, int]:
        free = {}
        for path in ("/", "/boot", "/usr", "/var", "/lib/modules"):
            try:
                space = os.statvfs(path)
            except OSError:
                continue
            free[path] = space.f_bavail * space.f_frsize // (1 << 20)
        return free

    def kernel(self, release: str) -> dict[str, Any]:
        modules = hardware.loaded_modules(self.params["proc_root"])
        boot = hardware.secure_boot(self.params["sysfs_root"])
        if boot is None:
            _rc, text = self.command("mokutil", "--sb-state")
            boot = True if "SecureBoot enabled" in text else False if "SecureBoot disabled" in text else None
        mok = {}
        for key in ("/var/lib/shim-signed/mok/MOK.der", "/var/lib/dkms/mok.pub"):
            if boot and os.path.exists(key):
                _rc, text = self.command("mokutil", "--test-key", key)
                mok[key] = "is already enrolled" in text
        _rc, gcc = self.command("gcc", "-dumpversion")
        built = [
            path for folder in ("updates/dkms", "extra", "weak-updates", "kernel/drivers/video", "kernel/nvidia*")
            for path in glob.glob(f"/lib/modules/{release}/{folder}/nvidia.ko*")
        ]  # fmt: skip
        return {
            "modules": modules, "secure_boot": boot, "mok": mok, "gcc": gcc.strip().partition(".")[0] or None,
            "headers": os.path.isdir(f"/lib/modules/{release}/build"), "module_file": built[0] if built else None,
            "log": self.kernel_log(), "initramfs": self.initramfs(release),
            "initramfs_tool": self.which("update-initramfs") is not None or self.which("dracut") is not None,
        }  # fmt: skip

    def initramfs(self, release: str) -> dict[str, Any] | None:
        """Path and time of the running kernel's initramfs, or None."""
        for path in ("/boot/initrd.img-" + release, f"/boot/initramfs-{release}.img"):
            record = runtime.file_record(path, with_text=False, limit=0)
            if record:
                return {"path": path, "mtime": record["mtime"]}
        return None

    def kernel_log(self) -> list[dict[str, Any]]:
        patterns = [(row["id"], row["pattern"]) for row in self.params["kernel_log_patterns"]]
        if not patterns:
            return []
        if self.params["kernel_log"]:
            text = hardware.read_text(self.params["kernel_log"], 1 << 24)
        else:
            _rc, text = self.command("dmesg")
        return runtime.kernel_log_hits(text, patterns)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(os.path.join(self.params["proc_root"], folder)))
        except OSError:
            return []

    def device_files(self) -> list[str]:
        found = glob.glob(os.path.join(self.params["dev_root"], "nvidia*"))
        return sorted(os.path.basename(path) for path in found)

    def runfile(self, manager: str | None) -> bool:
        """True when a driver was put here by NVIDIA's installer, not by a package."""
        if not os.path.exists("/usr/bin/nvidia-uninstall"):
            return False
        query = ("dpkg", "-S") if manager == "apt" else ("rpm", "-qf")
        status, _text = self.command(*query, "/usr/bin/nvidia-smi")
        return status != 0

    def library(self) -> str | None:
        """Version of the NVML library that programs find, from the file that its link names; None without one."""
        for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"):
            target = os.path.realpath(os.path.join(folder, "libnvidia-ml.so.1"))
            if os.path.exists(target):
                return target.rpartition(".so.")[2]
        return None

    def smi(self) -> dict[str, Any]:
        deadline = time.monotonic() + self.params["wait_fabric"]
        while True:
            status, text = self.command("nvidia-smi", "-q")
            report = smi.parse(text) or {"error": status, "gpus": [], "driver_version": None}
            coming = any(gpu["fabric_state"] in ("In Progress", "Not Started") for gpu in report["gpus"])
            if not coming or time.monotonic() >= deadline:
                return report
            time.sleep(2)

    def keyrings(self) -> dict[str, Any]:
        """Keyring files that apt or dnf may trust, with the keys in them."""
        found = {}
        for pattern in (
            "/etc/apt/trusted.gpg",
            "/etc/apt/trusted.gpg.d/*",
            "/usr/share/keyrings/*cuda*",
            *self.params["keyrings"],
        ):
            for path in glob.glob(pattern):
                try:
                    with open(path, "rb") as handle:
                        keys = openpgp.keys(handle.read(1 << 20))
                except OSError:
                    continue
                if keys:
                    found[path] = keys
        return found

    def units(self) -> dict[str, Any]:
        _rc, text = self.command("systemctl", "show", "-p", ",".join(runtime.UNIT_PROPERTIES), *self.params["units"])
        return runtime.units(text)

    def boot_cycles(self) -> list[dict[str, Any]]:
        """Cycles in the order of units at boot; one of the units does not start then."""
        _rc, text = self.command("systemd-analyze", "verify", "--man=no", "default.target", errors=True)
        return runtime.boot_cycles(text)

    def runtime(self) -> dict[str, Any]:
        _rc, version = self.command("containerd", "--version")
        carried = [path for path in self.params["containerds"] if self.which(path)]
        status, dump = self.command("containerd", "config", "dump")
        result: dict[str, Any] = {
            "sockets": runtime.sockets(os.path.exists),
            "containerd": runtime.version_of(version),
            "embedded_containerd": runtime.version_of(self.command(carried[0], "--version")[1]) if carried else None,
            "containerd_dump": dump if status == 0 else None,
            "containerd_default": None,
            "docker": self.which("dockerd") is not None,
            "crio": self.which("crio") is not None,
            "crio_version": runtime.version_of(self.command("crio", "--version")[1]),
            "nvidia_runtime": self.stat("/usr/bin/nvidia-container-runtime"),
            "nvidia_ctk": self.which("nvidia-ctk") is not None,
            "drop_ins": {
                p: r for p in glob.glob("/etc/containerd/conf.d/*.toml") for r in [runtime.file_record(p)] if r
            },
            "cdi_specs": [p for p in glob.glob("/etc/cdi/*") + glob.glob("/var/run/cdi/*") if self.is_gpu_spec(p)],
            "cri_runtimes": None,
        }
        config = runtime.file_record(CONTAINERD_CONFIG)
        if version and (config is None or not (config["text"] or "").strip()):
            result["containerd_default"] = self.command("containerd", "config", "default")[1]
        spoken = [path for path in result["sockets"] if path.endswith("/containerd.sock")]
        if self.params["thorough"] and self.which("crictl") and spoken:
            status, text = self.command("crictl", "--runtime-endpoint", f"unix://{spoken[-1]}", "info")
            result["cri_runtimes"] = text if status == 0 else None
        return result

    def is_gpu_spec(self, path: str) -> bool:
        return "nvidia.com/gpu" in (hardware.read_text(path, 4096) or "")

    def stat(self, path: str) -> dict[str, Any] | None:
        record = runtime.file_record(path, with_text=False, limit=0)
        return {"mtime": record["mtime"]} if record else None

    def mig(self) -> dict[str, Any]:
        """Whether the GPUs have the wanted layout, as nvidia-mig-parted sees it."""
        layout, config = self.params["mig_layout"], self.params["mig_config"]
        if not layout or not os.path.exists(config) or not self.which("nvidia-mig-parted"):
            return {}
        status, _text = self.command("nvidia-mig-parted", "assert", "-f", config, "-c", layout)
        return {"layout": layout, "matches": status == 0}

    def time_slice(self) -> list[str]:
        status, text = self.command("nvidia-smi", "compute-policy", "--list")
        rows = [line.strip("| \n").split() for line in text.splitlines() if "Timeslice" in line]
        return [row[-1].lower() for row in rows] if status == 0 else []


def main() -> None:
    """Run as a module."""
    module = AnsibleModule(
        argument_spec=dict(
            sysfs_root=dict(type="path", default="/sys"),
            proc_root=dict(type="path", default="/proc"),
            dev_root=dict(type="path", default="/dev"),
            kernel_log=dict(type="str", default=""),
            kernel_log_patterns=dict(type="list", elements="dict", default=[]),
            mig_layout=dict(type="str", default=""),
            mig_config=dict(type="str", default=""),
            time_slice=dict(type="bool", default=False),
            wait_fabric=dict(type="int", default=0),
            files=dict(type="list", elements="path", default=[]),
            keyrings=dict(type="list", elements="path", default=[]),
            units=dict(type="list", elements="str", default=[]),
            kubelets=dict(type="list", elements="path", default=[]),
            containerds=dict(type="list", elements="path", default=[]),
            packages=dict(type="list", elements="str", default=[]),
            thorough=dict(type="bool", default=False),
        ),
        supports_check_mode=True,
    )
    module.exit_json(changed=False, ansible_facts={"gpu_probe": Probe(module).result()})


if __name__ == "__main__":
    main()
