"""What is left to do for the driver of a host. Pure: the same reading and variables give the same plan."""

from __future__ import annotations

from gpufleet.catalog.packages import (
    PackageNames,
    build_packages,
    keyring_packages,
    stream_module,
    version_lock,
)
from gpufleet.catalog.platforms import runfile_url
from gpufleet.hosts import driver_config as config
from gpufleet.hosts import fabric, packages, paths, sources
from gpufleet.hosts.context import Answer, Context, kernel_packages
from gpufleet.hosts.sources import Repository
from gpufleet.hosts.work import DriverWork, FoundPackage, Problem, Request, Runfile, UnitChange, WantedPackage

# Order matters: each one is in use by the next.
UNLOAD = ("nvidia_drm", "nvidia_modeset", "nvidia_peermem", "nvidia_fs", "gdrdrv", "nvidia_uvm", "nvidia")
LOAD = ("nvidia", "nvidia_uvm")
DAEMONS = (
    "nvidia-dcgm.service",
    "nvidia-mig-manager.service",
    "nvidia-imex.service",
    "nvidia-fabricmanager.service",
    config.PERSISTENCED_UNIT,
)
_CODES = {"driver": "GF736", "fabric": "GF737", "headers": "GF722", "build": "GF762", "toolkit": "GF736",
          "mig": "GF736"}  # fmt: skip


def plan_driver(context: Context, *, exchange: bool = True) -> DriverWork:
    """The driver's plan: problems, files, keys, packages, holds, units, modules, reasons for a reboot.

    `exchange` False: a loaded module could not be unloaded, so that only a reboot brings another one.
    """
    settings, target = context.settings, context.target
    plan = DriverWork(repair=bool(context.probe.system.unfinished), kernels=kernel_packages(context.probe))
    if settings.gpu_driver_state == "absent":
        return _removal(context, plan)
    if settings.gpu_driver_method == "none":
        return plan
    plan.target = {"branch": target.branch, "version": target.version, "flavour": target.flavour}
    refused = [p for p in target.problems if p.code != "GF710"] + packages.mixed_origins(context)
    if context.system.refused:
        values = {"platform": f"{context.system.id} {context.system.version}", "reason": context.system.refused}
        refused.append(Problem("GF701", values))
    if refused:
        plan.problems = refused
        return plan
    if settings.gpu_driver_method == "runfile":
        _runfile(context, plan)
    else:
        _repository(context, plan)
        _packages(context, plan)
    config.configuration(context, plan)
    _modules(context, plan, exchange)
    return plan


def headers_want(context: Context) -> list[WantedPackage]:
    """The headers of the running kernel when they are not there; they come from the host's own repositories."""
    if context.probe.kernel.headers:
        return []
    wanted = context.system.headers(context.probe.kernel.release)
    have = {name: row.version.rpartition(":")[2] for name, row in context.packages.items()}
    missing = [(n, v) for n, v in wanted if n not in have or v not in (None, have[n])]
    return [WantedPackage(name, version, "", "headers") for name, version in missing]


def build_want(context: Context) -> list[WantedPackage]:
    """What builds the module, where the driver's packages come from another repository than it; and dnf's locks."""
    settings, system = context.settings, context.system
    runfile = settings.gpu_driver_method == "runfile"
    manager = system.manager if settings.gpu_driver_kmod == "dkms" else ""
    names = build_packages(manager, runfile=runfile, tables=context.tables)
    lock = version_lock(system.key, context.tables)
    if settings.gpu_driver_hold and not runfile and lock:
        names.append(lock)
    return [WantedPackage(name, None, "", "build") for name in names if name not in context.packages]


def repository_of(context: Context) -> Repository:
    """The driver's repository."""
    return sources.repository("cuda", context)


def row_of(context: Context) -> PackageNames | None:
    """The row of packages.yaml for the wanted branch."""
    return packages.names_for(context.target.branch, context.system, context.settings.gpu_driver_method)


def _repository_id(context: Context) -> str:
    own = context.settings.gpu_driver_method == "distro" or not context.settings.gpu_repo_manage
    return "" if own else "cuda"


def wanted_packages(context: Context) -> list[WantedPackage]:
    """Every package to ask for: driver, fabric, headers, extras."""
    settings, version, repository = context.settings, context.target.version, _repository_id(context)
    row = row_of(context)
    want = _driver_want(context, row, repository) if row else []
    if row is None or not want:
        return []
    if settings.gpu_driver_persistenced:
        want.append(WantedPackage(packages.PERSISTENCED, version, repository, "driver", optional=True))
    want += fabric.want(context, row, repository)
    want += [WantedPackage(name, version, repository, "driver") for name in settings.gpu_driver_extra_packages]
    siblings = _siblings(context, {item.name for item in want}, repository)
    return want + siblings + headers_want(context) + build_want(context)


