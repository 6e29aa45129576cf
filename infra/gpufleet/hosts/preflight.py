"""Everything that is wrong with a host, in one list, before anything is changed."""

from __future__ import annotations

import re

from gpufleet.catalog.drivers import cuda_min_driver
from gpufleet.catalog.gpus import gpu_models
from gpufleet.catalog.hosts import (
    blacklisted_modules,
    kernel_log,
    python_floors,
    unbounded_faults,
)
from gpufleet.catalog.known_bad import Place, known_to_fail
from gpufleet.catalog.packages import ended_packages
from gpufleet.catalog.platforms import repository_keys
from gpufleet.catalog.versions import at_least
from gpufleet.findings.finding import Finding, Severity
from gpufleet.hosts import driver, driver_config, fabric, health, mig, packages, runtime_rules, sources, toolkit
from gpufleet.hosts.context import Context
from gpufleet.hosts.report import finding
from gpufleet.hosts.runtime import owner_of
from gpufleet.hosts.work import Problem, Request

MINIMUM_CORE = "2.19"


def findings(context: Context) -> list[Finding]:
    """All findings about a host, in no order. A rule that cannot be decided on this host says nothing."""
    problems: list[Problem] = []
    for rule in (
        _controller, _platform, _hardware, _declared, _target, _cuda, _known_bad, _kernel, _secure_boot,
        _foreign_modules, _kernel_log, _hmm, _packages, _repositories, _busy, _space, _driver,
        runtime_rules.rules, mig.problems_of, _imex,
    ):  # fmt: skip
        problems += rule(context)
    return [finding(problem) for problem in problems]


def resolve_request(context: Context) -> Request | None:
    """One question for everything that preflight wants to know of the repositories; None when it is all there."""
    settings = context.settings
    if context.system.refused or not settings.gpu_preflight_check_repositories:
        return None
    parts: list[Request | None] = []
    clean = all(problem.code == "GF710" for problem in context.target.problems)
    if settings.wants_packages and clean and driver.row_of(context):
        parts.append(driver.resolve_request(context))
    if settings.gpu_container_toolkit_state == "present" and owner_of(context):
        parts.append(toolkit.resolve_request(context))
    asked = [part for part in parts if part]
    return sum(asked[1:], asked[0]) if asked else None


def _controller(context: Context) -> list[Problem]:
    core = context.ansible_core
    problems: list[Problem] = []
    if core and not at_least(core, MINIMUM_CORE):
        problems.append(Problem("GF721", {"core": core, "minimum": MINIMUM_CORE}))
    line = ".".join(core.split(".")[:2])
    floor = python_floors(context.tables).get(line)
    python = context.probe.system.python
    if floor and not at_least(python, floor):
        problems.append(Problem("GF720", {"python": python, "core": line, "minimum": floor}))
    return problems


def _platform(context: Context) -> list[Problem]:
    system, settings = context.system, context.settings
    name = f"{system.id} {system.version}"
    if system.refused:
        return [Problem("GF701", {"platform": name, "reason": system.refused})]
    problems: list[Problem] = []
    why, routes = system.no_tree, ", ".join(system.routes)
    if system.row is None or why:
        problems.append(Problem("GF702", {"platform": name, "note": why, "routes": routes}))
    method = settings.gpu_driver_method
    own = method == "cuda_repo" and (driver.repository_of(context).url or not settings.gpu_repo_manage)
    if not settings.wants_driver or own:
        return problems
    if method not in system.routes:
        note = why or "no such route in the table"
        problems.append(Problem("GF703", {"method": method, "platform": name, "routes": routes, "note": note}))
    elif method == "cuda_repo":
        problems.append(Problem("GF703", {"method": method, "platform": system.key, "routes": routes, "note": why}))
    return problems


