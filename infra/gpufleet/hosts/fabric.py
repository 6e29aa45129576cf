"""What the NVLink fabric of a host needs: decided by what is seen, not by the product's name."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.catalog.hosts import FabricPlatform, fabric_platforms, fabric_signs, nvswitches
from gpufleet.catalog.packages import PackageNames, fabric_package
from gpufleet.catalog.versions import upstream
from gpufleet.hosts import packages, paths
from gpufleet.hosts.context import Context
from gpufleet.hosts.work import FabricWork, Problem, WantedPackage

IMEX = "imex"


@dataclass(frozen=True)
class Fabric:
    """The services and packages that a host's fabric needs. `id`: row of fabric_platforms, "none" without fabric."""

    id: str = "none"
    how: str = "no NVSwitch seen"
    roles: tuple[str, ...] = ()  # columns of packages.yaml, bound to the driver's version
    unversioned: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    unit: str | None = None


def fabric_of(context: Context) -> Fabric:
    """Detect the fabric: NVSwitch on the bus, in /proc, in InfiniBand vital product data, or trays of NVL72."""
    if context.settings.gpu_fabric_mode == "none":
        return Fabric(how="gpu_fabric_mode is none")
    hardware, known = context.probe.hardware, nvswitches(context.tables)
    seen = {
        "nvswitch-pci": any(device.device in known for device in hardware.nvswitches),
        "nvswitch-proc": bool(hardware.nvswitch_devices),
        "nvswitch-vpd": bool(hardware.switch_ports),
    }
    rows = fabric_platforms(context.tables)
    for sign in fabric_signs(context.tables):
        if seen.get(sign.id):
            return _of_row(rows[sign.means], sign.how, context)
    models = {gpu.name for gpu in context.gpus}
    for row in rows.values():
        if IMEX in row.roles and models and models <= set(row.gpus):
            return _of_row(row, f"every GPU is one of {', '.join(row.gpus)}", context)
    return Fabric()


def _of_row(row: FabricPlatform, how: str, context: Context) -> Fabric:
    # IMEX ends without its trays, and compute domains of the DRA driver bring their own.
    idle = IMEX in row.roles and not context.settings.gpu_fabric_imex_nodes
    unversioned = row.vendor_packages + row.system_packages
    return Fabric(row.id, how, row.roles, unversioned, row.modules, None if idle else row.unit)


def want(context: Context, row: PackageNames, repository: str) -> list[WantedPackage]:
    """The fabric packages to ask for."""
    fabric, target, system = fabric_of(context), context.target, context.system
    names = packages.fabric_packages(row, fabric.roles, system.architecture, context.tables)
    bound = [packages.filled(name, target.branch, target.version) for name in names]
    return [WantedPackage(name, target.version, repository, "fabric") for name in bound] + [
        WantedPackage(name, None, "", "fabric") for name in fabric.unversioned
    ]


def unavailable(context: Context, row: PackageNames | None) -> list[str]:
    """Fabric roles that the driver's branch has no package for."""
    roles = fabric_of(context).roles
    return packages.missing_roles(row, roles, context.system.architecture, context.tables) if row else []


def unbound_names(context: Context) -> set[str]:
    """Packages of the vendor that serve a fabric at versions of their own."""
    return {name for row in fabric_platforms(context.tables).values() for name in row.vendor_packages}


def bound_installed(context: Context) -> dict[str, str]:
    """Installed fabric packages that must carry the driver's version: name -> their driver version."""
    names = fabric_package(context.tables)
    return {name: upstream(row.version) for name, row in context.packages.items() if names.fullmatch(name)}


def unbound(context: Context) -> list[Problem]:
    """Fabric packages at another version than the wanted driver."""
    version = context.target.version
    wrong = {n: v for n, v in bound_installed(context).items() if version and v != version}
    listed = ", ".join(f"{name} {found}" for name, found in sorted(wrong.items()))
    return [Problem("GF772", {"packages": listed, "version": version})] if wrong else []


def plan_fabric(context: Context) -> FabricWork:
    """What is left to do for the fabric once the driver is there.

    The unit is enabled only when every bound package carries the driver's version to the last field.
    """
    fabric = fabric_of(context) if context.settings.wants_driver else Fabric(how="the host has no driver of ours")
    plan = FabricWork(fabric=fabric.id, how=fabric.how)
    if not fabric.unit:
        return plan
    plan.problems = unbound(context)
    if plan.problems:
        return plan
    if IMEX in fabric.roles:
        nodes = context.settings.gpu_fabric_imex_nodes
        plan.files = context.want_file(paths.IMEX_NODES, "\n".join(nodes) + "\n")
    if context.settings.gpu_driver_load:
        plan.load = [name for name in fabric.modules if name not in context.modules]
    if context.gpus:
        loaded = context.loaded_version == context.target.version
        plan.units = context.want_unit(fabric.unit, active=True if loaded else None)
    return plan


def fabric_states(context: Context) -> tuple[list[str], list[str]]:
    """(GPUs whose fabric is still coming up, GPUs whose fabric failed) as nvidia-smi reports them.

    Ampere GPUs do not report a state. Where the fabric has NVSwitch and the GPU is newer, no state at all is a failure.
    """
    waiting, failed = [], []
    if "fabric_manager" not in fabric_of(context).roles or not context.probe.smi:
        return [], []
    silent = any(gpu.model and gpu.model.architecture == "ampere" for gpu in context.gpus)
    for number, gpu in enumerate(context.probe.smi.gpus):
        state, status = gpu.fabric_state, gpu.fabric_status
        name = f"GPU {number}"
        if state is None:
            if not silent:
                failed.append(f"{name}: no state")
        elif state == "Completed":
            if status not in (None, "Success"):
                failed.append(f"{name}: {state}, {status}")
        elif state in ("In Progress", "Not Started"):
            waiting.append(f"{name}: {state}")
        else:
            failed.append(f"{name}: {state}, {status}")
    return waiting, failed
