"""What is left to do for the driver of a host. Pure: the same reading and variables give the same plan."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.gpufleet.hosts.plugins.module_utils import paths

from . import driver_config as config
from . import fabric, origin, sources
from .context import Context, kernel_packages
from .target import driver_packages, package_row
from .versions import upstream

# Order matters: each one is in use by the next.
UNLOAD = ("nvidia_drm", "nvidia_modeset", "nvidia_peermem", "nvidia_fs", "gdrdrv", "nvidia_uvm", "nvidia")
LOAD = ("nvidia", "nvidia_uvm")
DAEMONS = (
    "nvidia-dcgm.service",
    "nvidia-mig-manager.service",
    "nvidia-imex.service",
    "nvidia-fabricmanager.service",
    "nvidia-persistenced.service",
)


def plan_driver(context: Context, *, exchange: bool = True) -> dict[str, Any]:
    """The driver's plan: problems, files, keys, packages, holds, units, modules, reasons for a reboot.

    `exchange` False: a loaded module could not be unloaded, so that only a reboot brings another one.

    `resolve` is the question to the repositories that has to be answered before the plan is complete; empty when it is.
    """
    settings = context.settings
    plan: dict[str, Any] = {
        "problems": [], "files": [], "absent": [], "keyrings": [], "packages": {"install": [], "remove": []},
        "hold": [], "release": [], "stop": [], "units": [], "unload": [], "load": [], "initramfs": [], "resolve": {},
        "runfile": {}, "reboot": [], "streams": [], "repair": bool(context.probe["system"]["unfinished"]),
        "kernels": kernel_packages(context.probe),
    }  # fmt: skip
    if settings["gpu_driver_state"] == "absent":
        return _removal(context, plan)
    if settings["gpu_driver_method"] == "none":
        return plan
    target = context.target
    plan["target"] = {"branch": target.branch, "version": target.version, "flavour": target.flavour}
    refused = [p for p in target.problems if p[0] != "GF710"] + origin.problems(context)
    if context.platform.refused:
        values = {"platform": f"{context.platform.id} {context.platform.version}", "reason": context.platform.refused}
        refused.append(("GF701", values))
    if refused:
        plan["problems"] = refused
        return plan
    if settings["gpu_driver_method"] == "runfile":
        _runfile(context, plan)
    else:
        _repository(context, plan)
        _packages(context, plan)
    config.configuration(context, plan)
    _modules(context, plan, exchange)
    return plan


def headers_want(context: Context) -> list[dict[str, Any]]:
    """The headers of the running kernel when they are not there; they come from the host's own repositories."""
    if context.probe["kernel"]["headers"]:
        return []
    wanted = context.platform.headers(context.probe["kernel"]["release"], context.tables)
    have = {name: row["version"].rpartition(":")[2] for name, row in context.packages.items()}
    missing = [(n, v) for n, v in wanted if n not in have or v not in (None, have[n])]
    return [{"name": name, "version": version, "repository": "", "part": "headers"} for name, version in missing]


def build_want(context: Context) -> list[dict[str, Any]]:
    """What builds the module, where the driver's packages come from another repository than it; and dnf's locks."""
    tables, platform = context.tables, context.platform
    rows = tables.rows("host_repositories", "build_packages")
    runfile = context.settings["gpu_driver_method"] == "runfile"
    dkms = context.settings["gpu_driver_kmod"] == "dkms"
    names = [r["package"] for r in rows if runfile or (dkms and r["manager"] == platform.manager)]
    if context.settings["gpu_driver_hold"] and not runfile:
        row = tables.row("host_repositories", "version_lock", "platform", platform.key)
        names += [row["package"]] if row else []
    missing = [name for name in names if name not in context.packages]
    return [{"name": name, "version": None, "repository": "", "part": "build"} for name in missing]


def repository_of(context: Context) -> sources.Repository:
    """The driver's repository."""
    return sources.repository("cuda", context.platform, context.settings, context.tables)


def row_of(context: Context) -> dict[str, Any] | None:
    """The row of packages.yaml for the wanted branch."""
    distro = context.settings["gpu_driver_method"] == "distro"
    return package_row(context.target, context.platform.family, "ubuntu-archive" if distro else "cuda", context.tables)


