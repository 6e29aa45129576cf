"""The container runtime of a host: who owns its configuration, and the change that adds the NVIDIA runtime."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from gpufleet.hosts import containerd, paths, tomltext
from gpufleet.hosts.context import Context
from gpufleet.hosts.work import Problem, ToolkitWork, UnitChange, WantedFile

RANCHER_UNITS = {"k3s": ("k3s.service", "k3s-agent.service"), "rke2": ("rke2-server.service", "rke2-agent.service")}
UNITS = {"containerd": "containerd.service", "docker": "docker.service", "crio": "crio.service"}


def owners_found(context: Context) -> list[str]:
    """Container runtimes that run on the host, by socket, unit or files."""
    seen, units = context.probe.runtime, context.probe.units
    found = []
    rancher = [name for name, names in RANCHER_UNITS.items() if any(n in units for n in names)]
    found += rancher or (["k3s"] if "/run/k3s/containerd/containerd.sock" in seen.sockets else [])
    if seen.docker or "/run/docker.sock" in seen.sockets:
        found.append("docker")
    if seen.crio or "/run/crio/crio.sock" in seen.sockets:
        found.append("crio")
    plain = seen.containerd or "/run/containerd/containerd.sock" in seen.sockets
    kubelet = context.probe.active("kubelet.service")
    if plain and ("docker" not in found or kubelet):  # docker brings its own containerd, which a kubelet may share
        found.append("containerd")
    return found


def owner_of(context: Context) -> str:
    """Owner of the container runtime: the variable, or the only one found, "none" without any, "" when unclear."""
    wanted = context.settings.gpu_runtime_owner
    if wanted != "auto":
        return wanted
    found = owners_found(context)
    return found[0] if len(found) == 1 else "" if found else "none"


def plan_runtime(context: Context, plan: ToolkitWork) -> None:
    """Add to the plan what the owner of the runtime needs."""
    owner = plan.owner
    found = owners_found(context)
    declared = "containerd" if owner == "kubespray" else owner
    if owner != "none" and declared not in found:
        plan.problems.append(Problem("GF745", {"owner": owner, "found": ", ".join(found) or "none"}))
        return
    if owner == "containerd":
        _containerd(context, plan)
    elif owner == "docker":
        _docker(context, plan)
    elif owner == "crio":
        _crio(context, plan)
    elif owner in RANCHER_UNITS:
        _rancher(context, plan, owner)
    elif owner == "kubespray":
        plan.hints = kubespray_hints(context)


def _since(context: Context, unit: str) -> float:
    return context.probe.units[unit].since if unit in context.probe.units else 0


def _stale(context: Context, unit: str, *files: str) -> bool:
    """Whether a file was written after the service last read it: a run that died in between left it so."""
    since = _since(context, unit)
    records = [context.probe.files.get(path) for path in files]
    return bool(since) and any(record and record.mtime > since for record in records)


def _containerd(context: Context, plan: ToolkitWork) -> None:
    seen, settings = context.probe.runtime, context.settings
    text = context.file_text(paths.CONTAINERD_CONFIG) or ""
    seeded = text if text.strip() else (seen.containerd_default or "")
    dump = seen.containerd_dump
    if dump is None:
        why = tomltext.parse(text)[1] or "'containerd config dump' fails; run it on the host"
        plan.problems.append(Problem("GF747", {"file": paths.CONTAINERD_CONFIG, "reason": why}))
        return
    if containerd.ignores(text, seen.containerd or "0"):
        plan.problems.append(Problem("GF795", {"file": paths.CONTAINERD_CONFIG, "version": seen.containerd}))
        return
    drop_in = context.file_text(paths.CONTAINERD_DROP_IN)
    mine = drop_in if drop_in is not None and drop_in.startswith(mark()) else None
    changes, why = containerd.edit(
        seeded, mine, dump, seen.containerd or "0", name=settings.gpu_container_toolkit_runtime_name,
        default=settings.gpu_container_toolkit_default_runtime, cdi=settings.gpu_container_toolkit_cdi,
    )  # fmt: skip
    if why:
        plan.problems.append(Problem("GF747", {"file": "containerd", "reason": why}))
        return
    for path, content in changes.items():
        if content is None:
            plan.remove_files += [path] if mine is not None else []
        elif path == paths.CONTAINERD_DROP_IN:
            plan.files += context.want_file(path, mark() + content)
        elif content != text:
            plan.files += context.want_file(path, content)
    plan.before = dump
    touched = [f.path for f in plan.files if f.path in (paths.CONTAINERD_CONFIG, paths.CONTAINERD_DROP_IN)]
    own = mine is not None or tomltext.block_of(text) is not None
    if (
        touched
        or plan.remove_files
        or (own and _stale(context, UNITS["containerd"], paths.CONTAINERD_CONFIG, paths.CONTAINERD_DROP_IN))
    ):
        plan.restart = [UnitChange(UNITS["containerd"], state="restarted")]


def mark() -> str:
    """The first line of files that the role writes as a whole."""
    return "# Written by the role gpu_container_toolkit.\n"


def _docker(context: Context, plan: ToolkitWork) -> None:
    """daemon.json with our runtime added; every other key stays. Docker reads runtimes again on reload."""
    settings, text = context.settings, context.file_text(paths.DOCKER_CONFIG)
    document, why = read_json(text)
    if not why and not isinstance(document.get("runtimes", {}), dict):
        why = "runtimes is no object"
    if why:
        plan.problems.append(Problem("GF747", {"file": paths.DOCKER_CONFIG, "reason": why}))
        return
    name = settings.gpu_container_toolkit_runtime_name
    entry = document.setdefault("runtimes", {}).get(name)
    if not str(entry.get("path", "") if isinstance(entry, dict) else "").endswith("nvidia-container-runtime"):
        document["runtimes"][name] = {"args": [], "path": "nvidia-container-runtime"}
    if settings.gpu_container_toolkit_default_runtime:
        document["default-runtime"] = name
    elif document.get("default-runtime") == name:
        del document["default-runtime"]
    if text is None or document != read_json(text)[0]:
        plan.files += context.want_file(paths.DOCKER_CONFIG, json.dumps(document, indent=4) + "\n")
    written = any(f.path == paths.DOCKER_CONFIG for f in plan.files)
    if written or _stale(context, UNITS["docker"], paths.DOCKER_CONFIG):
        plan.restart = [UnitChange(UNITS["docker"], state="reloaded")]


def _crio(context: Context, plan: ToolkitWork) -> None:
    name = context.settings.gpu_container_toolkit_runtime_name
    text = mark()
    if context.settings.gpu_container_toolkit_default_runtime:
        text += f'[crio.runtime]\ndefault_runtime = "{name}"\n'
    text += f'[crio.runtime.runtimes.{name}]\nruntime_path = "{containerd.BINARY}"\nruntime_type = "oci"\n'
    plan.files += context.want_file(paths.CRIO_DROP_IN, text)
    written = any(f.path == paths.CRIO_DROP_IN for f in plan.files)
    if written or _stale(context, UNITS["crio"], paths.CRIO_DROP_IN):
        plan.restart = [UnitChange(UNITS["crio"], state="restarted")]


def _rancher(context: Context, plan: ToolkitWork, owner: str) -> None:
    """k3s and RKE2 find the runtime at their own start and write their own file; only a restart is ours."""
    units, config = _rancher_units(context, owner), paths.RANCHER_CONFIG[owner]
    if context.settings.gpu_container_toolkit_default_runtime:
        name = context.settings.gpu_container_toolkit_runtime_name
        lines = [
            line for line in (context.file_text(config) or "").splitlines() if not line.startswith("default-runtime:")
        ]
        plan.files += context.want_file(
            config, "\n".join([*lines, f"default-runtime: {name}"]) + "\n", _mode(context, config)
        )
    else:
        plan.files += _without_default(context, config)
    generated = context.file_text(paths.RANCHER_CONTAINERD[owner])
    known = generated is not None and "nvidia-container-runtime" in generated
    if not known or any(f.path == config for f in plan.files):
        plan.restart = [UnitChange(name, state="restarted") for name in units]


def _rancher_units(context: Context, owner: str) -> list[str]:
    return [name for name in RANCHER_UNITS[owner] if context.probe.active(name)]


def _without_default(context: Context, config: str) -> list[WantedFile]:
    """k3s' or RKE2's file without our runtime as the default, as a list of none or one."""
    text, name = context.file_text(config) or "", re.escape(context.settings.gpu_container_toolkit_runtime_name)
    rest = re.sub(rf"^default-runtime:[ \t]*[\"']?{name}[\"']?[ \t]*(?:#.*)?\n?", "", text, flags=re.M)
    return [] if rest == text else context.want_file(config, rest, _mode(context, config))


def forget_rancher(context: Context, plan: ToolkitWork, owner: str, installed: bool) -> None:
    """Removal: a default runtime that is gone would keep every pod from starting. They look for the runtime at their
    start, so the restart comes after the packages are gone."""
    plan.files += _without_default(context, paths.RANCHER_CONFIG[owner])
    if plan.files or installed:
        plan.afterwards = [UnitChange(name, state="restarted") for name in _rancher_units(context, owner)]


def _mode(context: Context, path: str) -> str:
    record = context.probe.files.get(path)
    return record.mode if record else "0600"


def kubespray_hints(context: Context) -> dict[str, Any]:
    """Variables for kubespray's inventory: it owns containerd's file and would undo any edit."""
    name = context.settings.gpu_container_toolkit_runtime_name
    hints: dict[str, Any] = {
        "containerd_additional_runtimes": [
            {"name": name, "type": "io.containerd.runc.v2", "engine": "", "root": "",
             "options": {"BinaryName": f"'{containerd.BINARY}'", "systemdCgroup": "true"}}
        ],
        "enable_cdi": True,
    }  # fmt: skip
    if context.settings.gpu_container_toolkit_default_runtime:
        hints["containerd_default_runtime"] = name
    return hints


def verify_runtime(context: Context, before: str) -> list[Problem]:
    """Problems of containerd's effective configuration after the files were written and before any restart."""
    dump = context.probe.runtime.containerd_dump
    name = context.settings.gpu_container_toolkit_runtime_name
    if dump is None:
        reason = "'containerd config dump' fails after the change"
        return [Problem("GF747", {"file": paths.CONTAINERD_CONFIG, "reason": reason})]
    document, _why = tomltext.parse(dump)
    if name not in containerd.runtimes(document):
        return [Problem("GF783", {"what": f"the effective configuration has no runtime {name}"})]
    if context.settings.gpu_container_toolkit_cdi and not containerd.resolves_cdi(document):
        what = "a file that containerd reads later sets enable_cdi to false"
        return [Problem("GF793", {"what": what})]
    changed = containerd.unexpected(before, dump, name)
    return [Problem("GF789", {"paths": ", ".join(changed[:10])})] if changed else []


