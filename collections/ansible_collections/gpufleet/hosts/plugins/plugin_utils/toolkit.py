"""What is left to do for the container toolkit of a host: packages, its own configuration, the container runtime."""

from __future__ import annotations

import json
from typing import Any

from ..module_utils import paths
from . import containerd, sources, tomltext
from .context import Context
from .driver import unresolved
from .versions import at_least, upstream

RANCHER_UNITS = {"k3s": ("k3s.service", "k3s-agent.service"), "rke2": ("rke2-server.service", "rke2-agent.service")}
UNITS = {"containerd": "containerd.service", "docker": "docker.service", "crio": "crio.service"}
JIT_CDI_SINCE = "1.18.0"  # mode auto resolves to CDI from here on


def version_of(context: Context) -> str:
    """The wanted version, such as 1.20.0; the catalogue's when the variable is empty."""
    wanted = str(context.settings["gpu_container_toolkit_version"])
    rows = context.tables.rows("platforms", "toolkit_packages")
    return upstream(wanted or rows[0]["version"])


def package_names(context: Context) -> list[str]:
    """The toolkit's packages, which depend on each other exactly."""
    return [row["package"] for row in context.tables.rows("platforms", "toolkit_packages")]


def owners_found(context: Context) -> list[str]:
    """Container runtimes that run on the host, by socket, unit or files."""
    runtime, units = context.probe["runtime"], context.probe["units"]
    found = []
    rancher = [name for name, names in RANCHER_UNITS.items() if any(n in units for n in names)]
    found += rancher or (["k3s"] if "/run/k3s/containerd/containerd.sock" in runtime["sockets"] else [])
    if runtime["docker"] or "/run/docker.sock" in runtime["sockets"]:
        found.append("docker")
    if runtime["crio"] or "/run/crio/crio.sock" in runtime["sockets"]:
        found.append("crio")
    plain = runtime["containerd"] or "/run/containerd/containerd.sock" in runtime["sockets"]
    kubelet = units.get("kubelet.service", {}).get("active") == "active"
    if plain and ("docker" not in found or kubelet):  # docker brings its own containerd, which a kubelet may share
        found.append("containerd")
    return found


def owner_of(context: Context) -> str:
    """Who owns the container runtime: the variable, or the only one that was found, "none" without any, "" when unclear."""
    wanted = str(context.settings["gpu_runtime_owner"])
    if wanted != "auto":
        return wanted
    found = owners_found(context)
    return found[0] if len(found) == 1 else "" if found else "none"


def risky(context: Context) -> bool:
    """Whether a daemon-reload or a restart of the runtime would take GPUs away from running containers."""
    if context.settings["gpu_node_drained"] or not context.workloads:
        return False
    mode = str(context.settings["gpu_container_toolkit_mode"])
    row = context.packages.get("nvidia-container-toolkit")
    installed = upstream(row["version"]) if row else version_of(context)
    return mode == "legacy" or (mode == "auto" and not at_least(installed, JIT_CDI_SINCE))


def plan_toolkit(context: Context) -> dict[str, Any]:
    """The toolkit's plan. `files` are checked after they were written and put back when the runtime refuses them."""
    plan: dict[str, Any] = {
        "problems": [], "sources": [], "absent": [], "keyrings": [], "packages": {"install": [], "remove": []}, "hold": [],
        "release": [], "files": [], "remove_files": [], "restart": [], "units": [], "resolve": {}, "owner": owner_of(context),
        "hints": {}, "before": "", "repair": False,
    }  # fmt: skip
    if context.settings["gpu_container_toolkit_state"] == "absent":
        return _removal(context, plan)
    if not plan["owner"]:
        values = {"found": ", ".join(owners_found(context))}
        plan["problems"].append(("GF744", values))
        return plan
    _packages(context, plan)
    _configuration(context, plan)
    _runtime(context, plan)
    disturbing = plan["restart"] or plan["packages"]["install"] or plan["packages"]["remove"] or plan["resolve"]
    if disturbing and risky(context):
        holders = ", ".join(context.workloads)
        plan["problems"].append(("GF750", {"what": "restarting the container runtime", "holders": holders}))
    return plan


