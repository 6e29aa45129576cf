"""Names of packages: of the driver by branch and repository, of the container toolkit, and what stands in their way."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

from gpufleet.catalog.reading import STANDARD, Tables, kept, table, typed

#: Columns with packages that carry exactly the driver's version and serve the NVLink fabric.
FABRIC_ROLES = ("fabric_manager", "nscq", "nvsdm", "imex")
_NOTHING: Mapping[str, str | None] = MappingProxyType({})


class PackageNames(NamedTuple):
    """Names of the driver's packages on one route, for a range of branches. None: no such package there.

    `<branch>` and `<version>` stand for the branch number and the full driver version, `<kernel flavour>` for the end
    of the kernel's name, such as generic.
    """

    id: str
    repo: str
    method: str  # the route that the row is for: cuda_repo, distro
    os_family: str  # debian, redhat
    min_branch: int | None  # inclusive; None: open end
    max_branch: int | None
    driver_meta: Mapping[str, str | None]  # flavour -> the package that brings everything
    version_bound: tuple[str, ...]
    source: str
    as_of: str
    systems: tuple[str, ...] = ()  # IDs of os-release that it is for; empty: every other one of the family
    compute_only: Mapping[str, tuple[str, ...] | None] | None = None  # flavour -> packages without graphics
    utils: str | None = None
    signed_modules: Mapping[str, str | None] = _NOTHING  # flavour -> modules that the distribution built and signed
    fabric_manager: str | None = None
    nscq: str | None = None
    nvsdm: str | None = None
    imex: str | None = None
    pinning: tuple[str, ...] | None = None

    def name(self, role: str) -> str | None:
        """The package of a fabric role."""
        return dict(zip(FABRIC_ROLES, (self.fabric_manager, self.nscq, self.nvsdm, self.imex), strict=True))[role]


class DriverName(NamedTuple):
    """Names of packages that are, or are not, a part of a driver."""

    names: str  # shell pattern
    driver: bool
    pinned: bool = False  # apt keeps them at one version
    unattended: bool = False  # unattended-upgrades leaves them alone


class ForeignPackages(NamedTuple):
    """Driver packages of another source than the wanted one."""

    manager: str
    method: str | None
    pattern: str
    origin: str
    unless: str | None = None


class KmodProvider(NamedTuple):
    """Packages that bring the kernel module on dnf; only one kind may be there."""

    kmod: str
    pattern: str


class FlavourPackages(NamedTuple):
    """Packages of one flavour of the kernel modules; with the other flavour they go."""

    manager: str
    flavour: str
    pattern: str
    id: str | None = None


class ToolkitPackage(NamedTuple):
    """One package of the container toolkit at the version that the catalogue takes."""

    package: str
    version: str


class CdiRuntime(NamedTuple):
    """A container runtime, and from which version on it resolves the CDI devices that a kubelet hands it."""

    runtime: str  # an owner of gpu_runtime_owner
    minimum: str | None  # None: no version is known to
    on_since: str | None  # from here on without a setting


class EmbeddedContainerd(NamedTuple):
    """The containerd that a distribution carries."""

    owner: str  # an owner of gpu_runtime_owner
    program: str
    template: str  # what the distribution makes its file of, when it is there


class ToolkitMinimum(NamedTuple):
    """The lowest toolkit for something that a host runs."""

    minimum: str
    when: str
    reason: str


@kept
def package_names(tables: Tables) -> tuple[PackageNames, ...]:
    """Every row."""
    return tuple(typed(PackageNames, row) for row in tables.rows("packages", "package_names"))


def packages_for(
    branch: int, os_family: str, method: str = "cuda_repo", system: str = "", tables: Tables = STANDARD
) -> PackageNames | None:
    """The row that holds for a driver branch, or None. One that names the operating system comes before the others."""
    fits = [
        row for row in package_names(tables)
        if (row.os_family, row.method) == (os_family, method)
        and (row.min_branch or 0) <= branch and (row.max_branch is None or branch <= row.max_branch)
        and (not row.systems or system in row.systems)
    ]  # fmt: skip
    return min(fits, key=lambda row: not row.systems, default=None)


def _templates(row: PackageNames) -> list[str]:
    """Every name in a row."""
    named = [*row.driver_meta.values(), row.utils, *row.signed_modules.values(), *map(row.name, FABRIC_ROLES)]
    compute = [name for names in (row.compute_only or {}).values() for name in names or ()]
    return [name for name in (*named, *compute) if name]


@kept
def driver_names(tables: Tables) -> tuple[DriverName, ...]:
    """The table's patterns, and each name of a row of packages.yaml that fits none of them."""
    found = [typed(DriverName, row) for row in tables.rows("packages", "driver_names")]
    for pattern in dict.fromkeys(re.sub("<[^>]+>", "*", n) for row in package_names(tables) for n in _templates(row)):
        if not any(fnmatchcase(pattern, row.names) for row in found):
            found.append(DriverName(pattern, driver=True, pinned=True, unattended=True))
    return tuple(found)


