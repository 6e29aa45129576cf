"""MIG layouts: checked against what one GPU can hold, written as an own file for nvidia-mig-manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from gpufleet.catalog.components import component
from gpufleet.catalog.gpus import GpuModel
from gpufleet.catalog.versions import at_least, upstream
from gpufleet.hosts import fabric, paths, sources
from gpufleet.hosts.context import Context
from gpufleet.hosts.driver import repository_of, stopped_daemons, unresolved
from gpufleet.hosts.driver_config import PERSISTENCED_UNIT
from gpufleet.hosts.mig_fit import why_not
from gpufleet.hosts.target import Gpu
from gpufleet.hosts.work import Index, MigWork, Problem, Request, UnitChange, WantedPackage

UNIT = "nvidia-mig-manager.service"
PACKAGE = "nvidia-mig-manager"

#: A layout in the form of nvidia-mig-parted: parts, of which the last that names a GPU decides.
Layout = list[dict[str, Any]]


def standard_layouts(model: GpuModel) -> dict[str, Layout]:
    """The layouts that every model has: all-disabled, and all-<profile> as often as it fits."""
    layouts: dict[str, Layout] = {
        "all-disabled": [{"devices": "all", "mig-enabled": False}],
        "all-enabled": [{"devices": "all", "mig-enabled": True, "mig-devices": {}}],
    }
    for profile, count in model.mig_profiles.items():
        layouts[f"all-{profile}"] = [{"devices": "all", "mig-enabled": True, "mig-devices": {profile: count}}]
    return layouts


def layout_of(context: Context) -> tuple[Layout | None, list[str]]:
    """(the wanted layout, names of all known layouts)."""
    known: dict[str, Layout] = {}
    for gpu in context.gpus:
        known |= standard_layouts(gpu.model) if gpu.model and gpu.model.mig_profiles else {}
    known |= context.settings.gpu_mig_layouts
    layout = known.get(context.settings.gpu_mig_layout)
    return ([dict(part) for part in layout] if layout else None), sorted(known)


def problems_of(context: Context) -> list[Problem]:
    """Everything that keeps the layout from being applied."""
    name = context.settings.gpu_mig_layout
    if not name or context.settings.gpu_driver_state == "absent":
        return []
    problems: list[Problem] = []
    layout, known = layout_of(context)
    disabling = layout is not None and not any(part.get("mig-enabled") for part in layout)
    for gpu in {g.name: g for g in context.gpus}.values():
        model, version = gpu.model, context.target.version
        if model is None or not model.mig_profiles:
            if not disabling:
                problems.append(Problem("GF754", {"gpu": gpu.name, "reason": "the model has no MIG"}))
        elif model.mig_min_driver and version and not at_least(version, model.mig_min_driver):
            reason = f"MIG needs driver {model.mig_min_driver}, wanted is {version}"
            problems.append(Problem("GF754", {"gpu": gpu.name, "reason": reason}))
    if layout is None:
        if not problems:
            problems.append(Problem("GF755", {"layout": name, "known": ", ".join(known) or "none"}))
        return problems
    for index, gpu in enumerate(context.gpus):
        model = gpu.model
        reason = why_not(model, _devices(layout, index, gpu)) if model and model.mig_profiles else ""
        if model and reason:
            profiles = ", ".join(f"{p} x{n}" for p, n in model.mig_profiles.items())
            values = {"layout": name, "gpu": gpu.name, "reason": reason, "profiles": profiles}
            problems.append(Problem("GF753", values))
    return list({str(p): p for p in problems}.values())


def _devices(layout: Layout, index: int, gpu: Gpu) -> dict[str, int]:
    """Profile -> count on one GPU: the last part of the layout that names it decides."""
    found: dict[str, int] = {}
    for part in layout:
        devices = part.get("devices", "all")
        filters = part.get("device-filter")
        wanted = [filters] if isinstance(filters, str) else filters
        if wanted and f"0x{gpu.device.upper()}10DE".lower() not in [str(f).lower() for f in wanted]:
            continue
        if devices == "all" or index in (devices if isinstance(devices, list) else []):
            cut = (part.get("mig-devices") or {}) if part.get("mig-enabled") else {}
            found = {str(p): int(n) for p, n in cut.items()}
    return found


def config_text(name: str, layout: Layout) -> str:
    """The file of nvidia-mig-parted. It is our own: the unit writes its config.yaml anew at every start."""
    document = {"version": "v1", "mig-configs": {name: layout}}
    return "# Written by the role gpu_mig.\n" + yaml.safe_dump(document, sort_keys=True, default_flow_style=False)


def override_text(name: str, timeout: int) -> str:
    """The drop-in of nvidia-mig-manager.service: which layout, from which file, and a limit for a GPU that hangs."""
    return (
        "# Written by the role gpu_mig.\n[Service]\n"
        f'Environment="MIG_PARTED_CONFIG_FILE={paths.MIG_LAYOUT}"\nEnvironment="MIG_PARTED_SELECTED_CONFIG={name}"\n'
        f"TimeoutStartSec={timeout}\n"
    )


def plan_mig(context: Context) -> MigWork:
    """What is left to do for MIG."""
    settings = context.settings
    gone = settings.gpu_driver_state == "absent"
    name = "" if gone else settings.gpu_mig_layout
    toolkit = settings.gpu_container_toolkit_state == "present"
    plan = MigWork(cdi=toolkit and settings.gpu_container_toolkit_cdi_refresh)
    if not name:
        return _removal(context, plan, gone)
    plan.problems = problems_of(context)
    layout, _known = layout_of(context)
    if plan.problems or layout is None:
        return plan
    _package(context, plan)
    override = context.want_file(paths.MIG_OVERRIDE, override_text(name, settings.gpu_mig_start_timeout))
    plan.files = context.want_file(paths.MIG_LAYOUT, config_text(name, layout)) + override
    unit = context.probe.units.get(UNIT)
    plan.reload = bool(override) or bool(unit and unit.reload)
    plan.units = context.want_unit(UNIT, active=None)
    state = context.probe.mig
    if (state.layout, state.matches) != (name, True) or plan.files:
        plan.apply = True
        if context.in_use and context.workloads:
            holders = ", ".join(context.workloads)
            plan.problems.append(Problem("GF750", {"what": "changing the MIG layout", "holders": holders}))
        plan.stop = [UnitChange(holder, state="stopped") for holder in _holders(context)]
        plan.unload = [m for m in ("nvidia_drm", "nvidia_modeset") if m in context.modules]
    gpus = context.probe.smi.gpus if context.probe.smi else ()
    pending = [g for g in gpus if g.mig_pending not in (None, g.mig_current)]
    if pending:
        plan.reboot.append(f"MIG mode is pending on {len(pending)} GPUs")
    return plan


def _removal(context: Context, plan: MigWork, gone: bool) -> MigWork:
    plan.absent = context.unwanted(paths.MIG_LAYOUT, paths.MIG_OVERRIDE)
    plan.reload = paths.MIG_OVERRIDE in plan.absent
    if plan.reload and not gone:  # without our selection it would apply one of its own at the next boot
        plan.units = context.want_unit(UNIT, enabled=False, active=None)
    if gone and PACKAGE in context.packages:
        plan.remove = [PACKAGE]
        plan.release = context.held(plan.remove)
    return plan


def _holders(context: Context) -> Iterable[str]:
    """Daemons that keep a GPU from its reset: those that run, and those that the other roles start."""
    running = [unit.name for unit in stopped_daemons(context)]
    if context.settings.gpu_driver_method != "none":
        unit = fabric.fabric_of(context).unit
        running += [unit] if unit else []
        running += [PERSISTENCED_UNIT] if context.settings.gpu_driver_persistenced else []
    return [name for name in dict.fromkeys(running) if name != UNIT]


def _package(context: Context, plan: MigWork) -> None:
    """mig-manager at one version; it is in no repository of the vendor, so the host's own have to offer it."""
    settings = context.settings
    version = upstream(settings.gpu_mig_manager_version or component("mig-parted", context.tables).version)
    if not context.installed(PACKAGE, version):
        want = (WantedPackage(PACKAGE, version, "", "mig"),)
        answer = context.answer(want)
        if answer is None:
            plan.resolve = Request(want, _repositories(context))
        else:
            plan.problems += unresolved(context, answer) if answer.missing else []
            plan.install = list(answer.packages)
    plan.release = context.locked(plan.install)
    if settings.gpu_mig_manager_hold and context.unheld(PACKAGE, plan.install):
        plan.hold = [PACKAGE]


def _repositories(context: Context) -> tuple[Index, ...]:
    """The driver's repository, in case a mirror has put the package there."""
    if not context.settings.gpu_repo_manage or context.settings.gpu_driver_method != "cuda_repo":
        return ()
    return sources.index_of(repository_of(context), context.system)


def observed(context: Context) -> dict[str, Any]:
    """MIG for the fact file: wanted layout, whether it is applied, modes by GPU."""
    gpus = context.probe.smi.gpus if context.probe.smi else ()
    return {
        "layout": context.settings.gpu_mig_layout or None,
        "applied": context.probe.mig.matches,
        "modes": [g.mig_current for g in gpus],
        "pending": [g.mig_pending for g in gpus],
    }
