"""What the module `probe` read on a host, in types. The module's own form is the fact `gpu_probe`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class System(_Part):
    """The operating system and what it is busy with."""

    id: str = ""  # as os-release says, such as openEuler
    version_id: str = ""
    architecture: str = ""  # x86_64, aarch64
    python: str = ""
    manager: str | None = None  # apt, dnf, None
    date: str = ""
    sqv: bool = False
    crypto_policy: bool = False
    lock: int = 0  # process that holds the lock of dpkg
    cloud_init_running: bool = False
    unfinished: tuple[str, ...] = ()
    free_mib: dict[str, int] = {}
    unattended_blacklist: tuple[str, ...] = ()
    in_cluster: bool = False


class LogLine(_Part):
    """A line of the kernel log, and the row of the table that it matches."""

    id: str
    line: str


class Image(_Part):
    """The running kernel's initramfs."""

    path: str
    mtime: float


class Kernel(_Part):
    """The running kernel. `modules`: name -> reference count of the loaded modules of interest."""

    release: str
    cmdline: str = ""
    compiler: str | None = None
    gcc: str | None = None
    modules: dict[str, int | None] = {}
    secure_boot: bool | None = None
    mok: dict[str, bool] = {}
    headers: bool = False
    module_file: str | None = None
    log: tuple[LogLine, ...] = ()
    initramfs: Image | None = None
    initramfs_tool: bool = False


class Device(_Part):
    """A PCI device."""

    slot: str
    device: str
    driver: str | None = None
    subsystem: str | None = None


class Hardware(_Part):
    """GPUs, switches and device files."""

    gpus: tuple[Device, ...] = ()
    nvswitches: tuple[Device, ...] = ()
    switch_ports: tuple[str, ...] = ()
    nvswitch_devices: tuple[str, ...] = ()
    device_files: tuple[str, ...] = ()


class LoadedDriver(_Part):
    """The loaded kernel module."""

    version: str
    flavour: str


class SmiGpu(_Part):
    """One GPU in the report of nvidia-smi."""

    bus_id: str = ""
    mig_current: str | None = None
    mig_pending: str | None = None
    ecc_uncorrectable: int | None = None
    remap_failed: bool = False
    recovery_action: str | None = None
    fabric_state: str | None = None
    fabric_status: str | None = None
    power_limit_w: float | None = None


class Smi(_Part):
    """The report of nvidia-smi; `error` is its exit status where there is no report."""

    driver_version: str | None = None
    error: int | str = "unknown"
    gpus: tuple[SmiGpu, ...] = ()


class Holder(_Part):
    """A process that has a GPU open."""

    name: str


class Package(_Part):
    """An installed package. `hold`: at this version; `lock`: some version is locked, which keeps every other away."""

    version: str
    hold: bool = False
    lock: bool = False
    state: str = "installed"


class Source(_Part):
    """One package source."""

    file: str
    uri: str
    enabled: bool = True
    signed_by: str | None = None


class Key(_Part):
    """A key of a keyring."""

    fingerprint: str
    sha1_only: bool = False


class Unit(_Part):
    """A systemd unit. `since`: seconds of the epoch, 0 when it is not active."""

    load: str = "loaded"
    active: str = "inactive"
    enabled: str = ""
    reload: bool = False
    since: float = 0
    start_limit: str = ""


class Record(_Part):
    """A file; `text` is None for a binary one."""

    text: str | None
    mode: str
    mtime: float


class Cycle(_Part):
    """Units that wait for each other at boot, and the one that systemd gives up."""

    units: tuple[str, ...]
    lost: str | None = None


class Runtime(_Part):
    """Container runtimes."""

    sockets: tuple[str, ...] = ()
    containerd: str | None = None
    containerd_dump: str | None = None
    containerd_default: str | None = None
    embedded_containerd: str | None = None  # version of the one that k3s or RKE2 carries
    docker: bool = False
    crio: bool = False
    crio_version: str | None = None
    drop_ins: dict[str, Record] = {}
    cdi_specs: tuple[str, ...] = ()
    cri_runtimes: str | None = None


class MigState(_Part):
    """Whether the GPUs have the wanted layout, as nvidia-mig-parted sees it."""

    layout: str | None = None
    matches: bool = False


class Reading(_Part):
    """One reading of one host."""

    system: System
    kernel: Kernel
    hardware: Hardware
    driver: LoadedDriver | None = None
    runfile: bool = False  # a driver was put here by NVIDIA's installer, not by a package
    library: str | None = None  # version of the NVML library that programs find
    smi: Smi | None = None
    holders: tuple[Holder, ...] = ()
    packages: dict[str, Package] = {}
    sources: tuple[Source, ...] = ()
    keyrings: dict[str, tuple[Key, ...]] = {}
    units: dict[str, Unit] = {}
    boot_cycles: tuple[Cycle, ...] = ()
    runtime: Runtime = Runtime()
    files: dict[str, Record] = {}
    mig: MigState = MigState()
    time_slice: tuple[str, ...] = ()

    def active(self, unit: str) -> bool:
        """Whether a unit runs."""
        return unit in self.units and self.units[unit].active == "active"