def is_driver(name: str, tables: Tables = STANDARD) -> bool:
    """Whether an installed package of this name belongs to a driver."""
    found = [row for row in driver_names(tables) if fnmatchcase(name, row.names)]
    return bool(found) and all(row.driver for row in found)


@kept
def reported_packages(tables: Tables) -> tuple[str, ...]:
    """Shell patterns of the installed packages that decisions look at."""
    own = (row["names"] for row in tables.rows("packages", "reported_packages"))
    return tuple(dict.fromkeys([*own, *(row.names for row in driver_names(tables))]))


@kept
def vendor_packages(tables: Tables) -> tuple[str, ...]:
    """Shell patterns of packages that a driver or a fabric may bring along."""
    rows = tables.rows("fabric", "fabric_platforms")
    named = (name for row in rows for name in (*row["vendor_packages"], *row["system_packages"]))
    return tuple(dict.fromkeys([*(row.names for row in driver_names(tables) if row.driver), *named]))


@kept
def fabric_package(tables: Tables) -> re.Pattern[str]:
    """Every name that a package of the fabric has in any row."""
    names = {name for row in package_names(tables) for role in FABRIC_ROLES if (name := row.name(role))}
    return _any_of(names)


@kept
def pinning_package(tables: Tables) -> re.Pattern[str]:
    """Packages that pin a driver; its one group that matches is the branch or version that they pin."""
    names = {name for row in package_names(tables) for name in row.pinning or ()}
    return re.compile("|".join(sorted({re.sub(r"<\w+>", "(.+)", name) for name in names})))


def _any_of(names: set[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(name).replace("<branch>", r"\d+") for name in sorted(names)))


@kept
def modular_platforms(tables: Tables) -> frozenset[str]:
    """Platforms on which the driver comes in dnf module streams."""
    return frozenset(name for row in tables.rows("packages", "rpm_modularity") for name in row["modular"])


def stream_module(tables: Tables = STANDARD) -> str:
    """The dnf module whose streams are branches of the driver."""
    return str(tables.rows("packages", "rpm_modularity")[0]["stream_module"])


@kept
def role_architectures(tables: Tables) -> Mapping[str, tuple[str, ...]]:
    """Fabric role -> machines that it exists for; a role that is not there exists for all."""
    rows = tables.rows("packages", "role_architectures")
    return MappingProxyType({row["role"]: tuple(row["architectures"]) for row in rows})


def build_packages(manager: str, *, runfile: bool, tables: Tables = STANDARD) -> list[str]:
    """What builds the kernel module and is in no repository of the vendor. A runfile needs it everywhere."""
    rows = tables.rows("host_repositories", "build_packages")
    return [str(row["package"]) for row in rows if runfile or row["manager"] == manager]


def version_lock(platform: str, tables: Tables = STANDARD) -> str | None:
    """The plugin of dnf that holds versions on a platform."""
    rows = tables.rows("host_repositories", "version_lock")
    return next((str(row["package"]) for row in rows if row["platform"] == platform), None)


def extra_repositories(platform: str, tables: Tables = STANDARD) -> tuple[str, ...]:
    """Repositories of the operating system that a driver needs beside the usual ones."""
    rows = tables.rows("host_repositories", "extra_repositories")
    return tuple(name for row in rows if row["platform"] == platform for name in row["repositories"])


@kept
def ended_packages(tables: Tables) -> tuple[str, ...]:
    """Packages that ended and stand in the toolkit's way."""
    return tuple(row["package"] for row in tables.rows("host_toolkit", "ended_packages"))


@kept
def keyring_packages(tables: Tables) -> frozenset[str]:
    """Packages that would bring the vendor's own source back at their next upgrade."""
    return frozenset(row["package"].partition("_")[0] for row in tables.rows("repositories", "keyring_packages"))


foreign_packages = table("host_kernel", "foreign_packages", ForeignPackages)
kmod_providers = table("host_kernel", "kmod_providers", KmodProvider)
flavour_packages = table("host_kernel", "flavour_packages", FlavourPackages)
toolkit_packages = table("platforms", "toolkit_packages", ToolkitPackage)
toolkit_minimums = table("host_toolkit", "toolkit_minimums", ToolkitMinimum)
cdi_runtimes = table("host_toolkit", "cdi_runtimes", CdiRuntime)
embedded_containerd = table("host_toolkit", "embedded_containerd", EmbeddedContainerd)
