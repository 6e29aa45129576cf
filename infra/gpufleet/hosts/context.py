"""Everything that a decision about one host looks at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from gpufleet.catalog.packages import is_driver
from gpufleet.catalog.reading import STANDARD, Tables
from gpufleet.catalog.versions import branch_of, upstream
from gpufleet.hosts.platform import System, system_of
from gpufleet.hosts.reading import Key, Package, Reading
from gpufleet.hosts.settings import Settings
from gpufleet.hosts.target import Gpu, Target, gpus_of, target_of
from gpufleet.hosts.work import FoundPackage, UnitChange, WantedFile, WantedPackage, Work

#: Programs that use a GPU and are daemons of the driver, not workloads. The kernel cuts names at 15 letters.
_DAEMONS = ("nvidia-persiste", "nv-fabricmanage", "nvidia-imex", "nv-hostengine", "nvidia-smi", "nvidia-mig-part")


class Unreachable(BaseModel):
    """An address that did not answer as it should."""

    url: str
    answer: str


class Answer(BaseModel):
    """What the repositories have, in the form of the fact gpu_resolved. `unknown`: names that nobody could tell."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    request: tuple[WantedPackage, ...] = ()
    packages: tuple[FoundPackage, ...] = ()
    missing: tuple[str, ...] = ()
    available: dict[str, tuple[str, ...]] = {}
    unknown: tuple[str, ...] = ()
    errors: tuple[Unreachable, ...] = ()


