"""Everything that is wrong with a host, in one list, before anything is changed."""

from __future__ import annotations

import re
from typing import Any

from . import driver, driver_config, fabric, health, mig, origin, preflight_runtime, runtimes, sources, toolkit
from .context import Context
from .report import finding
from .versions import at_least, within

Problem = tuple[str, dict[str, Any]]
MINIMUM_CORE = "2.19"


def findings(context: Context) -> list[dict[str, str]]:
    """All findings about a host, in no order. A rule that cannot be decided on this host says nothing."""
    problems: list[Problem] = []
    for rule in (
        _controller, _platform, _hardware, _declared, _target, _cuda, _known_bad, _kernel, _secure_boot,
        _foreign_modules, _kernel_log, _hmm, _packages, _repositories, _busy, _space, _driver,
        preflight_runtime.rules, _mig, _imex,
    ):  # fmt: skip
        problems += rule(context)
    return [finding(context.tables, code, **values) for code, values in problems]


def _wants_driver(context: Context) -> bool:
    return context.settings["gpu_driver_state"] == "present" and context.settings["gpu_driver_method"] != "none"


def _wants_packages(context: Context) -> bool:
    return _wants_driver(context) and context.settings["gpu_driver_method"] != "runfile"


def resolve_request(context: Context) -> dict[str, Any]:
    """One question for everything that preflight wants to know of the repositories; {} when it is all there."""
    if context.platform.refused or not context.settings["gpu_preflight_check_repositories"]:
        return {}
    parts = []
    clean = all(code in ("GF710",) for code, _values in context.target.problems)
    if _wants_packages(context) and clean and driver.row_of(context):
        parts.append(driver.resolve_request(context))
    if context.settings["gpu_container_toolkit_state"] == "present" and runtimes.owner_of(context):
        parts.append(toolkit.resolve_request(context))
    parts = [part for part in parts if part]
    if not parts:
        return {}
    return {key: [item for part in parts for item in part[key]] for key in ("repositories", "want", "urls")}


def _controller(context: Context) -> list[Problem]:
    core = context.versions.get("ansible_core", "")
    problems: list[Problem] = []
    if core and not at_least(core, MINIMUM_CORE):
        problems.append(("GF721", {"core": core, "minimum": MINIMUM_CORE}))
    line = ".".join(core.split(".")[:2])
    row = context.tables.row("host_kernel", "python_floors", "ansible_core", line)
    python = context.probe["system"]["python"]
    if row and not at_least(python, row["python"]):
        problems.append(("GF720", {"python": python, "core": line, "minimum": row["python"]}))
    return problems


def _platform(context: Context) -> list[Problem]:
    platform, settings = context.platform, context.settings
    if platform.refused:
        return [("GF701", {"platform": f"{platform.id} {platform.version}", "reason": platform.refused})]
    problems: list[Problem] = []
    directory, why = sources.repository_directory(platform, context.tables)
    routes = ", ".join(platform.routes)
    if platform.row is None or directory is None:
        problems.append(("GF702", {"platform": f"{platform.id} {platform.version}", "note": why, "routes": routes}))
    method = settings["gpu_driver_method"]
    own = method == "cuda_repo" and (driver.repository_of(context).url or not settings["gpu_repo_manage"])
    if _wants_driver(context) and method not in platform.routes and not own:
        note = why or "no such route in the table"
        values = {"method": method, "platform": f"{platform.id} {platform.version}", "routes": routes, "note": note}
        problems.append(("GF703", values))
    elif _wants_driver(context) and method == "cuda_repo" and not own:
        problems.append(("GF703", {"method": method, "platform": platform.key, "routes": routes, "note": why}))
    return problems


def _hardware(context: Context) -> list[Problem]:
    problems: list[Problem] = []
    if not context.gpus and _wants_driver(context):
        problems.append(("GF718", {}))
    for gpu in context.gpus:
        if gpu.model is None:
            problems.append(("GF705", {"slot": gpu.slot, "device": f"10de:{gpu.device}"}))
    return problems


