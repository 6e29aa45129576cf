"""What is left to do on a host: items of work, and the plan of each role. An empty plan is a host as wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """A finding in the making: its code, and what fills its text; `severity` where it differs from the rule's."""

    code: str
    values: Mapping[str, Any] = {}


@dataclass(frozen=True)
class WantedFile:
    """A file as it has to be."""

    path: str
    content: str
    mode: str = "0644"


@dataclass(frozen=True)
class Keyring:
    """A key to install, from its text or from an address."""

    path: str
    text: str
    url: str
    fingerprints: tuple[str, ...]


@dataclass(frozen=True)
class UnitChange:
    """What changes about a systemd unit; None is left alone."""

    name: str
    masked: bool | None = None
    enabled: bool | None = None
    state: str | None = None  # started, stopped, restarted, reloaded

    @property
    def words(self) -> str:
        """The change in words."""
        said = [self.state] if self.state else []
        said += [] if self.enabled is None else ["enabled" if self.enabled else "disabled"]
        return " ".join([f"unit {self.name}", *said, *(["unmasked"] if self.masked is False else [])])


@dataclass(frozen=True)
class WantedPackage:
    """A package to ask a repository for; an empty `repository` is the host's own. `version` None: any."""

    name: str
    version: str | None
    repository: str
    part: str  # driver, fabric, headers, build, toolkit, mig
    optional: bool = False

    @property
    def words(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version or ''}".rstrip()


@dataclass(frozen=True)
class FoundPackage:
    """A package at the exact version that a repository has."""

    name: str
    version: str | None = None
    part: str = "driver"


@dataclass(frozen=True)
class Index:
    """A repository whose index the module `resolve` reads."""

    id: str
    manager: str
    url: str
    suite: str
    components: tuple[str, ...]
    architecture: str


@dataclass(frozen=True)
class Request:
    """A question to the repositories, in the form of the module `resolve`."""

    want: tuple[WantedPackage, ...]
    repositories: tuple[Index, ...] = ()
    urls: tuple[str, ...] = ()

    def __add__(self, other: Request) -> Request:
        """Both questions in one."""
        return Request(
            self.want + other.want, self.repositories + other.repositories, self.urls + other.urls
        )


@dataclass(frozen=True)
class Runfile:
    """NVIDIA's installer: to run, or to uninstall what it installed."""

    url: str | None = None
    checksum: str | None = None
    path: str | None = None
    arguments: tuple[str, ...] = ()
    replaces: bool = False
    uninstall: bool = False


@dataclass
class Work:
    """What every role may have to do. The lists fill up while a role decides."""

    problems: list[Problem] = field(default_factory=list)
    files: list[WantedFile] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    keyrings: list[Keyring] = field(default_factory=list)
    install: list[FoundPackage] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    hold: list[str] = field(default_factory=list)
    release: list[str] = field(default_factory=list)
    stop: list[UnitChange] = field(default_factory=list)
    units: list[UnitChange] = field(default_factory=list)
    unload: list[str] = field(default_factory=list)
    load: list[str] = field(default_factory=list)
    initramfs: list[str] = field(default_factory=list)
    resolve: Request | None = None  # has to be answered before the plan is complete
    remove_files: list[str] = field(default_factory=list)

    @property
    def due(self) -> bool:
        """Whether the role has something to do or to report."""
        return bool(describe(self) or self.problems or self.resolve)


@dataclass
class DriverWork(Work):
    """The driver's plan. `reboot`: why one is required."""

    target: dict[str, Any] = field(default_factory=dict)
    runfile: Runfile | None = None
    reboot: list[str] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    repair: bool = False
    kernels: list[str] = field(default_factory=list)

    @property
    def due(self) -> bool:
        """Also a reboot, and the installer."""
        return bool(super().due or self.reboot or self.runfile)


@dataclass
class FabricWork(Work):
    """The fabric's plan."""

    fabric: str = "none"
    how: str = ""


@dataclass
class ToolkitWork(Work):
    """The toolkit's plan. `files` are put back when the runtime refuses them; `afterwards` restarts after removals."""

    owner: str = ""
    sources: list[WantedFile] = field(default_factory=list)
    restart: list[UnitChange] = field(default_factory=list)
    afterwards: list[UnitChange] = field(default_factory=list)
    hints: dict[str, Any] = field(default_factory=dict)
    before: str = ""
    repair: bool = False

    @property
    def due(self) -> bool:
        """Also hints for whoever owns the runtime."""
        return bool(super().due or self.hints)


@dataclass
class MigWork(Work):
    """The plan for MIG. `cdi`: the devices have to be described to containers anew."""

    apply: bool = False
    reload: bool = False
    reboot: list[str] = field(default_factory=list)
    cdi: bool = False

    @property
    def due(self) -> bool:
        """Also a layout to apply, and a reboot."""
        return bool(super().due or self.reboot or self.apply)


@dataclass
class HealthWork(Work):
    """The plan for GPU settings. `waiting`: GPUs whose fabric is still coming up."""

    reload: bool = False
    reboot: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    wait_seconds: int = 0
    healthy: bool = True

    @property
    def due(self) -> bool:
        """Also a reboot, and GPUs to wait for."""
        return bool(super().due or self.reboot or self.waiting)


def describe(work: Work) -> list[str]:
    """What a plan is going to change, in words: for verify and for the output of a run."""
    lines = [f"file {item.path}" for item in work.files]
    lines += [f"remove file {path}" for path in work.absent]
    lines += [f"key {item.path}" for item in work.keyrings]
    lines += [f"package {item.name} {item.version or ''}".rstrip() for item in work.install]
    lines += [f"remove package {name}" for name in work.remove]
    lines += [f"hold {name}" for name in work.hold]
    lines += [f"release {name}" for name in work.release]
    lines += [unit.words for unit in work.units]
    lines += [f"unload module {name}" for name in work.unload]
    lines += [f"load module {name}" for name in work.load]
    return [*lines, *(["rebuild initramfs"] if work.initramfs else [])]


def plain(value: Any) -> Any:
    """Items of work as the roles' tasks and modules read them: mappings and lists. What is left alone is left out."""
    if isinstance(value, Work):
        return _variables(value)
    if is_dataclass(value):
        named = {f.name: getattr(value, f.name) for f in fields(value)}
        return {name: plain(part) for name, part in named.items() if part is not None or name == "version"}
    if isinstance(value, (list, tuple)) and not isinstance(value, Problem):
        return [plain(item) for item in value]
    return value


def _variables(work: Work) -> dict[str, Any]:
    """A plan as the roles' tasks read it; the problems stay what they are."""
    found = {f.name: plain(getattr(work, f.name)) for f in fields(work)}
    found["packages"] = {"install": found.pop("install"), "remove": found.pop("remove")}
    return {name: {} if value is None else value for name, value in found.items()}
