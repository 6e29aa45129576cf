"""Hardware and kernel of hosts: PCI ids, NVLink fabrics, kernel modules, lines of the kernel log."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from gpufleet.catalog.reading import STANDARD, Tables, kept, table, typed


class PciGpu(NamedTuple):
    """One PCI device id of a GPU (vendor 10de, lower case, without 0x)."""

    device: str
    gpu: str  # id of a GpuModel
    name: str | None  # the driver's name of the card
    source: str
    as_of: str
    subsystem: str | None = None  # where the device id alone fits several models


class FabricPlatform(NamedTuple):
    """NVSwitch systems that need the same services. `roles` are columns of packages.yaml."""

    id: str
    gpus: tuple[str, ...]  # models that occur on it; the form of the board decides, not the card alone
    roles: tuple[str, ...]  # packages at exactly the driver's version: fabric_manager, nscq, nvsdm, imex
    vendor_packages: tuple[str, ...]  # from the driver's repository, at versions of their own
    system_packages: tuple[str, ...]  # from the operating system's repositories
    modules: tuple[str, ...]  # kernel modules that must be loaded before
    unit: str | None


class FabricSign(NamedTuple):
    """How a fabric is told on a host; the first that is seen decides."""

    id: str
    how: str
    means: str  # id of a FabricPlatform


class BlacklistedModule(NamedTuple):
    """A kernel module that keeps the vendor's driver from binding a GPU."""

    module: str
    options: str | None = None


class ModuleOptions(NamedTuple):
    """Options that a GPU needs under Kubernetes, from a branch on."""

    gpus: tuple[str, ...]
    from_branch: int
    module: str
    options: str


class UnboundedFault(NamedTuple):
    """A fault of every driver from a branch on, until a workaround is in place."""

    id: str
    from_branch: int
    cmdline: str
    module: str
    options: str


class KernelLogLine(NamedTuple):
    """Lines of the kernel log that mean trouble with a GPU, its firmware or its driver."""

    id: str
    severity: str
    pattern: str
    hint: str


@kept
def pci_gpus(tables: Tables) -> tuple[PciGpu, ...]:
    """Every known PCI device id of a GPU."""
    return tuple(typed(PciGpu, row) for row in tables.rows("pci", "pci_gpus"))


def pci_gpu(device: str, subsystem: str | None = None, tables: Tables = STANDARD) -> PciGpu | None:
    """The GPU of a PCI device id ("2330" or "0x2330"), or None: not known, or several and no subsystem id given."""
    wanted, sub = (text.lower().removeprefix("0x") if text else None for text in (device, subsystem))
    for row in pci_gpus(tables):
        if row.device == wanted and row.subsystem in (None, sub):
            return row
    return None


@kept
def nvswitches(tables: Tables) -> frozenset[str]:
    """PCI device ids of NVSwitch."""
    return frozenset(row["device"] for row in tables.rows("pci", "pci_nvswitches"))


@kept
def fabric_platforms(tables: Tables) -> Mapping[str, FabricPlatform]:
    """Every kind of fabric by id."""
    rows = [typed(FabricPlatform, row) for row in tables.rows("fabric", "fabric_platforms")]
    return MappingProxyType({row.id: row for row in rows})


@kept
def python_floors(tables: Tables) -> Mapping[str, str]:
    """Line of ansible-core on the controller -> lowest Python on a host."""
    return MappingProxyType({row["ansible_core"]: row["python"] for row in tables.rows("host_kernel", "python_floors")})


fabric_signs = table("fabric", "fabric_detection", FabricSign)
blacklisted_modules = table("platforms", "blacklisted_modules", BlacklistedModule)
module_options = table("host_kernel", "module_options", ModuleOptions)
unbounded_faults = table("host_kernel", "unbounded_faults", UnboundedFault)
kernel_log = table("host_kernel", "kernel_log", KernelLogLine)