def _declared(context: Context) -> list[Problem]:
    """The GPUs that the stack file promises."""
    settings = context.settings
    model, count = str(settings["gpu_preflight_gpu_model"]), int(settings["gpu_preflight_gpu_count"])
    row = next(
        (r for r in context.tables.rows("gpus", "gpu_models") if model in (r["id"], *r.get("aliases", []))), None
    )
    identity = row["id"] if row else model
    names = [gpu.name for gpu in context.gpus]
    wrong_model = bool(model) and any(name != identity for name in names if not name.startswith("10de:"))
    wrong_count = bool(count) and len(names) != count
    if not names or not (wrong_model or wrong_count):
        return []
    wanted = " ".join(part for part in (f"{count} x" if count else "", model) if part)
    found = ", ".join(f"{names.count(name)} x {name}" for name in sorted(set(names)))
    return [("GF719", {"wanted": wanted, "found": found})]


def _target(context: Context) -> list[Problem]:
    return list(context.target.problems) if _wants_driver(context) else []


def _cuda(context: Context) -> list[Problem]:
    """The driver that the team's CUDA images need: the version's own driver, or the floor of its major version."""
    cuda, version = str(context.settings["gpu_preflight_cuda_target"]), context.target.version
    if not cuda or not version or not _wants_driver(context):
        return []
    row = context.tables.row("cuda", "cuda_min_driver", "cuda", cuda.split(".", maxsplit=1)[0])
    if row is None or at_least(version, row["driver"]):
        return []
    return [("GF715", {"cuda": cuda, "minimum": row["driver"], "version": version})]


def _known_bad(context: Context) -> list[Problem]:
    settings, problems = context.settings, list[Problem]()
    wanted = {"driver": context.target.version if _wants_driver(context) else None}
    if settings["gpu_container_toolkit_state"] == "present":
        wanted["container-toolkit"] = toolkit.version_of(context)
    rows = {row["id"]: row for row in context.tables.rows("known_bad", "known_bad")}
    for condition in context.tables.rows("host_kernel", "known_bad_conditions"):
        row = rows.get(condition["id"])
        version = wanted.get(row["component"]) if row else None
        if not row or not version or not within(version, row["first"], row["last"], row["fixed_in"]):
            continue
        when = condition["when"]
        concerned = (
            ("gpus" not in when or any(gpu.name in when["gpus"] for gpu in context.gpus))
            and ("flavour" not in when or context.target.flavour == when["flavour"])
            and ("mig" not in when or bool(settings["gpu_mig_layout"]) == when["mig"])
            and ("package" not in when or when["package"] in context.packages)
            and ("runtime" not in when or runtimes.owner_of(context) == when["runtime"])
        )
        if concerned:
            fixed = f" ({row['fixed_in']} is good)" if row["fixed_in"] else ""
            values = {"component": row["component"], "version": version, "reason": row["reason"], "when": row["when"],
                      "id": row["id"], "fixed": fixed}  # fmt: skip
            problems.append(("GF716" if condition["severity"] == "error" else "GF717", values))
    return problems


def _kernel(context: Context) -> list[Problem]:
    """Headers and compiler for a module that is built on the host."""
    kernel, problems = context.probe["kernel"], list[Problem]()
    if not _wants_driver(context):
        return []
    want = driver.headers_want(context)
    answer = context.answer(want) if want else None
    if answer and answer["missing"]:
        wanted = [f"{i['name']} {i['version'] or ''}".rstrip() for i in want if i["name"] in answer["missing"]]
        problems.append(("GF722", {"kernel": kernel["release"], "packages": ", ".join(wanted)}))
    if kernel["compiler"] and kernel["gcc"] and kernel["compiler"] != kernel["gcc"]:
        problems.append(("GF723", {"kernel": kernel["compiler"], "here": kernel["gcc"]}))
    return problems


def _secure_boot(context: Context) -> list[Problem]:
    """An enrolled key, or modules that the distribution signed."""
    kernel = context.probe["kernel"]
    if not _wants_driver(context) or not kernel["secure_boot"] or any(kernel["mok"].values()):
        return []
    row = driver.row_of(context) if context.settings["gpu_driver_method"] == "distro" else None
    if row and row.get("signed_modules"):
        return []
    detail = "no key of DKMS is enrolled" if kernel["mok"] else "DKMS has no key yet"
    return [("GF724", {"detail": detail})]


