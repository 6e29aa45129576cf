"""Whether a host offers its GPUs as planned, what is still due, and the fact file that says so."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from gpufleet.catalog.hosts import kernel_log
from gpufleet.catalog.versions import VERSION, branch_of, upstream
from gpufleet.hosts import fabric, mig, paths, runtime, toolkit
from gpufleet.hosts.context import Context
from gpufleet.hosts.driver import plan_driver
from gpufleet.hosts.driver_config import stale_initramfs
from gpufleet.hosts.reading import Smi
from gpufleet.hosts.work import HealthWork, Problem, UnitChange, WantedFile

SETTINGS_UNIT = "gpufleet-gpu-settings.service"
# What is expected to be wrong while a reboot is due.
AWAITING_REBOOT = ("GF770", "GF771", "GF775", "GF777", "GF780", "GF781", "GF786", "GF787")
# Time slices of nvidia-smi compute-policy.
TIME_SLICES = {"default": 0, "short": 1, "medium": 2, "long": 3}


def health(context: Context) -> list[Problem]:
    """Problems of a host that is meant to serve GPUs. Nothing to report where the host has no driver of ours."""
    if not context.settings.wants_driver or not context.gpus:
        return []
    problems = _driver(context)
    if context.probe.driver:
        problems += _gpus(context)
        waiting, failed = fabric.fabric_states(context)
        if waiting or failed:
            problems.append(Problem("GF773", {"gpus": ", ".join(failed + waiting)}))
    problems += _kernel_log(context)
    return problems


def _driver(context: Context) -> list[Problem]:
    driver, target = context.probe.driver, context.target
    problems: list[Problem] = []
    if driver is None:
        if not context.probe.kernel.module_file:
            problems.append(Problem("GF780", {"kernel": context.probe.kernel.release}))
        problems.append(Problem("GF770", {"what": "the module is not loaded"}))
    elif target.version and driver.version != target.version:
        problems.append(Problem("GF770", {"what": f"driver {driver.version} is loaded, {target.version} is wanted"}))
    elif target.flavour and driver.flavour != target.flavour:
        problems.append(Problem("GF770", {"what": f"{driver.flavour} modules are loaded, {target.flavour} are wanted"}))
    problems += mismatch(context, "GF771")
    problems += fabric.unbound(context)
    if "nouveau" in context.modules:
        old = ", and the initramfs is older than the blacklist" if stale_initramfs(context) else ""
        problems.append(Problem("GF781", {"what": f"nouveau is loaded{old}"}))
    if driver and "nvidia-uvm" not in context.probe.hardware.device_files:
        problems.append(Problem("GF775", {"files": "/dev/nvidia-uvm"}))
    return problems


def mismatch(context: Context, code: str) -> list[Problem]:
    """The loaded module and the library on disk have different versions."""
    library, driver = context.probe.library, context.probe.driver
    if not driver or not library or library == driver.version:
        return []
    values = {"module": driver.version, "package": library, "packages": library}
    return [Problem(code, values)]


def _gpus(context: Context) -> list[Problem]:
    smi = context.probe.smi or Smi()
    if not smi.driver_version:
        return [Problem("GF786", {"status": smi.error})]
    problems: list[Problem] = []
    if len(smi.gpus) < len(context.gpus):
        problems.append(Problem("GF787", {"found": len(smi.gpus), "wanted": len(context.gpus)}))
    for number, gpu in enumerate(smi.gpus):
        troubles = []
        if gpu.ecc_uncorrectable:
            troubles.append(f"{gpu.ecc_uncorrectable} uncorrectable memory errors since the driver was loaded")
        if gpu.remap_failed:
            troubles.append("row remapping failed")
        if gpu.recovery_action not in (None, "None"):
            troubles.append(f"recovery action: {gpu.recovery_action}")
        if troubles:
            problems.append(Problem("GF776", {"gpu": f"GPU {number} ({gpu.bus_id})", "what": ", ".join(troubles)}))
    return problems


def _kernel_log(context: Context) -> list[Problem]:
    """Lines of the kernel log since boot that the table calls errors, one for each kind."""
    rows = {row.id: row for row in kernel_log(context.tables)}
    seen: dict[str, str] = {}
    for hit in context.probe.kernel.log:
        if hit.id in rows and rows[hit.id].severity == "error":
            seen[hit.id] = hit.line
    found = [f"{rows[name].hint} ({line})" for name, line in seen.items()]
    return [Problem("GF776", {"gpu": "kernel log", "what": what}) for what in found]


def reboot_reasons(context: Context) -> list[str]:
    """Why a reboot is required now, from the state of the host alone."""
    settings = context.settings
    if settings.gpu_driver_state == "absent":
        return ["the driver's module is still loaded"] if context.probe.driver else []
    if settings.gpu_driver_method == "none":
        return []
    return [*plan_driver(context).reboot, *mig.plan_mig(context).reboot]


def settings_unit(context: Context) -> str | None:
    """Unit that sets what a reboot clears: power limit, clocks, time slice. None when nothing is to be set."""
    settings = context.settings
    lines = []
    if settings.gpu_health_power_limit_watts:
        lines.append(f"ExecStart=/usr/bin/nvidia-smi -pl {settings.gpu_health_power_limit_watts}")
    if settings.gpu_health_lock_clocks:
        lines.append(f"ExecStart=/usr/bin/nvidia-smi -lgc {settings.gpu_health_lock_clocks}")
    if settings.gpu_health_time_slice:
        number = TIME_SLICES[settings.gpu_health_time_slice]
        lines.append(f"ExecStart=/usr/bin/nvidia-smi compute-policy --set-timeslice={number}")
    if not lines:
        return None
    return (
        "# Written by the role gpu_health.\n[Unit]\nDescription=GPU settings that a reboot clears\n"
        "After=nvidia-persistenced.service nvidia-fabricmanager.service nvidia-mig-manager.service\n\n"
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=120\n"
        + "\n".join(lines)
        + "\n\n[Install]\nWantedBy=multi-user.target\n"
    )


def plan_health(context: Context) -> HealthWork:
    """What is left to do: the unit of settings, and the fact file."""
    reasons = reboot_reasons(context)
    plan = HealthWork(problems=health(context), reboot=reasons)
    plan.healthy = not plan.problems
    if reasons:  # what only a reboot can mend is said once, and does not stop the run
        plan.problems = [p for p in plan.problems if p.code not in AWAITING_REBOOT]
        plan.problems.append(Problem("GF778", {"reasons": "; ".join(reasons)}))
    unit = settings_unit(context) if context.gpus else None
    if unit:
        plan.files = context.want_file(paths.SETTINGS_UNIT, unit)
        plan.reload = bool(plan.files)
        ready = context.probe.driver is not None
        plan.units = context.want_unit(SETTINGS_UNIT, active=True if ready else None)
        if plan.files and ready:
            plan.units = [UnitChange(SETTINGS_UNIT, enabled=True, state="restarted")]
        elif ready and settings_lost(context) and not plan.units:
            plan.units = [UnitChange(SETTINGS_UNIT, state="restarted")]
    elif paths.SETTINGS_UNIT in context.probe.files:
        plan.units = [UnitChange(SETTINGS_UNIT, enabled=False, state="stopped")]
        plan.absent, plan.reload = [paths.SETTINGS_UNIT], True
    plan.waiting = fabric.fabric_states(context)[0]
    plan.wait_seconds = context.settings.gpu_fabric_ready_timeout if plan.waiting else 0
    return plan


def settings_lost(context: Context) -> bool:
    """Whether a GPU no longer has what the unit set, for instance after the driver was loaded again."""
    watts, wanted = context.settings.gpu_health_power_limit_watts, context.settings.gpu_health_time_slice
    gpus = (context.probe.smi or Smi()).gpus
    if watts and any(g.power_limit_w is not None and g.power_limit_w != watts for g in gpus):
        return True
    return bool(wanted) and any(found != wanted for found in context.probe.time_slice)


def _owner(context: Context) -> str:
    """host: a driver of ours is loaded; other: somebody else's; none."""
    if not context.probe.driver:
        return "none"
    return "other" if context.settings.gpu_driver_method == "none" else "host"