def _hardware(context: Context) -> list[Problem]:
    problems: list[Problem] = []
    if not context.gpus and context.settings.wants_driver:
        problems.append(Problem("GF718", {}))
    for gpu in context.gpus:
        if gpu.model is None:
            problems.append(Problem("GF705", {"slot": gpu.slot, "device": f"10de:{gpu.device}"}))
    return problems


def _declared(context: Context) -> list[Problem]:
    """The GPUs that the stack file promises."""
    settings = context.settings
    model, count = settings.gpu_preflight_gpu_model, settings.gpu_preflight_gpu_count
    known = (m.id for m in gpu_models(context.tables).values() if model in (m.id, *m.aliases))
    identity = next(known, model)
    names = [gpu.name for gpu in context.gpus]
    wrong_model = bool(model) and any(name != identity for name in names if not name.startswith("10de:"))
    wrong_count = bool(count) and len(names) != count
    if not names or not (wrong_model or wrong_count):
        return []
    wanted = " ".join(part for part in (f"{count} x" if count else "", model) if part)
    found = ", ".join(f"{names.count(name)} x {name}" for name in sorted(set(names)))
    return [Problem("GF719", {"wanted": wanted, "found": found})]


def _target(context: Context) -> list[Problem]:
    return list(context.target.problems) if context.settings.wants_driver else []


def _cuda(context: Context) -> list[Problem]:
    """The driver that the team's CUDA images need: the version's own driver, or the floor of its major version."""
    cuda, version = context.settings.gpu_preflight_cuda_target, context.target.version
    if not cuda or not version or not context.settings.wants_driver:
        return []
    floor = cuda_min_driver(context.tables).get(int(cuda.split(".", maxsplit=1)[0]))
    if floor is None or at_least(version, floor):
        return []
    return [Problem("GF715", {"cuda": cuda, "minimum": floor, "version": version})]


def _known_bad(context: Context) -> list[Problem]:
    settings, problems = context.settings, list[Problem]()
    builds = settings.gpu_driver_method in ("cuda_repo", "runfile") and settings.gpu_driver_kmod != "precompiled"
    place = Place(
        gpus=frozenset(gpu.name for gpu in context.gpus), modules=context.target.flavour,
        mig="partial" if settings.gpu_mig_layout else None, kernel=context.probe.kernel.release,
        runtime=owner_of(context), packages=frozenset(context.packages),
        uses=frozenset({"builds-module"} if builds else ()),
    )  # fmt: skip
    wanted = {"driver": context.target.version if settings.wants_driver else None}
    if settings.gpu_container_toolkit_state == "present":
        wanted["container-toolkit"] = toolkit.version_of(context)
    for component, version in wanted.items():
        for row in known_to_fail(component, version or "", place, context.tables):
            values = {"component": component, "version": version, "reason": row.reason, "when": row.when,
                      "id": row.id, "source": row.source, "remedy": row.remedy}  # fmt: skip
            problems.append(Problem("GF716" if row.severity == "error" else "GF717", values))
    return problems


def _kernel(context: Context) -> list[Problem]:
    """Headers and compiler for a module that is built on the host."""
    kernel, problems = context.probe.kernel, list[Problem]()
    if not context.settings.wants_driver:
        return []
    want = driver.headers_want(context)
    answer = context.answer(want) if want else None
    if answer and answer.missing:
        wanted = [item.words for item in want if item.name in answer.missing]
        problems.append(Problem("GF722", {"kernel": kernel.release, "packages": ", ".join(wanted)}))
    if kernel.compiler and kernel.gcc and kernel.compiler != kernel.gcc:
        problems.append(Problem("GF723", {"kernel": kernel.compiler, "here": kernel.gcc}))
    return problems


def _secure_boot(context: Context) -> list[Problem]:
    """An enrolled key, or modules that the distribution signed."""
    kernel = context.probe.kernel
    if not context.settings.wants_driver or not kernel.secure_boot or any(kernel.mok.values()):
        return []
    row = driver.row_of(context) if context.settings.gpu_driver_method == "distro" else None
    if row and row.signed_modules:
        return []
    detail = "no key of DKMS is enrolled" if kernel.mok else "DKMS has no key yet"
    return [Problem("GF724", {"detail": detail})]