def wanted_packages(context: Context) -> list[dict[str, Any]]:
    """Every package to ask for: driver, fabric, headers, extras. In the form of the module `resolve`."""
    settings, target = context.settings, context.target
    own = settings["gpu_driver_method"] == "distro" or not settings["gpu_repo_manage"]
    repository = "" if own else "cuda"
    row = row_of(context)
    if row is None:
        return []
    names = driver_names(context, row)
    if not names:
        return []
    want = [{"name": name, "version": target.version, "repository": repository, "part": "driver"} for name in names]
    for item in want:
        if item["name"].startswith("linux-modules-nvidia"):  # versioned by the kernel, not by the driver
            item["version"] = None
    if settings["gpu_driver_persistenced"]:
        daemon = {"name": "nvidia-persistenced", "version": target.version, "repository": repository, "part": "driver"}
        want.append({**daemon, "optional": True})  # some branches have it in another package
    want += fabric.want(context, row, repository)
    extras = [str(name) for name in settings["gpu_driver_extra_packages"]]
    want += [{"name": name, "version": target.version, "repository": repository, "part": "driver"} for name in extras]
    return (
        want
        + _siblings(context, {item["name"] for item in want}, repository)
        + headers_want(context)
        + build_want(context)
    )


def driver_names(context: Context, row: dict[str, Any]) -> list[str]:
    """The driver's packages by name. The whole driver where the branch has no packages without graphics."""
    kernel, target = context.probe["kernel"]["release"], context.target
    wanted = str(context.settings["gpu_driver_components"])
    return driver_packages(target, row, wanted, kernel) or driver_packages(target, row, "full", kernel)


def _siblings(context: Context, names: set[str], repository: str) -> list[dict[str, Any]]:
    """dnf: installed packages of the driver, to be moved with it under their own names where the repository has them.

    Their names carry no branch, so nothing else tells one that stays from one that is left over.
    """
    if context.platform.manager != "dnf":
        return []
    skipped = {*names, *other_kmods(context), *other_flavour(context)}
    moved = sorted(n for n, v in context.driver_family.items() if n not in skipped and v != context.target.version)
    return [
        {"name": n, "version": context.target.version, "repository": repository, "part": "driver", "optional": True}
        for n in moved
    ]


def installed(context: Context, item: dict[str, Any]) -> bool:
    """Whether a wanted package is there at its version."""
    row = context.packages.get(item["name"])
    if row is None or row["state"] != "installed":
        return False
    return item["version"] is None or upstream(row["version"]) == item["version"]


def resolve_request(context: Context) -> dict[str, Any]:
    """The question that the repositories have to answer, {} when everything wanted is installed."""
    want = wanted_packages(context)
    # Without the library something that the named packages pull in is gone; only the repository knows what that is.
    if context.probe["library"] and all(installed(context, item) or item.get("optional") for item in want):
        return {}
    used = {item["repository"] for item in want}
    repo = repository_of(context)
    repositories = [sources.resolve_repository(repo, context.platform)] if "cuda" in used and repo.url else []
    check_key = repositories and repo.key_url and not sources.key_installed(repo, context.probe)
    return {"repositories": repositories, "want": want, "urls": [repo.key_url] if check_key else []}


def _repository(context: Context, plan: dict[str, Any]) -> None:
    """Source, key, and what stands in their way."""
    if context.settings["gpu_driver_method"] != "cuda_repo" or not context.settings["gpu_repo_manage"]:
        return
    repo = repository_of(context)
    if repo.url is None:
        plan["problems"].append(("GF703", _no_route(context, repo.why)))
        return
    if not sources.key_installed(repo, context.probe):
        if not repo.key_known:
            plan["problems"].append(("GF738", {"repository": repo.url, "variable": "gpu_driver_repo_key"}))
            return
        plan["keyrings"] = [{"path": repo.keyring_path, "text": repo.key_text, "url": repo.key_url or "",
                             "fingerprints": repo.fingerprints}]  # fmt: skip
    plan["files"] += context.want_file(repo.source_path, repo.source_text())
    plan["absent"] += sources.foreign_sources(repo, context.probe)
    plan["problems"] += sources.shared_problems(repo, context.probe)
    plan["absent"] += [
        file for file, _key, _day, alone in sources.retired_keyrings(context.probe, context.tables) if alone
    ]
    if "cuda-keyring" in context.packages:  # it would bring the vendor's own source back at its next upgrade
        plan["packages"]["remove"].append("cuda-keyring")


def _no_route(context: Context, why: str) -> dict[str, Any]:
    return {
        "method": context.settings["gpu_driver_method"], "platform": context.platform.key, "note": why,
        "routes": ", ".join(context.platform.routes) or "none",
    }  # fmt: skip


