"""Which driver a host is to have: branch, version, kernel-module flavour, and the packages that make it up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .catalog import Catalog, Row
from .versions import BRANCH, VERSION, at_least, branch_of


@dataclass(frozen=True)
class Gpu:
    """One GPU on the bus. `model` is None when the catalogue does not know the device."""

    slot: str
    device: str
    driver: str | None
    model: Row | None  # row of gpus.yaml
    name: str

    @property
    def architecture(self) -> str | None:
        """The architecture's id, or None."""
        return str(self.model["architecture"]) if self.model else None


@dataclass
class Target:
    """The wanted driver. `problems` holds (code, values) for everything that cannot be."""

    branch: int | None = None
    version: str | None = None
    flavour: str | None = None
    chosen: dict[str, str] = field(default_factory=dict)  # what was derived, and from where
    problems: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def problem(self, code: str, **values: Any) -> None:
        """Note a problem."""
        self.problems.append((code, values))


def gpus_of(hardware: dict[str, Any], tables: Catalog) -> list[Gpu]:
    """The GPUs of a probe's `hardware` part, with their rows of the catalogue."""
    models = {row["id"]: row for row in tables.rows("gpus", "gpu_models")}
    found = []
    for device in hardware.get("gpus", []):
        rows = [row for row in tables.rows("pci", "pci_gpus") if row["device"] == device["device"]]
        row = next((r for r in rows if r.get("subsystem") in (None, device.get("subsystem"))), None)
        model = models.get(row["gpu"]) if row else None
        name = row["gpu"] if row else f"10de:{device['device']}"
        found.append(Gpu(device["slot"], device["device"], device.get("driver"), model, name))
    return found


def target_of(settings: dict[str, Any], gpus: list[Gpu], tables: Catalog, today: str) -> Target:
    """The driver that the variables ask for on these GPUs; what is not asked for comes from the tables.

    `today` is a date (2026-11-30); a branch whose support has ended is never chosen, only taken when asked for.
    """
    target = Target()
    wanted_branch, wanted_version = str(settings["gpu_driver_branch"]), str(settings["gpu_driver_version"])
    if wanted_branch and not BRANCH.fullmatch(wanted_branch):
        target.problem("GF707", variable="gpu_driver_branch", value=wanted_branch, form="three digits, such as 580")
        return target
    if wanted_version and not VERSION.fullmatch(wanted_version):
        target.problem(
            "GF707", variable="gpu_driver_version", value=wanted_version, form="a full version, such as 580.126.09"
        )
        return target
    rows = {int(row["branch"]): row for row in tables.rows("driver_branches", "driver_branches")}
    target.branch = int(wanted_branch) if wanted_branch else branch_of(wanted_version) or None
    if target.branch is None:
        target.branch = _recommended(rows, gpus, tables, today)
        target.chosen["branch"] = "newest long-term branch of the catalogue that supports every GPU of the host"
    if wanted_version and branch_of(wanted_version) != target.branch:
        target.problem("GF708", branch=target.branch, version=wanted_version)
        return target
    row = rows.get(target.branch) if target.branch else None
    if row is None:
        target.problem("GF709", branch=target.branch or "none", known=", ".join(str(b) for b in sorted(rows)))
        return target
    if row["eol"] and row["eol"] < today[:7]:
        target.problem("GF710", branch=target.branch, eol=row["eol"])
    target.version = wanted_version or row["newest_seen"]
    if not wanted_version:
        target.chosen["version"] = f"highest version of branch {target.branch} in the catalogue"
    if target.version is None:
        target.problem("GF711", branch=target.branch)
    target.flavour = _flavour(settings["gpu_driver_flavour"], target, row, gpus, tables)
    _check_gpus(target, gpus, tables)
    return target


def _architecture(gpu: Gpu, tables: Catalog) -> Row | None:
    return tables.row("architectures", "architectures", "id", gpu.architecture) if gpu.architecture else None


def _recommended(rows: dict[int, Row], gpus: list[Gpu], tables: Catalog, today: str) -> int | None:
    last = [a["newest_driver_branch"] for g in gpus for a in [_architecture(g, tables)] if a]
    limit = min((branch for branch in last if branch is not None), default=None)
    for branch in sorted(rows, reverse=True):
        row = rows[branch]
        current = row["eol"] is None or row["eol"] >= today[:7]
        if row["kind"] == "LTS" and row["newest_seen"] and current and (limit is None or branch <= limit):
            return branch
    return None