def _foreign_modules(context: Context) -> list[Problem]:
    """Another driver holds the GPUs. What is on the blacklist goes with a reboot, the rest is the owner's decision."""
    if not context.settings.wants_driver:
        return []
    problems: list[Problem] = []
    blacklist = {row.module for row in blacklisted_modules(context.tables)}
    if "nouveau" in context.modules:
        problems.append(Problem("GF725", {}))
    for gpu in context.gpus:
        if gpu.driver in (None, "nvidia", "nouveau"):
            continue
        if gpu.driver in blacklist:
            remedy, severity = "gpu_driver blacklists it; a reboot is required.", Severity.WARNING
        else:
            remedy, severity = "Release the GPU from it, or take the host out of the pool.", Severity.ERROR
        values = {"slot": gpu.slot, "driver": gpu.driver, "remedy": remedy, "severity": severity}
        problems.append(Problem("GF726", values))
    return problems


def _kernel_log(context: Context) -> list[Problem]:
    """One finding for each kind of line."""
    rows = {row.id: row for row in kernel_log(context.tables)}
    newest = {hit.id: hit.line for hit in context.probe.kernel.log if hit.id in rows}
    return [Problem("GF727", {"line": line, "hint": rows[name].hint}) for name, line in sorted(newest.items())]


def _hmm(context: Context) -> list[Problem]:
    """Faults that no source bounds by version or kernel: said once, unless a workaround is in place."""
    version = context.target.version
    if not context.settings.wants_driver or not version or not context.gpus:
        return []
    problems: list[Problem] = []
    for row in unbounded_faults(context.tables):
        options = driver_config.module_options(context).get(row.module, "")
        worked_around = row.cmdline in context.probe.kernel.cmdline.split() or row.options in options
        if at_least(version, str(row.from_branch)) and not worked_around:
            problems.append(Problem("GF728", {"version": version}))
    return problems


def _packages(context: Context) -> list[Problem]:
    """Drivers of another origin, and leftovers that the role clears away."""
    problems: list[Problem] = []
    method = context.settings.gpu_driver_method
    if context.settings.gpu_driver_state == "absent":
        return []
    problems += packages.mixed_origins(context)
    if method == "none" and (context.driver_family or context.probe.runfile or context.probe.driver):
        version = context.loaded_version or context.probe.library or "packages"
        problems.append(Problem("GF731", {"found": f"driver {version}"}))
    problems += health.mismatch(context, "GF732")
    others = packages.other_kmods(context)
    if others:
        problems.append(Problem("GF742", {"packages": ", ".join(others), "kept": context.settings.gpu_driver_kmod}))
    ended = [name for name in ended_packages(context.tables) if name in context.packages]
    if ended:
        problems.append(Problem("GF752", {"packages": ", ".join(ended)}))
    blacklist = context.probe.system.unattended_blacklist
    if "unattended-upgrades" in context.packages and not any(re.search(p, "nvidia-open") for p in blacklist):
        problems.append(Problem("GF759", {}))
    return problems