def _foreign_modules(context: Context) -> list[Problem]:
    """Another driver holds the GPUs. What is on the blacklist goes with a reboot, the rest is the owner's decision."""
    if not _wants_driver(context):
        return []
    problems: list[Problem] = []
    blacklist = {row["module"] for row in context.tables.rows("platforms", "blacklisted_modules")}
    if "nouveau" in context.modules:
        problems.append(("GF725", {}))
    for gpu in context.gpus:
        if gpu.driver in (None, "nvidia", "nouveau"):
            continue
        if gpu.driver in blacklist:
            remedy, severity = "gpu_driver blacklists it; a reboot is required.", "warning"
        else:
            remedy, severity = "Release the GPU from it, or take the host out of the pool.", "error"
        problems.append(("GF726", {"slot": gpu.slot, "driver": gpu.driver, "remedy": remedy, "severity": severity}))
    return problems


def _kernel_log(context: Context) -> list[Problem]:
    """One finding for each kind of line."""
    rows = {row["id"]: row for row in context.tables.rows("host_kernel", "kernel_log")}
    newest = {hit["id"]: hit["line"] for hit in context.probe["kernel"]["log"] if hit["id"] in rows}
    return [("GF727", {"line": line, "hint": rows[name]["hint"]}) for name, line in sorted(newest.items())]


def _hmm(context: Context) -> list[Problem]:
    """Faults that no source bounds by version or kernel: said once, unless a workaround is in place."""
    version = context.target.version
    if not _wants_driver(context) or not version or not context.gpus:
        return []
    problems: list[Problem] = []
    for row in context.tables.rows("host_kernel", "unbounded_faults"):
        options = driver_config.module_options(context).get(row["module"], "")
        worked_around = row["cmdline"] in context.probe["kernel"]["cmdline"].split() or row["options"] in options
        if at_least(version, str(row["from_branch"])) and not worked_around:
            problems.append(("GF728", {"version": version}))
    return problems


def _packages(context: Context) -> list[Problem]:
    """Drivers of another origin, and leftovers that the role clears away."""
    problems: list[Problem] = []
    method = context.settings["gpu_driver_method"]
    if context.settings["gpu_driver_state"] == "absent":
        return []
    problems += origin.problems(context)
    if method == "none" and (context.driver_family or context.probe["runfile"] or context.probe["driver"]):
        version = context.loaded_version or context.probe["library"] or "packages"
        problems.append(("GF731", {"found": f"driver {version}"}))
    problems += health.mismatch(context, "GF732")
    others = driver.other_kmods(context)
    if others:
        problems.append(("GF742", {"packages": ", ".join(others), "kept": context.settings["gpu_driver_kmod"]}))
    ended = [
        r["package"] for r in context.tables.rows("host_toolkit", "ended_packages") if r["package"] in context.packages
    ]
    if ended:
        problems.append(("GF752", {"packages": ", ".join(ended)}))
    blacklist = context.probe["system"]["unattended_blacklist"]
    if "unattended-upgrades" in context.packages and not any(re.search(p, "nvidia-open") for p in blacklist):
        problems.append(("GF759", {}))
    return problems