def repository_of(context: Context) -> sources.Repository:
    """The toolkit's repository."""
    return sources.repository("container-toolkit", context.platform, context.settings, context.tables)


def wanted_packages(context: Context) -> list[dict[str, Any]]:
    """The packages to ask for, in the form of the module `resolve`."""
    repository = "container-toolkit" if context.settings["gpu_repo_manage"] else ""
    version = version_of(context)
    return [{"name": n, "version": version, "repository": repository, "part": "toolkit"} for n in package_names(context)]


def resolve_request(context: Context) -> dict[str, Any]:
    """The question to the repository, {} when every package is there at its version."""
    want = wanted_packages(context)
    if all(_installed(context, item) for item in want):
        return {}
    repo = repository_of(context)
    managed = bool(context.settings["gpu_repo_manage"])
    check_key = managed and repo.key_url and not sources.key_installed(repo, context.probe)
    return {
        "repositories": [sources.resolve_repository(repo, context.platform)] if managed else [], "want": want,
        "urls": [repo.key_url] if check_key else [],
    }  # fmt: skip


def _installed(context: Context, item: dict[str, Any]) -> bool:
    row = context.packages.get(item["name"])
    return bool(row) and row["state"] == "installed" and upstream(row["version"]) == item["version"]


def _packages(context: Context, plan: dict[str, Any]) -> None:
    if context.settings["gpu_repo_manage"]:
        repo = repository_of(context)
        if not sources.key_installed(repo, context.probe):
            if repo.key_known:
                plan["keyrings"] = [{"path": repo.keyring_path, "text": repo.key_text, "url": repo.key_url or "",
                                     "fingerprints": repo.fingerprints}]  # fmt: skip
            else:
                plan["problems"].append(("GF738", {"repository": repo.url, "variable": "gpu_container_toolkit_repo_key"}))
        plan["sources"] = context.want_file(repo.source_path, repo.source_text())
        plan["absent"] = sources.foreign_sources(repo, context.probe)
    request = resolve_request(context)
    names: list[str] = []
    if request:
        answer = context.answer(request["want"])
        if answer is None:
            plan["resolve"] = request
        else:
            plan["problems"] += unresolved(context, answer)
            plan["packages"]["install"] = answer["packages"]
            names = [item["name"] for item in answer["packages"]]
    ended = [row["package"] for row in context.tables.rows("host_toolkit", "ended_packages")]
    plan["packages"]["remove"] = [name for name in ended if name in context.packages]
    if context.settings["gpu_container_toolkit_hold"]:
        wanted = names or package_names(context)
        plan["hold"] = [n for n in wanted if not context.packages.get(n, {}).get("hold")]


def _configuration(context: Context, plan: dict[str, Any]) -> None:
    """The toolkit's own file: policy knobs, by single keys, the rest stays as it is."""
    settings = context.settings
    text = context.file_text(paths.TOOLKIT_CONFIG) or ""
    document, why = tomltext.parse(text)
    if why:
        plan["problems"].append(("GF747", {"file": paths.TOOLKIT_CONFIG, "reason": why}))
        return
    wanted: list[tuple[list[str], str, Any]] = [
        ([], "accept-nvidia-visible-devices-envvar-when-unprivileged", settings["gpu_container_toolkit_unprivileged_envvar"]),
        ([], "accept-nvidia-visible-devices-as-volume-mounts", settings["gpu_container_toolkit_volume_mounts"]),
        (["nvidia-container-cli"], "no-cgroups", settings["gpu_container_toolkit_no_cgroups"]),
        (["nvidia-container-runtime"], "mode", settings["gpu_container_toolkit_mode"]),
    ]
    for table, key, value in wanted:
        section = document
        for part in table:
            section = section.get(part, {})
        if section.get(key) != value:
            text = tomltext.set_key(text, table, key, value)
    plan["files"] += context.want_file(paths.TOOLKIT_CONFIG, text)
    if not at_least(version_of(context), JIT_CDI_SINCE):
        return
    if not settings["gpu_container_toolkit_cdi_refresh"]:
        plan["units"] += context.want_unit("nvidia-cdi-refresh.path", enabled=False, active=False)
        plan["units"] += context.want_unit("nvidia-cdi-refresh.service", enabled=False, active=None)
    else:
        # Without a loaded driver the unit's service fails until systemd gives the unit up.
        plan["units"] += context.want_unit("nvidia-cdi-refresh.path", active=True if context.probe["driver"] else None)


