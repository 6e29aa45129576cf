"""What is left to do for the container toolkit of a host: packages, its own configuration, the container runtime."""

from __future__ import annotations

import json
from typing import Any

from gpufleet.catalog.packages import ended_packages, toolkit_packages
from gpufleet.catalog.versions import at_least, upstream
from gpufleet.hosts import cdi, containerd, paths, runtime, sources, tomltext
from gpufleet.hosts.context import Context
from gpufleet.hosts.driver import unresolved
from gpufleet.hosts.driver_config import blockers
from gpufleet.hosts.work import Problem, Request, ToolkitWork, UnitChange, WantedPackage

#: The package that the others come with, and whose version is the toolkit's.
PACKAGE = "nvidia-container-toolkit"
JIT_CDI_SINCE = "1.18.0"  # mode auto resolves to CDI from here on


def version_of(context: Context) -> str:
    """The wanted version, such as 1.20.0; the catalogue's when the variable is empty."""
    return upstream(context.settings.gpu_container_toolkit_version or toolkit_packages(context.tables)[0].version)


def package_names(context: Context) -> list[str]:
    """The toolkit's packages, which depend on each other exactly."""
    return [row.package for row in toolkit_packages(context.tables)]


def risky(context: Context) -> bool:
    """Whether a daemon-reload or a restart of the runtime would take GPUs away from running containers."""
    if context.settings.gpu_node_drained or not context.workloads:
        return False
    mode, row = context.settings.gpu_container_toolkit_mode, context.packages.get(PACKAGE)
    installed = upstream(row.version) if row else version_of(context)
    return mode == "legacy" or (mode == "auto" and not at_least(installed, JIT_CDI_SINCE))


def plan_toolkit(context: Context) -> ToolkitWork:
    """The toolkit's plan. `files` are checked after they were written and put back when the runtime refuses them."""
    plan = ToolkitWork(owner=runtime.owner_of(context))
    if context.settings.gpu_container_toolkit_state == "absent":
        return _removal(context, plan)
    if not plan.owner:
        plan.problems.append(Problem("GF744", {"found": ", ".join(runtime.owners_found(context))}))
        return plan
    _packages(context, plan)
    _configuration(context, plan)
    plan.problems += cdi.problems(context)
    runtime.plan_runtime(context, plan)
    if (plan.restart or plan.install or plan.remove or plan.resolve) and risky(context):
        plan.problems.append(_disturbing(context))
    return plan


def _disturbing(context: Context) -> Problem:
    holders = ", ".join(context.workloads)
    return Problem("GF750", {"what": "restarting the container runtime", "holders": holders})


def repository_of(context: Context) -> sources.Repository:
    """The toolkit's repository."""
    return sources.repository("container-toolkit", context)


def wanted_packages(context: Context) -> list[WantedPackage]:
    """The packages to ask for."""
    repository = "container-toolkit" if context.settings.gpu_repo_manage else ""
    version = version_of(context)
    return [WantedPackage(name, version, repository, "toolkit") for name in package_names(context)]


def resolve_request(context: Context) -> Request | None:
    """The question to the repository, None when every package is there at its version."""
    want = tuple(wanted_packages(context))
    if all(context.installed(item.name, item.version) for item in want):
        return None
    if not context.settings.gpu_repo_manage:
        return Request(want)
    repo = repository_of(context)
    return Request(want, sources.index_of(repo, context.system), sources.urls(repo, context))


def _packages(context: Context, plan: ToolkitWork) -> None:
    if context.settings.gpu_repo_manage:
        repo = repository_of(context)
        if not sources.key_installed(repo, context):
            if repo.key_known:
                plan.keyrings = [sources.keyring(repo)]
            else:
                values = {"repository": repo.url, "variable": "gpu_container_toolkit_repo_key"}
                plan.problems.append(Problem("GF738", values))
        plan.sources = context.want_file(repo.source_path, repo.source_text())
        plan.absent = sources.foreign_sources(repo, context.probe)
        plan.problems += sources.shared_problems(repo, context.probe)
    request = resolve_request(context)
    names: list[str] = []
    if request:
        answer = context.answer(request.want)
        if answer is None:
            plan.resolve = request
        else:
            plan.problems += unresolved(context, answer)
            plan.install = list(answer.packages)
            names = [item.name for item in answer.packages]
    plan.remove = [name for name in ended_packages(context.tables) if name in context.packages]
    plan.release = context.locked(plan.install)
    if context.settings.gpu_container_toolkit_hold:
        plan.hold = [n for n in names or package_names(context) if context.unheld(n, plan.install)]