def _packages(context: Context, plan: dict[str, Any]) -> None:
    """The exact set: what to install, what is left over, what to hold."""
    target, settings = context.target, context.settings
    manager = context.platform.manager
    row = row_of(context)
    if row is None or not driver_names(context, row):
        plan["problems"].append(("GF714", {"flavour": target.flavour, "branch": target.branch,
                                           "offered": "no package of this flavour on this platform"}))  # fmt: skip
        return
    request = resolve_request(context)
    names: set[str] = set()
    if request:
        answer = context.answer(request["want"])
        if answer is None:
            plan["resolve"] = request
        else:
            plan["problems"] += unresolved(context, answer)
            names = {item["name"] for item in answer["packages"]}
            plan["packages"]["install"] = [i for i in answer["packages"] if not _same(context, i)]
            plan["streams"] = _streams(context)
    if manager == "apt":
        plan["files"] += context.want_file(paths.PREFERENCES, config.preferences(target.version))
        plan["files"] += context.want_file(paths.UNATTENDED, config.UNATTENDED_TEXT)
    present = sorted(set(context.driver_family.values()) - {target.version})
    if present and context.in_use:
        plan["problems"].append(("GF756", {"installed": ", ".join(present), "wanted": target.version}))
    stale = {n for n, v in context.driver_family.items() if v != target.version and n not in names}
    stale |= {n for n in context.packages if _stale_pin(n, target.branch, target.version)}
    stale |= {*other_kmods(context), *other_flavour(context)}
    if not plan["resolve"]:
        plan["packages"]["remove"] += sorted(stale)
        # apt does not let a held package go for one that replaces it, which is what happens where names change (590).
        held = {n for n in stale if context.packages[n]["hold"]}
        plan["release"] = sorted(held | {*context.locked(plan["packages"]["install"])})
    if settings["gpu_driver_hold"]:
        held = {n for n, v in context.driver_family.items() if v == target.version} | names
        held -= {item["name"] for item in plan["packages"]["install"] if item.get("part") in ("headers", "build")}
        plan["hold"] = sorted(n for n in held if context.unheld(n, plan["packages"]["install"]))


def _same(context: Context, item: dict[str, Any]) -> bool:
    row = context.packages.get(item["name"])
    return bool(row) and row["state"] == "installed" and row["version"] == item["version"]


def _stale_pin(name: str, branch: int | None, version: str | None) -> bool:
    """A pinning package of another branch or version, which would outvote ours."""
    match = re.fullmatch(r"nvidia-driver-pinning-(.+)", name)
    return bool(match) and match[1] not in (str(branch), str(version))


def other_kmods(context: Context) -> list[str]:
    """Installed providers of the kernel module that are not the wanted kind (dnf)."""
    if context.platform.manager != "dnf":
        return []
    wanted = context.settings["gpu_driver_kmod"]
    rows = context.tables.rows("host_kernel", "kmod_providers")
    found = {row["kmod"]: sorted(n for n in context.packages if re.search(row["pattern"], n)) for row in rows}
    return [name for kmod, names in found.items() if kmod != wanted for name in names] if found.get(wanted) else []


def other_flavour(context: Context) -> list[str]:
    """Installed driver packages of the flavour that is not wanted; both at once exclude each other."""
    rows = context.tables.rows("host_kernel", "flavour_packages")
    patterns = [
        row["pattern"] for row in rows
        if row["manager"] == context.platform.manager and row["flavour"] != context.target.flavour
        and row.get("id") in (None, context.platform.id)
    ]  # fmt: skip
    return sorted(name for name in context.driver_family if any(re.search(p, name) for p in patterns))


def _streams(context: Context) -> list[str]:
    """The module stream to enable first, on systems that have streams."""
    if context.platform.manager != "dnf" or not context.platform.modular(context.tables):
        return []
    row = context.tables.rows("packages", "rpm_modularity")[0]
    suffix = "open" if context.target.flavour == "open" else "dkms"
    return [f"{row['stream_module']}:{context.target.branch}-{suffix}"]