def _runtime(context: Context, plan: dict[str, Any]) -> None:
    owner = plan["owner"]
    found = owners_found(context)
    declared = "containerd" if owner == "kubespray" else owner
    if owner != "none" and declared not in found:
        plan["problems"].append(("GF745", {"owner": owner, "found": ", ".join(found) or "none"}))
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
        plan["hints"] = kubespray_hints(context)


def _since(context: Context, unit: str) -> float:
    return float(context.probe["units"].get(unit, {}).get("since", 0))


def _stale(context: Context, unit: str, *files: str) -> bool:
    """Whether a file was written after the service last read it: a run that died in between left it so."""
    since = _since(context, unit)
    records = [context.probe["files"].get(path) for path in files]
    return bool(since) and any(record and record["mtime"] > since for record in records)


def _containerd(context: Context, plan: dict[str, Any]) -> None:
    runtime, settings = context.probe["runtime"], context.settings
    text = context.file_text(paths.CONTAINERD_CONFIG) or ""
    seeded = text if text.strip() else (runtime["containerd_default"] or "")
    dump = runtime["containerd_dump"]
    if dump is None:
        plan["problems"].append(("GF747", {"file": paths.CONTAINERD_CONFIG, "reason": "'containerd config dump' fails"}))
        return
    drop_in = context.file_text(paths.CONTAINERD_DROP_IN)
    mine = drop_in if drop_in is not None and drop_in.startswith(_drop_in_mark()) else None
    changes, why = containerd.edit(
        seeded, mine, dump, runtime["containerd"] or "0", name=settings["gpu_container_toolkit_runtime_name"],
        default=bool(settings["gpu_container_toolkit_default_runtime"]),
    )  # fmt: skip
    if why:
        plan["problems"].append(("GF747", {"file": "containerd", "reason": why}))
        return
    for path, content in changes.items():
        if content is None:
            plan["remove_files"] += [path] if mine is not None else []
        elif path == paths.CONTAINERD_DROP_IN:
            plan["files"] += context.want_file(path, _drop_in_mark() + content)
        elif content != text:
            plan["files"] += context.want_file(path, content)
    plan["before"] = dump
    touched = [f["path"] for f in plan["files"] if f["path"] in (paths.CONTAINERD_CONFIG, paths.CONTAINERD_DROP_IN)]
    own = mine is not None or tomltext.block_of(text) is not None
    if touched or plan["remove_files"] or (
        own and _stale(context, UNITS["containerd"], paths.CONTAINERD_CONFIG, paths.CONTAINERD_DROP_IN)
    ):
        plan["restart"] = [{"name": UNITS["containerd"], "state": "restarted"}]


def _drop_in_mark() -> str:
    return "# Written by the role gpu_container_toolkit.\n"


def _docker(context: Context, plan: dict[str, Any]) -> None:
    """daemon.json with our runtime added; every other key stays. Docker reads runtimes again on reload."""
    settings, text = context.settings, context.file_text(paths.DOCKER_CONFIG)
    try:
        document = json.loads(text) if text and text.strip() else {}
    except ValueError as error:
        plan["problems"].append(("GF747", {"file": paths.DOCKER_CONFIG, "reason": str(error)}))
        return
    name = settings["gpu_container_toolkit_runtime_name"]
    entry = document.setdefault("runtimes", {}).get(name) or {}
    if not str(entry.get("path", "")).endswith("nvidia-container-runtime"):
        document["runtimes"][name] = {"args": [], "path": "nvidia-container-runtime"}
    if settings["gpu_container_toolkit_default_runtime"]:
        document["default-runtime"] = name
    if text is None or document != json.loads(text or "{}"):
        plan["files"] += context.want_file(paths.DOCKER_CONFIG, json.dumps(document, indent=4) + "\n")
    written = any(f["path"] == paths.DOCKER_CONFIG for f in plan["files"])
    if written or _stale(context, UNITS["docker"], paths.DOCKER_CONFIG):
        plan["restart"] = [{"name": UNITS["docker"], "state": "reloaded"}]


