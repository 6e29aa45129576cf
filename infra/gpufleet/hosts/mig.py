"""MIG layouts: checked against what one GPU can hold, written as an own file for nvidia-mig-manager."""

from __future__ import annotations

import re
from typing import Any

import yaml
from ansible_collections.gpufleet.hosts.plugins.module_utils import paths

from . import fabric
from .context import Context
from .driver import repository_of, stopped_daemons, unresolved
from .sources import resolve_repository
from .target import Gpu
from .versions import at_least, upstream

UNIT = "nvidia-mig-manager.service"
PACKAGE = "nvidia-mig-manager"
# Four times 1g.24gb are 96 on a card whose whole profile is called 7g.94gb: names round by up to three percent.
ROUNDING = 1.03


def tables_of(context: Context) -> dict[str, dict[str, Any] | None]:
    """Model -> its row of mig.yaml, None for a model without MIG."""
    rows = {row["id"]: row for row in context.tables.rows("mig", "mig_tables")}
    return {
        gpu.name: rows.get(str(gpu.model["mig"])) if gpu.model and gpu.model.get("mig") else None
        for gpu in context.gpus
    }


def standard_layouts(row: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The layouts that every model has: all-disabled, and all-<profile> as often as it fits."""
    layouts: dict[str, list[dict[str, Any]]] = {
        "all-disabled": [{"devices": "all", "mig-enabled": False}],
        "all-enabled": [{"devices": "all", "mig-enabled": True, "mig-devices": {}}],
    }
    for profile, count in row["profiles"].items():
        layouts[f"all-{profile}"] = [{"devices": "all", "mig-enabled": True, "mig-devices": {profile: count}}]
    return layouts


def layout_of(context: Context) -> tuple[list[dict[str, Any]] | None, list[str]]:
    """(the wanted layout in mig-parted's form, names of all known layouts)."""
    name = str(context.settings["gpu_mig_layout"])
    own = context.settings["gpu_mig_layouts"]
    known: dict[str, Any] = {}
    for row in tables_of(context).values():
        known.update(standard_layouts(row) if row else {})
    known.update(own)
    layout = known.get(name)
    return ([dict(part) for part in layout] if layout else None), sorted(known)


def problems_of(context: Context) -> list[tuple[str, dict[str, Any]]]:
    """Everything that keeps the layout from being applied."""
    name = str(context.settings["gpu_mig_layout"])
    if not name or context.settings["gpu_driver_state"] == "absent":
        return []
    problems: list[tuple[str, dict[str, Any]]] = []
    rows = tables_of(context)
    layout, known = layout_of(context)
    disabling = layout is not None and not any(part.get("mig-enabled") for part in layout)
    for gpu in {g.name: g for g in context.gpus}.values():
        row = rows[gpu.name]
        if row is None:
            if not disabling:
                problems.append(("GF754", {"gpu": gpu.name, "reason": "the model has no MIG"}))
            continue
        minimum, version = row["min_driver"], context.target.version
        if minimum and version and not at_least(version, minimum):
            problems.append(("GF754", {"gpu": gpu.name, "reason": f"MIG needs driver {minimum}, wanted is {version}"}))
    if layout is None:
        if not problems:
            problems.append(("GF755", {"layout": name, "known": ", ".join(known) or "none"}))
        return problems
    for index, gpu in enumerate(context.gpus):
        row = rows[gpu.name]
        reason = fits(_devices(layout, index, gpu), row) if row else ""
        if row and reason:
            profiles = ", ".join(f"{p} x{n}" for p, n in row["profiles"].items())
            problems.append(("GF753", {"layout": name, "gpu": gpu.name, "reason": reason, "profiles": profiles}))
    return list({str(p): p for p in problems}.values())


def _devices(layout: list[dict[str, Any]], index: int, gpu: Gpu) -> dict[str, int]:
    """Profile -> count on one GPU: the last part of the layout that names it decides."""
    found: dict[str, int] = {}
    for part in layout:
        devices = part.get("devices", "all")
        filters = part.get("device-filter")
        wanted = [filters] if isinstance(filters, str) else filters
        if wanted and f"0x{gpu.device.upper()}10DE".lower() not in [str(f).lower() for f in wanted]:
            continue
        if devices == "all" or index in (devices if isinstance(devices, list) else []):
            found = (
                {str(p): int(n) for p, n in (part.get("mig-devices") or {}).items()} if part.get("mig-enabled") else {}
            )
    return found


def fits(devices: dict[str, int], row: dict[str, Any]) -> str:
    """Why these instances cannot be on one GPU, "" when they can.

    Bounds, all necessary: the profile exists, not more of it than fit alone, compute slices and memory add up to
    at most what the GPU has, one instance with the media engines. Placement can refuse more, when it is applied.
    """
    renamed = {new: old for old, new in (row.get("renamed") or {}).items()}
    slices = memory = 0
    for profile, count in devices.items():
        known = renamed.get(profile, profile)
        limit = row["profiles"].get(known)
        if limit is None:
            return f"no profile {profile}"
        if count > limit:
            return f"{profile} fits {limit} times, wanted {count}"
        slices += count * int(known.split("g")[0])
        memory += count * _memory(known)
    whole = max(_memory(profile) for profile in row["profiles"])
    if memory > whole * ROUNDING:
        return f"{memory} GB wanted, the GPU has {whole}"
    if slices > row["slices"]:
        return f"{slices} compute slices wanted, the GPU has {row['slices']}"
    media = sum(count for profile, count in devices.items() if profile.endswith("+me"))
    if media > 1:
        return "only one instance can have the media engines (+me)"
    return ""


def _memory(profile: str) -> int:
    """Gigabytes in a profile's name, such as 10 of 1g.10gb+me. The names are rounded."""
    match = re.match(r"\d+g\.(\d+)gb", profile)
    return int(match[1]) if match else 0


def config_text(name: str, layout: list[dict[str, Any]]) -> str:
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


def plan_mig(context: Context) -> dict[str, Any]:
    """What is left to do for MIG."""
    settings = context.settings
    gone = settings["gpu_driver_state"] == "absent"
    name = "" if gone else str(settings["gpu_mig_layout"])
    plan: dict[str, Any] = {
        "problems": [], "packages": {"install": [], "remove": []}, "hold": [], "release": [], "files": [], "absent": [],
        "units": [], "resolve": {}, "apply": False, "reload": False, "reboot": [], "unload": [], "stop": [],
    }  # fmt: skip
    toolkit = settings["gpu_container_toolkit_state"] == "present"
    plan["cdi"] = toolkit and bool(settings["gpu_container_toolkit_cdi_refresh"])
    if not name:
        plan["absent"] = context.unwanted(paths.MIG_LAYOUT, paths.MIG_OVERRIDE)
        plan["reload"] = paths.MIG_OVERRIDE in plan["absent"]
        if plan["reload"] and not gone:  # without our selection it would apply one of its own at the next boot
            plan["units"] = context.want_unit(UNIT, enabled=False, active=None)
        row = context.packages.get(PACKAGE)
        if gone and row:
            plan["packages"]["remove"] = [PACKAGE]
            plan["release"] = [PACKAGE] if row["hold"] else []
        return plan
    plan["problems"] = problems_of(context)
    layout, _known = layout_of(context)
    if plan["problems"] or layout is None:
        return plan
    _package(context, plan)
    plan["files"] = context.want_file(paths.MIG_LAYOUT, config_text(name, layout))
    override = context.want_file(paths.MIG_OVERRIDE, override_text(name, int(settings["gpu_mig_start_timeout"])))
    plan["files"] += override
    unit = context.probe["units"].get(UNIT)
    plan["reload"] = bool(override) or bool(unit and unit["reload"])
    plan["units"] = context.want_unit(UNIT, active=None)
    state = context.probe["mig"]
    smi = context.probe["smi"] or {"gpus": []}
    pending = [g for g in smi["gpus"] if g["mig_pending"] not in (None, g["mig_current"])]
    matches = state.get("layout") == name and bool(state.get("matches"))
    if not matches or plan["files"]:
        plan["apply"] = True
        if context.in_use and context.workloads:
            holders = ", ".join(context.workloads)
            plan["problems"].append(("GF750", {"what": "changing the MIG layout", "holders": holders}))
        plan["stop"] = [{"name": name, "state": "stopped"} for name in _holders(context)]
        plan["unload"] = [m for m in ("nvidia_drm", "nvidia_modeset") if m in context.modules]
    if pending:
        plan["reboot"].append(f"MIG mode is pending on {len(pending)} GPUs")
    return plan


def _holders(context: Context) -> list[str]:
    """Daemons that keep a GPU from its reset: those that run, and those that the other roles start."""
    running = [unit["name"] for unit in stopped_daemons(context)]
    if context.settings["gpu_driver_method"] != "none":
        daemon = ["nvidia-persistenced.service"] if context.settings["gpu_driver_persistenced"] else []
        unit = fabric.fabric_of(context).unit
        running = [*running, *([unit] if unit else []), *daemon]
    return [name for name in dict.fromkeys(running) if name != UNIT]


def _package(context: Context, plan: dict[str, Any]) -> None:
    """mig-manager at one version; it is in no repository of the vendor, so the host's own have to offer it."""
    settings = context.settings
    version = upstream(str(settings["gpu_mig_manager_version"]) or _catalogue_version(context))
    row = context.packages.get(PACKAGE)
    installed = bool(row) and row["state"] == "installed" and upstream(row["version"]) == version
    if not installed:
        want = [{"name": PACKAGE, "version": version, "repository": "", "part": "mig"}]
        answer = context.answer(want)
        if answer is None:
            plan["resolve"] = {"repositories": _repositories(context), "want": want, "urls": []}
        else:
            missing = [{**answer, "request": [{**want[0], "part": "driver"}]}] if answer["missing"] else []
            plan["problems"] += [p for a in missing for p in unresolved(context, a)]
            plan["packages"]["install"] = answer["packages"]
    plan["release"] = context.locked(plan["packages"]["install"])
    if settings["gpu_mig_manager_hold"] and context.unheld(PACKAGE, plan["packages"]["install"]):
        plan["hold"] = [PACKAGE]


def _repositories(context: Context) -> list[dict[str, Any]]:
    """The driver's repository, in case a mirror has put the package there."""
    if not context.settings["gpu_repo_manage"] or context.settings["gpu_driver_method"] != "cuda_repo":
        return []
    repo = repository_of(context)
    return [resolve_repository(repo, context.platform)] if repo.url else []


def _catalogue_version(context: Context) -> str:
    row = context.tables.row("components", "components", "name", "mig-parted")
    return str(row["version"]) if row else ""


def observed(context: Context) -> dict[str, Any]:
    """MIG for the fact file: wanted layout, whether it is applied, modes by GPU."""
    smi = context.probe["smi"] or {"gpus": []}
    return {
        "layout": str(context.settings["gpu_mig_layout"]) or None,
        "applied": bool(context.probe["mig"].get("matches")),
        "modes": [g["mig_current"] for g in smi["gpus"]],
        "pending": [g["mig_pending"] for g in smi["gpus"]],
    }