def _driver_want(context: Context, row: PackageNames, repository: str) -> list[WantedPackage]:
    """The driver's own packages. Signed modules are versioned by the kernel, not by the driver."""
    target, kernel = context.target, context.probe.kernel.release
    templates = packages.driver_packages(row, target.flavour or "open", context.settings.gpu_driver_components)
    return [
        WantedPackage(
            packages.filled(name, target.branch, target.version, kernel),
            None if packages.KERNEL_FLAVOUR in name else target.version, repository, "driver",
        )
        for name in templates
    ]  # fmt: skip


def _siblings(context: Context, names: set[str], repository: str) -> list[WantedPackage]:
    """dnf: installed packages of the driver, to be moved with it under their own names where the repository has them.

    Their names carry no branch, so nothing else tells one that stays from one that is left over.
    """
    if context.system.manager != "dnf":
        return []
    version = context.target.version
    skipped = {*names, *packages.other_kmods(context), *packages.other_flavour(context)}
    moved = sorted(n for n, v in context.driver_family.items() if n not in skipped and v != version)
    return [WantedPackage(name, version, repository, "driver", optional=True) for name in moved]


def resolve_request(context: Context) -> Request | None:
    """The question that the repositories have to answer, None when everything wanted is installed."""
    want = wanted_packages(context)
    # Without the library something that the named packages pull in is gone; only the repository knows what that is.
    if context.probe.library and all(context.installed(item.name, item.version) or item.optional for item in want):
        return None
    repo = repository_of(context)
    if repo.url is None or not any(item.repository for item in want):
        return Request(tuple(want))
    return Request(tuple(want), sources.index_of(repo, context.system), sources.urls(repo, context))


def _repository(context: Context, plan: DriverWork) -> None:
    """Source, key, and what stands in their way."""
    settings, system = context.settings, context.system
    if settings.gpu_driver_method != "cuda_repo" or not settings.gpu_repo_manage:
        return
    repo = repository_of(context)
    if repo.url is None:
        routes = ", ".join(system.routes) or "none"
        values = {"method": settings.gpu_driver_method, "platform": system.key, "note": repo.why, "routes": routes}
        plan.problems.append(Problem("GF703", values))
        return
    if not sources.key_installed(repo, context):
        if not repo.key_known:
            plan.problems.append(Problem("GF738", {"repository": repo.url, "variable": "gpu_driver_repo_key"}))
            return
        plan.keyrings = [sources.keyring(repo)]
    plan.files += context.want_file(repo.source_path, repo.source_text())
    plan.absent += sources.foreign_sources(repo, context.probe)
    plan.problems += sources.shared_problems(repo, context.probe)
    plan.absent += [file for file, _key, _day, alone in sources.retired_keyrings(context) if alone]
    plan.remove += sorted(keyring_packages(context.tables) & set(context.packages))


def _packages(context: Context, plan: DriverWork) -> None:
    """The exact set: what to install, what is left over, what to hold."""
    target, settings = context.target, context.settings
    row = row_of(context)
    if row is None or not _driver_want(context, row, ""):
        offered = "no package of this flavour on this platform"
        values = {"flavour": target.flavour, "branch": target.branch, "offered": offered}
        plan.problems.append(Problem("GF714", values))
        return
    request = resolve_request(context)
    names: set[str] = set()
    if request:
        answer = context.answer(request.want)
        if answer is None:
            plan.resolve = request
        else:
            plan.problems += unresolved(context, answer)
            names = {item.name for item in answer.packages}
            plan.install = [item for item in answer.packages if not _same(context, item)]
            plan.streams = _streams(context)
    if context.system.manager == "apt":
        plan.files += config.pins(context)
    present = sorted(set(context.driver_family.values()) - {str(target.version)})
    if present and context.in_use:
        plan.problems.append(Problem("GF756", {"installed": ", ".join(present), "wanted": target.version}))
    stale = {n for n, v in context.driver_family.items() if v != target.version and n not in names}
    stale |= {*packages.stale_pins(context), *packages.other_kmods(context), *packages.other_flavour(context)}
    if not plan.resolve:
        plan.remove += sorted(stale)
        # apt does not let a held package go for one that replaces it, which is what happens where names change (590).
        plan.release = sorted({*context.held(stale), *context.locked(plan.install)})
    if settings.gpu_driver_hold:
        held = {n for n, v in context.driver_family.items() if v == target.version} | names
        held -= {item.name for item in plan.install if item.part in ("headers", "build")}
        plan.hold = sorted(n for n in held if context.unheld(n, plan.install))


def _same(context: Context, item: FoundPackage) -> bool:
    row = context.packages.get(item.name)
    return row is not None and (row.state, row.version) == ("installed", item.version)


def _streams(context: Context) -> list[str]:
    """The module stream to enable first, on systems that have streams."""
    if not context.system.modular:
        return []
    suffix = "open" if context.target.flavour == "open" else "dkms"
    return [f"{stream_module(context.tables)}:{context.target.branch}-{suffix}"]


