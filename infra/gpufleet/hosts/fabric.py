"""What the NVLink fabric of a host needs: decided by what is seen, not by the product's name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ansible_collections.gpufleet.hosts.plugins.module_utils import paths

from .context import Context
from .target import Target, bound_packages, missing_roles
from .versions import upstream


@dataclass(frozen=True)
class Fabric:
    """The services and packages that a host's fabric needs. `id`: row of fabric_platforms, "none" without fabric."""

    id: str = "none"
    how: str = "no NVSwitch seen"
    roles: tuple[str, ...] = ()  # keys of packages.yaml, bound to the driver's version
    unversioned: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    unit: str | None = None
    row: dict[str, Any] = field(default_factory=dict, compare=False)


def fabric_of(context: Context) -> Fabric:
    """Detect the fabric: NVSwitch on the bus, in /proc, in InfiniBand vital product data, or trays of NVL72."""
    if context.settings["gpu_fabric_mode"] == "none":
        return Fabric(how="gpu_fabric_mode is none")
    hardware = context.probe["hardware"]
    known = {row["device"] for row in context.tables.rows("pci", "pci_nvswitches")}
    seen = {
        "nvswitch-pci": any(device["device"] in known for device in hardware["nvswitches"]),
        "nvswitch-proc": bool(hardware["nvswitch_devices"]),
        "nvswitch-vpd": bool(hardware["switch_ports"]),
    }
    for rule in context.tables.rows("fabric", "fabric_detection"):
        if seen.get(rule["id"]):
            return _of_row(rule["means"], rule["how"], context)
    models = {gpu.name for gpu in context.gpus}
    for row in context.tables.rows("fabric", "fabric_platforms"):
        if row["imex"] and models and models <= set(row["gpus"]):
            return _of_row(row["id"], f"every GPU is one of {', '.join(row['gpus'])}", context)
    return Fabric()


def _of_row(identity: str, how: str, context: Context) -> Fabric:
    row = context.tables.row("fabric", "fabric_platforms", "id", identity)
    assert row is not None
    roles: list[str] = []
    if row["fabric_manager"]:
        roles += ["fabric_manager", "nscq"]
    if row["nvlsm"]:
        roles.append("nvsdm")
    if row["imex"]:
        roles.append("imex")
    # IMEX ends without its trays, and compute domains of the DRA driver bring their own.
    trays = row["imex"] and context.settings["gpu_fabric_imex_nodes"]
    unit = "nvidia-fabricmanager.service" if row["fabric_manager"] else "nvidia-imex.service" if trays else None
    unversioned = ("nvlsm", "infiniband-diags") if row["nvlsm"] else ()
    return Fabric(identity, how, tuple(roles), unversioned, tuple(row["modules"]), unit, row)


def want(context: Context, row: dict[str, Any] | None, repository: str) -> list[dict[str, Any]]:
    """The fabric packages to ask for, in the form of the module `resolve`."""
    fabric, target = fabric_of(context), context.target
    if row is None or not fabric.roles:
        return []
    names = bound_packages(target, row, list(fabric.roles), context.platform.architecture)
    wanted = [{"name": name, "version": target.version, "repository": repository, "part": "fabric"} for name in names]
    wanted += [{"name": name, "version": None, "repository": "", "part": "fabric"} for name in fabric.unversioned]
    return wanted


def unavailable(context: Context, row: dict[str, Any] | None) -> list[str]:
    """Fabric roles that the driver's branch has no package for."""
    return missing_roles(row, list(fabric_of(context).roles), context.platform.architecture) if row else []


def bound_installed(context: Context) -> dict[str, str]:
    """Installed fabric packages that must carry the driver's version: name -> their driver version."""
    names = ("nvidia-fabricmanager", "nvidia-fabric-manager", "libnvidia-nscq", "libnvsdm", "nvidia-imex")
    return {
        name: upstream(row["version"]) for name, row in context.packages.items()
        if name.startswith(names) and "-dev" not in name
    }  # fmt: skip


def plan_fabric(context: Context, target: Target) -> dict[str, Any]:
    """What is left to do for the fabric once the driver is there.

    The unit is enabled only when every bound package carries the driver's version to the last field.
    """
    fabric = fabric_of(context)
    if context.settings["gpu_driver_state"] == "absent" or context.settings["gpu_driver_method"] == "none":
        fabric = Fabric(how="the host has no driver of ours")
    plan: dict[str, Any] = {"fabric": fabric.id, "how": fabric.how, "problems": [], "units": [], "files": []}
    if not fabric.unit:
        return plan
    wrong = {n: v for n, v in bound_installed(context).items() if target.version and v != target.version}
    if wrong:
        listed = ", ".join(f"{name} {version}" for name, version in sorted(wrong.items()))
        plan["problems"].append(("GF772", {"packages": listed, "version": target.version}))
        return plan
    nodes = [str(node) for node in context.settings["gpu_fabric_imex_nodes"]]
    if "imex" in fabric.roles:
        plan["files"] = context.want_file(paths.IMEX_NODES, "\n".join(nodes) + "\n")
    missing = [name for name in fabric.modules if name not in context.modules]
    plan["load"] = missing if context.settings["gpu_driver_load"] else []
    if context.gpus:
        loaded = context.loaded_version == target.version
        plan["units"] = context.want_unit(fabric.unit, active=True if loaded else None)
    return plan


def fabric_states(context: Context) -> tuple[list[str], list[str]]:
    """(GPUs whose fabric is still coming up, GPUs whose fabric failed) as nvidia-smi reports them.

    Ampere GPUs do not report a state. Where the fabric has NVSwitch and the GPU is newer, no state at all is a failure.
    """
    waiting, failed = [], []
    fabric = fabric_of(context)
    if "fabric_manager" not in fabric.roles or not context.probe["smi"]:
        return [], []
    silent = {gpu.name for gpu in context.gpus if gpu.architecture == "ampere"}
    for number, gpu in enumerate(context.probe["smi"]["gpus"]):
        state, status = gpu["fabric_state"], gpu["fabric_status"]
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