def driver_expected(context: Context) -> bool:
    """Whether a driver is loaded, or will be when the role gpu_driver has done its work."""
    if context.probe.driver:
        return True
    settings = context.settings
    return bool(settings.wants_driver and settings.gpu_driver_load and context.gpus and not blockers(context))


def _configuration(context: Context, plan: ToolkitWork) -> None:
    """The toolkit's own file: policy knobs, by single keys, the rest stays as it is."""
    settings = context.settings
    text = context.file_text(paths.TOOLKIT_CONFIG) or ""
    document, why = tomltext.parse(text)
    if why:
        plan.problems.append(Problem("GF747", {"file": paths.TOOLKIT_CONFIG, "reason": why}))
        return
    wanted: list[tuple[list[str], str, Any]] = [
        (
            [],
            "accept-nvidia-visible-devices-envvar-when-unprivileged",
            settings.gpu_container_toolkit_unprivileged_envvar,
        ),
        ([], "accept-nvidia-visible-devices-as-volume-mounts", settings.gpu_container_toolkit_volume_mounts),
        (["nvidia-container-cli"], "no-cgroups", settings.gpu_container_toolkit_no_cgroups),
        (["nvidia-container-runtime"], "mode", settings.gpu_container_toolkit_mode),
    ]
    for table, key, value in wanted:
        section = document
        for part in table:
            section = section.get(part, {})
        if section.get(key) != value:
            text = tomltext.set_key(text, table, key, value)
    plan.files += context.want_file(paths.TOOLKIT_CONFIG, text)
    coming = bool(plan.resolve or plan.install)
    if not at_least(version_of(context), JIT_CDI_SINCE):
        return
    if not settings.gpu_container_toolkit_cdi_refresh:
        plan.units += context.want_unit("nvidia-cdi-refresh.path", enabled=False, active=False, coming=coming)
        plan.units += context.want_unit("nvidia-cdi-refresh.service", enabled=False, active=None, coming=coming)
    else:
        # Without a loaded driver the unit's service fails until systemd gives the unit up.
        active = True if context.probe.driver else None
        plan.units += context.want_unit("nvidia-cdi-refresh.path", active=active, coming=coming)
        if not context.probe.runtime.cdi_specs and driver_expected(context):
            # The path unit waits for the next change of the modules; a driver that is there already has no spec.
            plan.units.append(UnitChange("nvidia-cdi-refresh.service", state="started"))


def _removal(context: Context, plan: ToolkitWork) -> ToolkitWork:
    """Take the runtime out of its configuration first, then the packages."""
    owner = plan.owner
    installed = [name for name in package_names(context) if name in context.packages]
    text = context.file_text(paths.CONTAINERD_CONFIG) or ""
    if tomltext.block_of(text) is not None:
        plan.files += context.want_file(paths.CONTAINERD_CONFIG, containerd.remove(text))
        plan.restart = [UnitChange(runtime.UNITS["containerd"], state="restarted")]
    drop_in = context.file_text(paths.CONTAINERD_DROP_IN)
    if drop_in is not None and drop_in.startswith(runtime.mark()):
        plan.remove_files.append(paths.CONTAINERD_DROP_IN)
        plan.restart = [UnitChange(runtime.UNITS["containerd"], state="restarted")]
    if (context.file_text(paths.CRIO_DROP_IN) or "").startswith(runtime.mark()):
        plan.remove_files.append(paths.CRIO_DROP_IN)
        plan.restart = [UnitChange(runtime.UNITS["crio"], state="restarted")]
    document, _why = runtime.read_json(context.file_text(paths.DOCKER_CONFIG))
    name = context.settings.gpu_container_toolkit_runtime_name
    known = document.get("runtimes")
    if isinstance(known, dict) and known.pop(name, None) is not None:
        if document.get("default-runtime") == name:
            del document["default-runtime"]
        plan.files += context.want_file(paths.DOCKER_CONFIG, json.dumps(document, indent=4) + "\n")
        plan.restart = [UnitChange(runtime.UNITS["docker"], state="reloaded")]
    plan.release = context.held(installed)
    plan.remove = installed
    plan.absent = context.unwanted(
        paths.TOOLKIT_SOURCE_APT, paths.TOOLKIT_SOURCE_DNF, paths.TOOLKIT_KEYRING_APT, paths.TOOLKIT_KEYRING_DNF
    )
    if owner in runtime.RANCHER_UNITS:
        runtime.forget_rancher(context, plan, owner, bool(installed))
    if (plan.restart or plan.afterwards) and risky(context):
        plan.problems.append(_disturbing(context))
    return plan