def boot_order(context: Context) -> list[Problem]:
    """Cycles in the order of units at boot that a unit of the GPU software or a runtime is part of (case BM-36)."""
    return [
        Problem("GF790", {"units": ", ".join(cycle.units), "lost": cycle.lost or "one of them"})
        for cycle in context.probe.boot_cycles
        if set(cycle.units) & set(paths.UNITS)
    ]


class RuntimeState(NamedTuple):
    """Who owns the container runtime, the NVIDIA handler that it knows, and whether that is the default."""

    owner: str
    handler: str | None
    default: bool


def runtime_state(context: Context) -> RuntimeState:
    """Owner, handler and default for the fact file."""
    owner, name = owner_of(context), context.settings.gpu_container_toolkit_runtime_name
    known, default = False, False
    seen = context.probe.runtime
    if owner in ("containerd", "kubespray") and seen.containerd_dump:
        document, _why = tomltext.parse(seen.containerd_dump)
        known, default = containerd.satisfied(document, name, False), containerd.satisfied(document, name, True)
    elif owner == "docker":
        document, _why = read_json(context.file_text(paths.DOCKER_CONFIG))
        known, default = name in document.get("runtimes", {}), document.get("default-runtime") == name
    elif owner == "crio":
        text = context.file_text(paths.CRIO_DROP_IN) or ""
        known, default = f"runtimes.{name}]" in text, f'default_runtime = "{name}"' in text
    elif owner in RANCHER_UNITS:
        known = "nvidia-container-runtime" in (context.file_text(paths.RANCHER_CONTAINERD[owner]) or "")
        default = f"default-runtime: {name}" in (context.file_text(paths.RANCHER_CONFIG[owner]) or "")
    return RuntimeState(owner, name if known else None, default)


def read_json(text: str | None) -> tuple[dict[str, Any], str]:
    """(the document, "") or ({}, why it cannot be read). No text is an empty document."""
    try:
        found = json.loads(text) if text and text.strip() else {}
    except ValueError as error:
        return {}, str(error)
    return (found, "") if isinstance(found, dict) else ({}, "it is no object")