def _repositories(context: Context) -> list[Problem]:
    """Keys, addresses, exact sets, allowed hosts."""
    settings, problems = context.settings, list[Problem]()
    if sources.profile_of(settings) is None:
        known = ", ".join(sorted(settings["gpu_mirror_profiles"])) or "none"
        return [("GF757", {"profile": settings["gpu_mirror_profile"], "known": known})]
    repo = driver.repository_of(context)
    managed = _wants_driver(context) and settings["gpu_driver_method"] == "cuda_repo" and settings["gpu_repo_manage"]
    removed: list[str] = []
    if managed and repo.url:
        problems += _sha1(context, repo)
        removed = sources.foreign_sources(repo, context.probe)
        problems += sources.shared_problems(repo, context.probe)
        if not repo.key_known and not sources.key_installed(repo, context.probe):
            problems.append(("GF738", {"repository": repo.url, "variable": "gpu_driver_repo_key"}))
    if settings["gpu_container_toolkit_state"] == "present" and settings["gpu_repo_manage"]:
        kit = toolkit.repository_of(context)
        removed += sources.foreign_sources(kit, context.probe)
        problems += sources.shared_problems(kit, context.probe)
        if not kit.key_known and not sources.key_installed(kit, context.probe):
            problems.append(("GF738", {"repository": kit.url, "variable": "gpu_container_toolkit_repo_key"}))
    for file, key, day, _alone in sources.retired_keyrings(context.probe, context.tables):
        problems.append(("GF734", {"file": file, "key": key, "retired": day}))
    for file, host in sources.outside_hosts(settings, context.probe, removed):
        problems.append(("GF741", {"file": file, "host": host}))
    request = resolve_request(context)
    answer = context.answer(request["want"]) if request else None
    if answer:
        # Headers have a rule of their own.
        problems += [p for p in driver.unresolved(context, answer) if p[0] != "GF722"]
    return problems


def _sha1(context: Context, repo: sources.Repository) -> list[Problem]:
    """apt with sqv refuses keys whose own signature is SHA-1."""
    system = context.probe["system"]
    if not system["sqv"]:
        return []
    if context.settings["gpu_preflight_allow_sha1_key"] and system["crypto_policy"]:
        return []
    rows = context.tables.rows("host_repositories", "repository_keys")
    end = next(row["sha1_end"] for row in rows if row["sha1"])
    if sources.key_installed(repo, context.probe):
        weak = any(key["sha1_only"] for key in context.probe["keyrings"][repo.keyring_path])
    else:
        weak = repo.sha1_end is not None
    if not weak or system["date"] < end:
        return []
    return [("GF733", {"key": (sources.wanted_keys(repo) or ["the key"])[0], "directory": repo.url, "end": end})]


def _busy(context: Context) -> list[Problem]:
    system, problems = context.probe["system"], list[Problem]()
    if system["lock"]:
        problems.append(("GF739", {"what": f"process {system['lock']} holds the lock of dpkg"}))
    if system["cloud_init_running"]:
        problems.append(("GF739", {"what": "cloud-init has not finished"}))
    if system["unfinished"]:
        problems.append(("GF740", {"packages": ", ".join(system["unfinished"][:10])}))
    return problems


def _space(context: Context) -> list[Problem]:
    """Room for a driver and its build: where libraries, sources and modules go."""
    wanted = int(context.settings["gpu_preflight_min_free_mib"])
    if not _wants_driver(context) or context.loaded_version == context.target.version:
        return []
    free = context.probe["system"]["free_mib"]
    small = {path: free[path] for path in ("/usr", "/var") if path in free and free[path] < wanted}
    return [("GF743", {"path": path, "free": found, "wanted": wanted}) for path, found in small.items()]


def _driver(context: Context) -> list[Problem]:
    """What the driver's own plan objects to and no rule above has said."""
    if context.settings["gpu_driver_state"] == "absent":
        return list(driver.plan_driver(context)["problems"])
    if not _wants_driver(context) or context.platform.refused or context.target.problems:
        return []
    codes = ("GF756", "GF758", "GF714", "GF750")
    problems = [p for p in driver.plan_driver(context)["problems"] if p[0] in codes]
    row = driver.row_of(context)
    absent = fabric.unavailable(context, row) if _wants_packages(context) else []
    if absent:
        values = {"missing": ", ".join(absent), "version": context.target.version, "available": "another branch"}
        problems.append(("GF737", values))
    return problems


def _imex(context: Context) -> list[Problem]:
    fabric_roles = fabric.fabric_of(context).roles if _wants_driver(context) else ()
    return [("GF763", {})] if "imex" in fabric_roles and not context.settings["gpu_fabric_imex_nodes"] else []


def _mig(context: Context) -> list[Problem]:
    return mig.problems_of(context)