def _crio(context: Context, plan: dict[str, Any]) -> None:
    name = context.settings["gpu_container_toolkit_runtime_name"]
    text = _drop_in_mark()
    if context.settings["gpu_container_toolkit_default_runtime"]:
        text += f'[crio.runtime]\ndefault_runtime = "{name}"\n'
    text += f'[crio.runtime.runtimes.{name}]\nruntime_path = "{containerd.BINARY}"\nruntime_type = "oci"\n'
    plan["files"] += context.want_file(paths.CRIO_DROP_IN, text)
    written = any(f["path"] == paths.CRIO_DROP_IN for f in plan["files"])
    if written or _stale(context, UNITS["crio"], paths.CRIO_DROP_IN):
        plan["restart"] = [{"name": UNITS["crio"], "state": "restarted"}]


def _rancher(context: Context, plan: dict[str, Any], owner: str) -> None:
    """k3s and RKE2 find the runtime at their own start and write their own file; only a restart is ours."""
    units = [name for name in RANCHER_UNITS[owner] if context.probe["units"].get(name, {}).get("active") == "active"]
    config = paths.RANCHER_CONFIG[owner]
    if context.settings["gpu_container_toolkit_default_runtime"]:
        name = context.settings["gpu_container_toolkit_runtime_name"]
        lines = [line for line in (context.file_text(config) or "").splitlines() if not line.startswith("default-runtime:")]
        plan["files"] += context.want_file(config, "\n".join([*lines, f"default-runtime: {name}"]) + "\n", _mode(context, config))
    generated = context.file_text(paths.RANCHER_CONTAINERD[owner])
    known = generated is not None and "nvidia-container-runtime" in generated
    if not known or any(f["path"] == config for f in plan["files"]):
        plan["restart"] = [{"name": name, "state": "restarted"} for name in units]


def _mode(context: Context, path: str) -> str:
    record = context.probe["files"].get(path)
    return str(record["mode"]) if record else "0600"


def kubespray_hints(context: Context) -> dict[str, Any]:
    """Variables for kubespray's inventory: it owns containerd's file and would undo any edit."""
    name = context.settings["gpu_container_toolkit_runtime_name"]
    hints: dict[str, Any] = {
        "containerd_additional_runtimes": [
            {"name": name, "type": "io.containerd.runc.v2", "engine": "", "root": "",
             "options": {"BinaryName": f"'{containerd.BINARY}'", "systemdCgroup": "true"}}
        ],
        "enable_cdi": True,
    }  # fmt: skip
    if context.settings["gpu_container_toolkit_default_runtime"]:
        hints["containerd_default_runtime"] = name
    return hints


def verify_runtime(context: Context, before: str) -> list[tuple[str, dict[str, Any]]]:
    """Problems of containerd's effective configuration after the files were written and before any restart."""
    dump = context.probe["runtime"]["containerd_dump"]
    name = context.settings["gpu_container_toolkit_runtime_name"]
    if dump is None:
        return [("GF747", {"file": paths.CONTAINERD_CONFIG, "reason": "'containerd config dump' fails after the change"})]
    document, _why = tomltext.parse(dump)
    if name not in containerd.runtimes(document):
        return [("GF783", {"what": f"the effective configuration has no runtime {name}"})]
    changed = containerd.unexpected(before, dump, name)
    return [("GF789", {"paths": ", ".join(changed[:10])})] if changed else []