def unresolved(context: Context, answer: Answer) -> list[Problem]:
    """Problems in the repositories' answer: addresses that fail, packages that do not exist."""
    problems = [Problem("GF735", {"url": error.url, "answer": error.answer}) for error in answer.errors]
    asked = {item.name: item for item in answer.request}
    for part, code in _CODES.items():
        missing = [name for name in answer.missing if name in asked and asked[name].part == part]
        if not missing:
            continue
        found = {v for name in missing for v in answer.available.get(name, ())}
        available = sorted(found, key=context.system.order)
        listed = ", ".join(asked[name].words for name in missing)
        if part == "headers":
            problems.append(Problem(code, {"kernel": context.probe.kernel.release, "packages": listed}))
            continue
        values = {"missing": listed, "available": ", ".join(available) or "none", "version": context.target.version}
        problems.append(Problem(code, values))
    return problems


def installer_url(template: str, version: str, machine: str) -> str:
    """The address of an installer file."""
    return template.replace("<version>", version).replace("<machine>", machine)


def _runfile(context: Context, plan: DriverWork) -> None:
    """The installer file: where it comes from, its checksum, its flags."""
    settings, target, machine = context.settings, context.target, context.system.architecture
    own = settings.gpu_driver_runfile_url or (settings.profile.runfile_url if settings.profile else "")
    url = installer_url(own or runfile_url(context.tables), str(target.version), machine)
    if settings.gpu_driver_persistenced:
        plan.files += context.want_file(paths.PERSISTENCED_UNIT, config.PERSISTENCED_TEXT)
    if context.probe.library == target.version and context.probe.runfile:
        return
    if not settings.gpu_driver_runfile_sha256:
        plan.problems.append(Problem("GF758", {"url": url}))
        return
    kind = "kernel-open" if target.flavour == "open" else "kernel"
    plan.runfile = Runfile(
        url=url,
        checksum=f"sha256:{settings.gpu_driver_runfile_sha256}",
        path=f"/var/cache/NVIDIA-Linux-{machine}-{target.version}.run",
        arguments=("--silent", "--dkms", f"-m={kind}"),
        replaces=context.probe.runfile,
    )
    want = headers_want(context) + build_want(context)
    if want:
        answer = context.answer(want)
        if answer is None:
            plan.resolve = Request(tuple(want))
        else:
            plan.problems += unresolved(context, answer)
            plan.install = list(answer.packages)


def _modules(context: Context, plan: DriverWork, exchange: bool) -> None:
    """Load the module, exchange a loaded one, or say that a reboot is required."""
    target, driver = context.target, context.probe.driver
    if not context.settings.gpu_driver_load or not context.gpus:
        return
    holders = config.blockers(context)
    if holders:
        plan.reboot.append(f"module {holders[0]} holds the GPUs")
        return
    if driver and (driver.version, driver.flavour) != (target.version, target.flavour):
        if context.in_use or not exchange:
            why = "the host is in use" if context.in_use else "it cannot be unloaded"
            plan.reboot.append(f"driver {driver.version} is loaded, {target.version} is wanted, and {why}")
            return
        plan.unload = [name for name in UNLOAD if name in context.modules]
        plan.stop = stopped_daemons(context)
        plan.load = list(LOAD)
        running = {unit.name for unit in plan.units}
        again = [unit.name for unit in reversed(plan.stop) if unit.name not in running]
        plan.units += [UnitChange(name, state="started") for name in again]
        return
    plan.load = [name for name in LOAD if name not in context.modules]


def stopped_daemons(context: Context) -> list[UnitChange]:
    """The driver's daemons that run now, in the order to stop them."""
    return [UnitChange(name, state="stopped") for name in DAEMONS if context.probe.active(name)]


def _removal(context: Context, plan: DriverWork) -> DriverWork:
    """Take the driver away: bare package names, our files, the module when nobody uses it."""
    fabrics = {name for name in fabric.unbound_names(context) if name in context.packages}
    remove = sorted({*context.driver_family, *packages.pins(context), *fabrics})
    if context.in_use and (remove or context.probe.runfile):
        values = {"what": "removing the driver", "holders": ", ".join(context.workloads) or "the node"}
        plan.problems.append(Problem("GF750", values))
        return plan
    plan.release = context.held(remove)
    plan.remove = remove
    plan.absent = context.unwanted(
        paths.CUDA_SOURCE_APT, paths.CUDA_SOURCE_DNF, paths.PREFERENCES, paths.UNATTENDED, paths.BLACKLIST,
        paths.MODULE_OPTIONS, paths.MODULES_LOAD, paths.CUDA_KEYRING_APT, paths.CUDA_KEYRING_DNF,
    )  # fmt: skip
    if context.probe.runfile:
        plan.runfile = Runfile(uninstall=True)
    if context.probe.driver:
        plan.stop = stopped_daemons(context)
        plan.unload = [name for name in UNLOAD if name in context.modules]
    if paths.PERSISTENCED_UNIT in context.probe.files:
        plan.absent.append(paths.PERSISTENCED_UNIT)
        plan.stop.append(UnitChange(config.PERSISTENCED_UNIT, enabled=False))
    if context.probe.kernel.initramfs_tool and paths.BLACKLIST in plan.absent:
        plan.initramfs = context.system.initramfs
    return plan