def _flavour(wanted: str, target: Target, row: Row, gpus: list[Gpu], tables: Catalog) -> str | None:
    """The flavour that is asked for, or the one that fits; problems are noted."""
    kinds = {g.name: a["modules"] for g in gpus for a in [_architecture(g, tables)] if a}
    only_open = sorted(name for name, kind in kinds.items() if kind == "open")
    only_proprietary = sorted(name for name, kind in kinds.items() if kind == "proprietary")
    offered = row["kernel_modules"]
    flavour = wanted
    if wanted == "auto":
        if only_open and only_proprietary:
            target.problem("GF713", open=", ".join(only_open), proprietary=", ".join(only_proprietary))
            return None
        assert target.branch is not None
        default = tables.row("driver_branches", "flavour_defaults", "flavour", "open")
        since = default["from_branch"] if default else None  # the vendor's own default
        recent = offered == "open" or (offered == "both" and since is not None and target.branch >= since)
        flavour = "open" if only_open else "proprietary" if only_proprietary else "open" if recent else "proprietary"
        target.chosen["flavour"] = "from the GPUs and the branch"
    wrong = only_proprietary if flavour == "open" else only_open
    if wrong:
        target.problem("GF712", flavour=flavour, gpus=", ".join(wrong))
    if offered not in ("both", flavour):
        target.problem("GF714", flavour=flavour, branch=target.branch, offered=offered)
    return flavour


def _check_gpus(target: Target, gpus: list[Gpu], tables: Catalog) -> None:
    """Last branch and first driver of each model, each model once."""
    for gpu in {g.name: g for g in gpus}.values():
        architecture = _architecture(gpu, tables)
        if gpu.model is None or architecture is None or target.branch is None:
            continue
        last = architecture["newest_driver_branch"]
        if last is not None and target.branch > last:
            target.problem("GF704", gpu=gpu.name, architecture=architecture["id"], branch=target.branch, last=last)
        first = architecture.get("open_since_branch")
        if target.flavour == "open" and first is not None and target.branch < first:
            target.problem("GF714", flavour="open", branch=target.branch, offered=f"open from {first} for {gpu.name}")
        minimum = gpu.model.get("min_driver")
        if minimum and target.version and not at_least(target.version, str(minimum)):
            target.problem("GF706", gpu=gpu.name, version=target.version, minimum=minimum)


def package_row(target: Target, family: str, repository: str, tables: Catalog) -> Row | None:
    """The row of packages.yaml for a branch. repository is cuda or ubuntu-archive."""
    for row in tables.rows("packages", "package_names"):
        low, high = row["min_branch"] or 0, row["max_branch"] or 10**6
        if row["repo"] == repository and row["os_family"] == family and low <= (target.branch or 0) <= high:
            return row
    return None


def fill(name: str, target: Target, kernel: str = "") -> str:
    """A package name with <branch>, <version> and <kernel flavour> filled in."""
    return (
        name.replace("<branch>", str(target.branch))
        .replace("<version>", str(target.version))
        .replace("<kernel flavour>", kernel.rpartition("-")[2])
    )


def driver_packages(target: Target, row: Row, components: str, kernel: str) -> list[str]:
    """Names of the driver packages to ask for, without what they pull in; none when the row lacks the flavour."""
    flavour = target.flavour or "open"
    if components == "compute" and row.get("compute_only"):
        names = row["compute_only"].get(flavour) or []
    else:
        meta = row["driver_meta"].get(flavour)
        names = [meta] if meta else []
    if names and row.get("utils"):
        names = [*names, row["utils"]]
    if names and row.get("signed_modules"):
        names = [*names, row["signed_modules"][flavour]]
    return [fill(name, target, kernel) for name in names]


def bound_packages(target: Target, row: Row, roles: list[str], architecture: str) -> list[str]:
    """Names of packages that carry exactly the driver's version, by their role (fabric_manager, nscq, nvsdm, imex).

    nvsdm exists for x86_64 only. A role that the row does not have is left out; `missing_roles` names those.
    """
    names = [row.get(role) for role in roles if not (role == "nvsdm" and architecture != "x86_64")]
    return [fill(name, target) for name in names if name]


def missing_roles(row: Row, roles: list[str], architecture: str) -> list[str]:
    """Roles that the branch's row has no package for."""
    return [r for r in roles if not row.get(r) and not (r == "nvsdm" and architecture != "x86_64")]