def unresolved(context: Context, answer: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Problems in the repositories' answer: addresses that fail, packages that do not exist."""
    problems: list[tuple[str, dict[str, Any]]] = []
    version = context.target.version
    for error in answer.get("errors", []):
        problems.append(("GF735", {"url": error["url"], "answer": error["answer"]}))
    request = answer.get("request", [])
    parts = {item["name"]: item.get("part", "driver") for item in request}
    full = {item["name"]: f"{item['name']} {item.get('version') or ''}".rstrip() for item in request}
    codes = {"driver": "GF736", "fabric": "GF737", "headers": "GF722", "build": "GF762", "toolkit": "GF736"}
    for part, code in codes.items():
        missing = [name for name in answer.get("missing", []) if parts.get(name) == part]
        if not missing:
            continue
        available = sorted({v for name in missing for v in answer["available"].get(name, [])})
        listed = ", ".join(full[name] for name in missing)
        values = {"missing": listed, "available": ", ".join(available) or "none", "version": version}
        if part == "headers":
            values = {"kernel": context.probe["kernel"]["release"], "packages": listed}
        problems.append((code, values))
    return problems


def _runfile(context: Context, plan: dict[str, Any]) -> None:
    """The installer file: where it comes from, its checksum, its flags."""
    settings, target = context.settings, context.target
    row = context.tables.rows("host_repositories", "runfiles")[0]
    profile = sources.profile_of(settings) or {}
    url = settings["gpu_driver_runfile_url"] or profile.get("runfile_url") or row["url"]
    url = str(url).replace("<version>", str(target.version)).replace("<machine>", context.platform.architecture)
    if settings["gpu_driver_persistenced"]:
        plan["files"] += context.want_file(paths.PERSISTENCED_UNIT, config.PERSISTENCED_TEXT)
    have = context.probe["library"] == target.version and context.probe["runfile"]
    if have:
        return
    if not settings["gpu_driver_runfile_sha256"]:
        plan["problems"].append(("GF758", {"url": url}))
        return
    kind = "kernel-open" if target.flavour == "open" else "kernel"
    plan["runfile"] = {
        "url": url, "checksum": f"sha256:{settings['gpu_driver_runfile_sha256']}",
        "path": f"/var/cache/NVIDIA-Linux-{context.platform.architecture}-{target.version}.run",
        "arguments": ["--silent", "--dkms", f"-m={kind}"], "replaces": context.probe["runfile"],
    }  # fmt: skip
    want = headers_want(context) + build_want(context)
    if want:
        request = {"repositories": [], "want": want, "urls": []}
        answer = context.answer(request["want"])
        if answer is None:
            plan["resolve"] = request
        else:
            plan["problems"] += unresolved(context, answer)
            plan["packages"]["install"] = answer["packages"]


def _modules(context: Context, plan: dict[str, Any], exchange: bool) -> None:
    """Load the module, exchange a loaded one, or say that a reboot is required."""
    target, driver = context.target, context.probe["driver"]
    if not context.settings["gpu_driver_load"] or not context.gpus:
        return
    holders = config.blockers(context)
    if holders:
        plan["reboot"].append(f"module {holders[0]} holds the GPUs")
        return
    if driver and (driver["version"] != target.version or driver["flavour"] != target.flavour):
        if context.in_use or not exchange:
            why = "the host is in use" if context.in_use else "it cannot be unloaded"
            plan["reboot"].append(f"driver {driver['version']} is loaded, {target.version} is wanted, and {why}")
            return
        plan["unload"] = [name for name in UNLOAD if name in context.modules]
        plan["stop"] = stopped_daemons(context)
        plan["load"] = list(LOAD)
        running = {unit["name"] for unit in plan["units"]}
        plan["units"] += [
            {"name": unit["name"], "state": "started"} for unit in reversed(plan["stop"]) if unit["name"] not in running
        ]
        return
    plan["load"] = [name for name in LOAD if name not in context.modules]


def stopped_daemons(context: Context) -> list[dict[str, Any]]:
    """The driver's daemons that run now, in the order to stop them."""
    return [
        {"name": name, "state": "stopped"} for name in DAEMONS
        if context.probe["units"].get(name, {}).get("active") == "active"
    ]  # fmt: skip


def _removal(context: Context, plan: dict[str, Any]) -> dict[str, Any]:
    """Take the driver away: bare package names, our files, the module when nobody uses it."""
    pins = [name for name in context.packages if name.startswith("nvidia-driver-pinning-")]
    remove = sorted({*context.driver_family, *pins, *(["nvlsm"] if "nvlsm" in context.packages else [])})
    if context.in_use and (remove or context.probe["runfile"]):
        plan["problems"].append(
            ("GF750", {"what": "removing the driver", "holders": ", ".join(context.workloads) or "the node"})
        )
        return plan
    plan["release"] = [name for name in remove if context.packages[name]["hold"]]
    plan["packages"]["remove"] = remove
    plan["absent"] = context.unwanted(
        paths.CUDA_SOURCE_APT, paths.CUDA_SOURCE_DNF, paths.PREFERENCES, paths.UNATTENDED, paths.BLACKLIST,
        paths.MODULE_OPTIONS, paths.MODULES_LOAD,
    )  # fmt: skip
    plan["absent"] += [
        path for path in (paths.CUDA_KEYRING_APT, paths.CUDA_KEYRING_DNF) if path in context.probe["keyrings"]
    ]
    if context.probe["runfile"]:
        plan["runfile"] = {"uninstall": True}
    if context.probe["driver"]:
        plan["stop"] = stopped_daemons(context)
        plan["unload"] = [name for name in UNLOAD if name in context.modules]
    if paths.PERSISTENCED_UNIT in context.probe["files"]:
        plan["absent"].append(paths.PERSISTENCED_UNIT)
        plan["stop"] += [{"name": "nvidia-persistenced.service", "enabled": False}]
    tool = context.probe["kernel"]["initramfs_tool"] and paths.BLACKLIST in plan["absent"]
    if tool:
        plan["initramfs"] = str((context.platform.row or {}).get("initramfs", "update-initramfs -u -k all")).split()
    return plan