def _repositories(context: Context) -> list[Problem]:
    """Keys, addresses, exact sets, allowed hosts."""
    settings, problems = context.settings, list[Problem]()
    if settings.profile is None:
        known = ", ".join(sorted(settings.gpu_mirror_profiles)) or "none"
        return [Problem("GF757", {"profile": settings.gpu_mirror_profile, "known": known})]
    repo = driver.repository_of(context)
    managed = context.settings.wants_driver and settings.gpu_driver_method == "cuda_repo" and settings.gpu_repo_manage
    removed: list[str] = []
    if managed and repo.url:
        problems += _sha1(context, repo)
        removed = sources.foreign_sources(repo, context.probe)
        problems += sources.shared_problems(repo, context.probe)
        if not repo.key_known and not sources.key_installed(repo, context):
            problems.append(Problem("GF738", {"repository": repo.url, "variable": "gpu_driver_repo_key"}))
    if settings.gpu_container_toolkit_state == "present" and settings.gpu_repo_manage:
        kit = toolkit.repository_of(context)
        removed += sources.foreign_sources(kit, context.probe)
        problems += sources.shared_problems(kit, context.probe)
        if not kit.key_known and not sources.key_installed(kit, context):
            problems.append(Problem("GF738", {"repository": kit.url, "variable": "gpu_container_toolkit_repo_key"}))
    for file, key, day, _alone in sources.retired_keyrings(context):
        problems.append(Problem("GF734", {"file": file, "key": key, "retired": day}))
    for file, host in sources.outside_hosts(settings, context.probe, removed):
        problems.append(Problem("GF741", {"file": file, "host": host}))
    request = resolve_request(context)
    answer = context.answer(request.want) if request else None
    if answer:
        # Headers have a rule of their own.
        problems += [p for p in driver.unresolved(context, answer) if p.code != "GF722"]
    return problems


def _sha1(context: Context, repo: sources.Repository) -> list[Problem]:
    """apt with sqv refuses keys whose own signature is SHA-1."""
    system = context.probe.system
    if not system.sqv:
        return []
    if context.settings.gpu_preflight_allow_sha1_key and system.crypto_policy:
        return []
    end = next(row.sha1_end for row in repository_keys(context.tables) if row.sha1 and row.sha1_end)
    if sources.key_installed(repo, context):
        weak = any(key.sha1_only for key in context.probe.keyrings[repo.keyring_path])
    else:
        weak = repo.sha1_end is not None
    if not weak or system.date < end:
        return []
    key = (*sources.wanted_keys(repo, context), "the key")[0]
    return [Problem("GF733", {"key": key, "directory": repo.url, "end": end})]


def _busy(context: Context) -> list[Problem]:
    system, problems = context.probe.system, list[Problem]()
    if system.lock:
        problems.append(Problem("GF739", {"what": f"process {system.lock} holds the lock of dpkg"}))
    if system.cloud_init_running:
        problems.append(Problem("GF739", {"what": "cloud-init has not finished"}))
    if system.unfinished:
        problems.append(Problem("GF740", {"packages": ", ".join(system.unfinished[:10])}))
    return problems


def _space(context: Context) -> list[Problem]:
    """Room for a driver and its build: where libraries, sources and modules go."""
    wanted = context.settings.gpu_preflight_min_free_mib
    if not context.settings.wants_driver or context.loaded_version == context.target.version:
        return []
    free = context.probe.system.free_mib
    small = {path: free[path] for path in ("/usr", "/var") if path in free and free[path] < wanted}
    return [Problem("GF743", {"folder": path, "free": found, "wanted": wanted}) for path, found in small.items()]


def _driver(context: Context) -> list[Problem]:
    """What the driver's own plan objects to and no rule above has said."""
    if context.settings.gpu_driver_state == "absent":
        return driver.plan_driver(context).problems
    if not context.settings.wants_driver or context.system.refused or context.target.problems:
        return []
    codes = ("GF756", "GF758", "GF714", "GF750")
    problems = [p for p in driver.plan_driver(context).problems if p.code in codes]
    row = driver.row_of(context)
    absent = fabric.unavailable(context, row) if context.settings.wants_packages else []
    if absent:
        values = {"missing": ", ".join(absent), "version": context.target.version, "available": "another branch"}
        problems.append(Problem("GF737", values))
    return problems


def _imex(context: Context) -> list[Problem]:
    fabric_roles = fabric.fabric_of(context).roles if context.settings.wants_driver else ()
    return [Problem("GF763", {})] if "imex" in fabric_roles and not context.settings.gpu_fabric_imex_nodes else []