def facts(context: Context, *, healthy: bool) -> dict[str, Any]:
    """The content of the fact file: the same for the same state, without times.

    `last_good` is the driver that the host last passed its health check with.
    """
    old, _why = runtime.read_json(context.file_text(paths.FACTS))
    driver, target = context.probe.driver, context.target
    bound = fabric.bound_installed(context)
    row = context.packages.get(toolkit.PACKAGE)
    last_good = old.get("last_good")
    if healthy and driver:
        last_good = {
            "version": driver.version,
            "branch": branch_of(driver.version),
            "flavour": driver.flavour,
        }
        if context.settings.gpu_driver_method == "runfile":  # the way back needs the checksum of that file
            last_good["runfile_sha256"] = context.settings.gpu_driver_runfile_sha256
    seen = fabric.fabric_of(context)
    return {
        "schema": 1,
        "settings": digest(context),
        "gpus": [{"slot": g.slot, "device": g.device, "model": g.name} for g in context.gpus],
        "driver": {
            "owner": _owner(context),
            "version": driver.version if driver else None, "flavour": driver.flavour if driver else None,
            "library": context.probe.library, "wanted": target.version,
            "method": context.settings.gpu_driver_method,
        },
        "fabric": {
            "platform": seen.id, "version": next(iter(bound.values()), None), "unit": seen.unit,
            "ready": not any(fabric.fabric_states(context)) if seen.unit and driver else None,
        },
        "toolkit": {"version": upstream(row.version) if row else None},
        "runtime": runtime.runtime_state(context)._asdict(),
        "mig": mig.observed(context),
        "reboot_required": reboot_reasons(context),
        "healthy": healthy,
        "last_good": last_good,
    }  # fmt: skip


def digest(context: Context) -> str:
    """Short hash of the variables that describe the wanted state: another one means that the plan has changed."""
    passing = ("gpu_node_drained", "gpu_reboot_policy", "gpu_lock_timeout", "gpu_reboot_timeout", "gpu_catalog_dir")
    said = context.settings.model_dump(exclude_unset=True)
    wanted = {k: v for k, v in said.items() if k not in passing and not k.startswith("gpu_preflight_")}
    return hashlib.sha256(canonical(wanted).encode()).hexdigest()[:12]


def canonical(value: Any) -> str:
    """JSON with sorted keys, for files whose content must not depend on the order of a mapping."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def facts_file(context: Context, *, healthy: bool, check_mode: bool) -> list[WantedFile]:
    """The fact file when it differs from what is there.

    In check mode the state is still the old one, so only the wanted state is compared.
    """
    if check_mode:
        old, _why = runtime.read_json(context.file_text(paths.FACTS))
        if old.get("settings") == digest(context):
            return []
    return context.want_file(paths.FACTS, canonical(facts(context, healthy=healthy)))


def last_good(context: Context) -> dict[str, Any] | None:
    """The driver that the host was last healthy with, from its fact file; None where the file does not say it."""
    document, _why = runtime.read_json(context.file_text(paths.FACTS))
    found = document.get("last_good")
    return found if isinstance(found, dict) and VERSION.fullmatch(str(found.get("version"))) else None