def runtime_state(context: Context) -> dict[str, Any]:
    """Owner, handler and default for the fact file."""
    owner, name = owner_of(context), context.settings["gpu_container_toolkit_runtime_name"]
    known, default = False, False
    runtime = context.probe["runtime"]
    if owner in ("containerd", "kubespray") and runtime["containerd_dump"]:
        document, _why = tomltext.parse(runtime["containerd_dump"])
        known, default = containerd.satisfied(document, name, False), containerd.satisfied(document, name, True)
    elif owner == "docker":
        document, _why = _json(context.file_text(paths.DOCKER_CONFIG))
        known, default = name in document.get("runtimes", {}), document.get("default-runtime") == name
    elif owner == "crio":
        text = context.file_text(paths.CRIO_DROP_IN) or ""
        known, default = f"runtimes.{name}]" in text, f'default_runtime = "{name}"' in text
    elif owner in RANCHER_UNITS:
        known = "nvidia-container-runtime" in (context.file_text(paths.RANCHER_CONTAINERD[owner]) or "")
        default = f"default-runtime: {name}" in (context.file_text(paths.RANCHER_CONFIG[owner]) or "")
    return {"owner": owner, "handler": name if known else None, "default": default}


def _json(text: str | None) -> tuple[dict[str, Any], str]:
    try:
        return (json.loads(text) if text else {}), ""
    except ValueError as error:
        return {}, str(error)


def _removal(context: Context, plan: dict[str, Any]) -> dict[str, Any]:
    """Take the runtime out of its configuration first, then the packages."""
    owner = plan["owner"]
    installed = [name for name in package_names(context) if name in context.packages]
    text = context.file_text(paths.CONTAINERD_CONFIG) or ""
    if tomltext.block_of(text) is not None:
        plan["files"] += context.want_file(paths.CONTAINERD_CONFIG, containerd.remove(text))
        plan["restart"] = [{"name": UNITS["containerd"], "state": "restarted"}]
    drop_in = context.file_text(paths.CONTAINERD_DROP_IN)
    if drop_in is not None and drop_in.startswith(_drop_in_mark()):
        plan["remove_files"].append(paths.CONTAINERD_DROP_IN)
        plan["restart"] = [{"name": UNITS["containerd"], "state": "restarted"}]
    if (context.file_text(paths.CRIO_DROP_IN) or "").startswith(_drop_in_mark()):
        plan["remove_files"].append(paths.CRIO_DROP_IN)
        plan["restart"] = [{"name": UNITS["crio"], "state": "restarted"}]
    document, _why = _json(context.file_text(paths.DOCKER_CONFIG))
    name = context.settings["gpu_container_toolkit_runtime_name"]
    if document.get("runtimes", {}).pop(name, None) is not None:
        if document.get("default-runtime") == name:
            del document["default-runtime"]
        plan["files"] += context.want_file(paths.DOCKER_CONFIG, json.dumps(document, indent=4) + "\n")
        plan["restart"] = [{"name": UNITS["docker"], "state": "reloaded"}]
    plan["release"] = [n for n in installed if context.packages[n]["hold"]]
    plan["packages"]["remove"] = installed
    plan["absent"] = context.unwanted(paths.TOOLKIT_SOURCE_APT, paths.TOOLKIT_SOURCE_DNF)
    plan["absent"] += [p for p in (paths.TOOLKIT_KEYRING_APT, paths.TOOLKIT_KEYRING_DNF) if p in context.probe["keyrings"]]
    if owner in RANCHER_UNITS and installed:
        _rancher_restart(context, plan, owner)
    if plan["restart"] and risky(context):
        values = {"what": "restarting the container runtime", "holders": ", ".join(context.workloads)}
        plan["problems"].append(("GF750", values))
    return plan


def _rancher_restart(context: Context, plan: dict[str, Any], owner: str) -> None:
    active = [n for n in RANCHER_UNITS[owner] if context.probe["units"].get(n, {}).get("active") == "active"]
    plan["restart"] = [{"name": n, "state": "restarted"} for n in active]
