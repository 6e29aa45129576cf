"""What is left to do for the container toolkit of a host: packages, its own configuration, the container runtime."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.gpufleet.hosts.plugins.module_utils import paths

from . import containerd, runtimes, sources, tomltext
from .context import Context
from .driver import unresolved
from .driver_config import blockers
from .versions import at_least, upstream

JIT_CDI_SINCE = "1.18.0"  # mode auto resolves to CDI from here on


def version_of(context: Context) -> str:
    """The wanted version, such as 1.20.0; the catalogue's when the variable is empty."""
    wanted = str(context.settings["gpu_container_toolkit_version"])
    rows = context.tables.rows("platforms", "toolkit_packages")
    return upstream(wanted or rows[0]["version"])


def package_names(context: Context) -> list[str]:
    """The toolkit's packages, which depend on each other exactly."""
    return [row["package"] for row in context.tables.rows("platforms", "toolkit_packages")]


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
        "problems": [], "sources": [], "absent": [], "keyrings": [], "packages": {"install": [], "remove": []},
        "hold": [], "release": [], "files": [], "remove_files": [], "restart": [], "units": [], "resolve": {},
        "owner": runtimes.owner_of(context),
        "hints": {}, "before": "", "repair": False, "afterwards": [],
    }  # fmt: skip
    if context.settings["gpu_container_toolkit_state"] == "absent":
        return _removal(context, plan)
    if not plan["owner"]:
        values = {"found": ", ".join(runtimes.owners_found(context))}
        plan["problems"].append(("GF744", values))
        return plan
    _packages(context, plan)
    _configuration(context, plan)
    runtimes.plan_runtime(context, plan)
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
    return [
        {"name": n, "version": version, "repository": repository, "part": "toolkit"} for n in package_names(context)
    ]


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
                plan["problems"].append(
                    ("GF738", {"repository": repo.url, "variable": "gpu_container_toolkit_repo_key"})
                )
        plan["sources"] = context.want_file(repo.source_path, repo.source_text())
        plan["absent"] = sources.foreign_sources(repo, context.probe)
        plan["problems"] += sources.shared_problems(repo, context.probe)
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
    plan["release"] = context.locked(plan["packages"]["install"])
    if context.settings["gpu_container_toolkit_hold"]:
        wanted = names or package_names(context)
        plan["hold"] = [n for n in wanted if context.unheld(n, plan["packages"]["install"])]


def driver_expected(context: Context) -> bool:
    """Whether a driver is loaded, or will be when the role gpu_driver has done its work."""
    if context.probe["driver"]:
        return True
    settings = context.settings
    ours = settings["gpu_driver_state"] == "present" and settings["gpu_driver_method"] != "none"
    return bool(ours and settings["gpu_driver_load"] and context.gpus and not blockers(context))


def _configuration(context: Context, plan: dict[str, Any]) -> None:
    """The toolkit's own file: policy knobs, by single keys, the rest stays as it is."""
    settings = context.settings
    text = context.file_text(paths.TOOLKIT_CONFIG) or ""
    document, why = tomltext.parse(text)
    if why:
        plan["problems"].append(("GF747", {"file": paths.TOOLKIT_CONFIG, "reason": why}))
        return
    wanted: list[tuple[list[str], str, Any]] = [
        (
            [],
            "accept-nvidia-visible-devices-envvar-when-unprivileged",
            settings["gpu_container_toolkit_unprivileged_envvar"],
        ),
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
    coming = bool(plan["resolve"] or plan["packages"]["install"])
    if not at_least(version_of(context), JIT_CDI_SINCE):
        return
    if not settings["gpu_container_toolkit_cdi_refresh"]:
        plan["units"] += context.want_unit("nvidia-cdi-refresh.path", enabled=False, active=False, coming=coming)
        plan["units"] += context.want_unit("nvidia-cdi-refresh.service", enabled=False, active=None, coming=coming)
    else:
        # Without a loaded driver the unit's service fails until systemd gives the unit up.
        active = True if context.probe["driver"] else None
        plan["units"] += context.want_unit("nvidia-cdi-refresh.path", active=active, coming=coming)
        if not context.probe["runtime"]["cdi_specs"] and driver_expected(context):
            # The path unit waits for the next change of the modules; a driver that is there already has no spec.
            plan["units"].append({"name": "nvidia-cdi-refresh.service", "state": "started"})


def _removal(context: Context, plan: dict[str, Any]) -> dict[str, Any]:
    """Take the runtime out of its configuration first, then the packages."""
    owner = plan["owner"]
    installed = [name for name in package_names(context) if name in context.packages]
    text = context.file_text(paths.CONTAINERD_CONFIG) or ""
    if tomltext.block_of(text) is not None:
        plan["files"] += context.want_file(paths.CONTAINERD_CONFIG, containerd.remove(text))
        plan["restart"] = [{"name": runtimes.UNITS["containerd"], "state": "restarted"}]
    drop_in = context.file_text(paths.CONTAINERD_DROP_IN)
    if drop_in is not None and drop_in.startswith(runtimes.mark()):
        plan["remove_files"].append(paths.CONTAINERD_DROP_IN)
        plan["restart"] = [{"name": runtimes.UNITS["containerd"], "state": "restarted"}]
    if (context.file_text(paths.CRIO_DROP_IN) or "").startswith(runtimes.mark()):
        plan["remove_files"].append(paths.CRIO_DROP_IN)
        plan["restart"] = [{"name": runtimes.UNITS["crio"], "state": "restarted"}]
    document, _why = runtimes.read_json(context.file_text(paths.DOCKER_CONFIG))
    name = context.settings["gpu_container_toolkit_runtime_name"]
    known = document.get("runtimes")
    if isinstance(known, dict) and known.pop(name, None) is not None:
        if document.get("default-runtime") == name:
            del document["default-runtime"]
        plan["files"] += context.want_file(paths.DOCKER_CONFIG, json.dumps(document, indent=4) + "\n")
        plan["restart"] = [{"name": runtimes.UNITS["docker"], "state": "reloaded"}]
    plan["release"] = [n for n in installed if context.packages[n]["hold"]]
    plan["packages"]["remove"] = installed
    plan["absent"] = context.unwanted(paths.TOOLKIT_SOURCE_APT, paths.TOOLKIT_SOURCE_DNF)
    plan["absent"] += [
        p for p in (paths.TOOLKIT_KEYRING_APT, paths.TOOLKIT_KEYRING_DNF) if p in context.probe["keyrings"]
    ]
    if owner in runtimes.RANCHER_UNITS:
        runtimes.forget_rancher(context, plan, owner, bool(installed))
    if (plan["restart"] or plan["afterwards"]) and risky(context):
        values = {"what": "restarting the container runtime", "holders": ", ".join(context.workloads)}
        plan["problems"].append(("GF750", values))
    return plan
