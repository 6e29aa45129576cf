"""Which driver hosts are to have: branch, version, kernel-module flavour. Plan and roles ask the same functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpufleet.catalog.drivers import DriverBranch, default_flavour, driver_branches
from gpufleet.catalog.gpus import GpuModel, architectures, gpu_models
from gpufleet.catalog.hosts import pci_gpu
from gpufleet.catalog.known_bad import Place, known_to_fail
from gpufleet.catalog.reading import STANDARD, Tables
from gpufleet.catalog.versions import BRANCH, VERSION, at_least, branch_of
from gpufleet.hosts.reading import Device
from gpufleet.hosts.settings import Settings
from gpufleet.hosts.work import Problem


@dataclass(frozen=True)
class Gpu:
    """One GPU on the bus. `model` is None when the catalogue does not know the device."""

    slot: str
    device: str
    driver: str | None
    model: GpuModel | None
    name: str


@dataclass
class Target:
    """The wanted driver. `problems` holds everything that cannot be."""

    branch: int | None = None
    version: str | None = None
    flavour: str | None = None
    problems: list[Problem] = field(default_factory=list)

    def problem(self, code: str, **values: Any) -> None:
        """Note a problem."""
        self.problems.append(Problem(code, values))


def gpus_of(devices: Iterable[Device], tables: Tables) -> list[Gpu]:
    """The GPUs on a host's bus, with their models."""
    found = []
    for device in devices:
        row = pci_gpu(device.device, device.subsystem, tables)
        name = row.gpu if row else f"10de:{device.device}"
        found.append(Gpu(device.slot, device.device, device.driver, gpu_models(tables).get(name), name))
    return found


def recommended_branch(models: Sequence[GpuModel], month: str, tables: Tables = STANDARD) -> DriverBranch | None:
    """The newest long-term branch that drives every GPU, is supported in `month` (2026-11) and has a known version.

    A version that is known to fail on these GPUs is never recommended.
    """
    last = min((m.newest_driver_branch for m in models if m.newest_driver_branch is not None), default=None)
    for number, row in sorted(driver_branches(tables).items(), reverse=True):
        supported = row.eol is None or row.eol >= month
        drives = last is None or number <= last
        if row.kind == "LTS" and row.newest_seen and supported and drives and not _fails(models, row, tables):
            return row
    return None


def _fails(models: Sequence[GpuModel], row: DriverBranch, tables: Tables) -> bool:
    """Whether the version that the branch would bring is known to fail on the GPUs."""
    flavour = default_flavour(models, row.branch, tables)
    place = Place(gpus=frozenset(model.id for model in models), modules=flavour)
    return bool(known_to_fail("driver", row.newest_seen or "", place, tables))


def target_of(settings: Settings, gpus: Sequence[Gpu], today: str, tables: Tables) -> Target:
    """The driver that the variables ask for on these GPUs; what is not asked for comes from the tables.

    `today` is a date (2026-11-30); a branch whose support has ended is never chosen, only taken when asked for.
    """
    target = Target()
    wanted_branch, wanted_version = settings.gpu_driver_branch, settings.gpu_driver_version
    if wanted_branch and not BRANCH.fullmatch(wanted_branch):
        form = "three digits, such as 580"
        target.problem("GF707", variable="gpu_driver_branch", given=repr(wanted_branch), form=form)
        return target
    if wanted_version and not VERSION.fullmatch(wanted_version):
        form = "a full version, such as 580.126.09"
        target.problem("GF707", variable="gpu_driver_version", given=repr(wanted_version), form=form)
        return target
    models = [gpu.model for gpu in gpus if gpu.model]
    rows = driver_branches(tables)
    target.branch = int(wanted_branch) if wanted_branch else branch_of(wanted_version) or None
    if target.branch is None:
        recommended = recommended_branch(models, today[:7], tables)
        target.branch = recommended.branch if recommended else None
    if wanted_version and branch_of(wanted_version) != target.branch:
        target.problem("GF708", branch=target.branch, version=wanted_version)
        return target
    row = rows.get(target.branch) if target.branch else None
    if row is None:
        target.problem("GF709", branch=target.branch or "none", known=", ".join(str(b) for b in sorted(rows)))
        return target
    if row.eol and row.eol < today[:7]:
        target.problem("GF710", branch=target.branch, eol=row.eol)
    target.version = wanted_version or row.newest_seen
    if target.version is None:
        target.problem("GF711", branch=target.branch)
    target.flavour = _flavour(settings.gpu_driver_flavour, target, row, gpus, tables)
    _check_gpus(target, gpus, tables)
    return target


def _flavour(
    wanted: str, target: Target, row: DriverBranch, gpus: Sequence[Gpu], tables: Tables
) -> str | None:
    """The flavour that is asked for, or the one that fits; problems are noted."""
    takes = {flavour: sorted({g.name for g in gpus if g.model and g.model.modules == flavour})
             for flavour in ("open", "proprietary")}  # fmt: skip
    flavour = wanted
    if wanted == "auto":
        if all(takes.values()):
            target.problem("GF713", **{kind: ", ".join(names) for kind, names in takes.items()})
            return None
        flavour = default_flavour([gpu.model for gpu in gpus if gpu.model], row.branch, tables)
    wrong = takes["proprietary" if flavour == "open" else "open"]
    if wrong:
        target.problem("GF712", flavour=flavour, gpus=", ".join(wrong))
    if row.kernel_modules not in ("both", flavour):
        target.problem("GF714", flavour=flavour, branch=target.branch, offered=row.kernel_modules)
    return flavour


def _check_gpus(target: Target, gpus: Sequence[Gpu], tables: Tables) -> None:
    """Last branch and first driver of each model, each model once."""
    for model in {gpu.name: gpu.model for gpu in gpus}.values():
        if model is None or target.branch is None:
            continue
        last, first = model.newest_driver_branch, architectures(tables)[model.architecture].open_since_branch
        if last is not None and target.branch > last:
            target.problem("GF704", gpu=model.id, architecture=model.architecture, branch=target.branch, last=last)
        if target.flavour == "open" and first is not None and target.branch < first:
            target.problem("GF714", flavour="open", branch=target.branch, offered=f"open from {first} for {model.id}")
        if model.min_driver and target.version and not at_least(target.version, model.min_driver):
            target.problem("GF706", gpu=model.id, version=target.version, minimum=model.min_driver)