@dataclass
class Context:
    """One host: what the probe saw, what the variables want, the tables, and what the repositories have.

    `keys`: the text of each key that the variables hold -> the keys in it, which Ansible's side has read.
    """

    probe: Reading
    settings: Settings
    tables: Tables = STANDARD
    resolved: Answer = field(default_factory=Answer)
    ansible_core: str = ""  # of the controller
    keys: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)

    @cached_property
    def system(self) -> System:
        """The operating system."""
        seen = self.probe.system
        return system_of(seen.id, seen.version_id, seen.architecture, seen.manager, self.tables)

    @cached_property
    def gpus(self) -> list[Gpu]:
        """The GPUs on the bus."""
        return gpus_of(self.probe.hardware.gpus, self.tables)

    @cached_property
    def target(self) -> Target:
        """The wanted driver."""
        return target_of(self.settings, self.gpus, self.probe.system.date, self.tables)

    @property
    def packages(self) -> Mapping[str, Package]:
        """Installed packages of interest by name."""
        return self.probe.packages

    @cached_property
    def driver_family(self) -> dict[str, str]:
        """Installed packages that belong to a driver: name -> driver version."""
        return {
            name: upstream(row.version) for name, row in self.packages.items()
            if is_driver(name, self.tables) and branch_of(upstream(row.version)) >= 300
        }  # fmt: skip

    @property
    def modules(self) -> Mapping[str, int | None]:
        """Loaded kernel modules of interest."""
        return self.probe.kernel.modules

    @property
    def loaded_version(self) -> str | None:
        """Version of the loaded driver, or None."""
        return self.probe.driver.version if self.probe.driver else None

    @property
    def workloads(self) -> list[str]:
        """Names of processes that use a GPU and are not daemons of the driver."""
        return sorted({h.name for h in self.probe.holders if not h.name.startswith(_DAEMONS)})

    @property
    def in_use(self) -> bool:
        """Whether a change of the driver could disturb somebody: a cluster node or a running workload, not drained."""
        busy = bool(self.workloads) or self.probe.system.in_cluster
        return busy and not self.settings.gpu_node_drained

    def answer(self, want: Sequence[WantedPackage]) -> Answer | None:
        """What the repositories said about these packages, or None when they were not asked about all of them.

        A host without package lists cannot say whether its own repositories have a package: any version of it will do
        then, and the package manager decides in the transaction. Where an exact version is wanted it counts as missing.
        """
        if not all(item in self.resolved.request for item in want):
            return None
        parts, names = {item.part for item in want}, {item.name for item in want}
        packages = [p for p in self.resolved.packages if p.part in parts]
        missing = [name for name in self.resolved.missing if name in names]
        for item in want:
            if item.name in self.resolved.unknown and not item.optional and not item.repository:
                if item.version:
                    missing.append(item.name)
                else:
                    packages.append(FoundPackage(item.name, None, item.part))
        changes = {"packages": tuple(packages), "missing": tuple(missing), "request": tuple(want)}
        return self.resolved.model_copy(update=changes)

    def installed(self, name: str, version: str | None = None) -> bool:
        """Whether a package is there, at a vendor's version where one is given."""
        row = self.packages.get(name)
        return row is not None and row.state == "installed" and version in (None, upstream(row.version))

    def unheld(self, name: str, install: Iterable[FoundPackage]) -> bool:
        """Whether a package has to be held: it is not, or it is about to change, which takes apt's hold away."""
        row = self.packages.get(name)
        return row is None or not row.hold or any(item.name == name for item in install)

    def held(self, names: Iterable[str]) -> list[str]:
        """Those of the installed packages that are held."""
        return [name for name in names if self.packages[name].hold]

    def locked(self, install: Iterable[FoundPackage]) -> list[str]:
        """Names whose version lock (dnf) would keep the wanted version away."""
        return [item.name for item in install if item.name in self.packages and self.packages[item.name].lock]

    def file_text(self, path: str) -> str | None:
        """Text of a file that the probe read, None when there is none."""
        record = self.probe.files.get(path)
        return record.text if record else None

    def want_file(self, path: str, content: str, mode: str = "0644") -> list[WantedFile]:
        """The file when it differs from what is there, as a list of none or one."""
        record = self.probe.files.get(path)
        same = record is not None and (record.text, record.mode) == (content, mode)
        return [] if same else [WantedFile(path, content, mode)]

    def unwanted(self, *paths: str) -> list[str]:
        """Those of the paths that exist."""
        return [path for path in paths if path in self.probe.files or path in self.probe.keyrings]

    def want_unit(
        self, name: str, *, enabled: bool = True, active: bool | None = True, coming: bool = False
    ) -> list[UnitChange]:
        """What is left to do for a unit, as a list of none or one. active None leaves the state alone.

        `coming`: a package that is about to be installed brings the unit, enabled and started by its own script.
        """
        unit = self.probe.units.get(name)
        there = unit is not None or coming
        word = unit.enabled if unit else "enabled" if coming else ""
        masked = unit is not None and (unit.load == "masked" or word.startswith("masked"))
        running = unit.active in ("active", "reloading") if unit else coming
        is_enabled = word in ("enabled", "static", "generated", "alias", "indirect")
        change = UnitChange(
            name,
            masked=False if masked and enabled else None,
            enabled=enabled if is_enabled != enabled and (there or enabled) else None,
            state=None if active is None or running == active or not (there or active)
            else "started" if active else "stopped",
        )  # fmt: skip
        return [] if change == UnitChange(name) else [change]


def kernel_packages(probe: Reading) -> list[str]:
    """Installed kernel images, to see whether a transaction brought one."""
    pattern = re.compile(r"^(?:linux-image-\d|kernel(?:-64k|-uek)?(?:-core)?$)")
    return sorted(f"{name} {row.version}" for name, row in probe.packages.items() if pattern.match(name))


@dataclass(frozen=True)
class Undo:
    """What puts files back, as far as the probe read them."""

    write: list[WantedFile]
    remove: list[str]


def undo(context: Context, work: Work) -> Undo:
    """What puts the files of a plan back."""
    written = [item.path for item in work.files]
    files = context.probe.files
    write = [
        WantedFile(path, text, files[path].mode)
        for path in (*written, *work.absent, *work.remove_files)
        if path in files and (text := files[path].text) is not None
    ]
    return Undo(write, [path for path in written if path not in files])
