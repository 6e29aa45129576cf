"""Operating systems of hosts, and the directory that the vendor's driver repository has for each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from gpufleet.catalog.reading import STANDARD, Tables, kept, table, typed


class Platform(NamedTuple):
    """One operating system. `platform`: ID of os-release, dash, version (major only for the RHEL family)."""

    platform: str
    family: str  # debian, redhat
    support: str  # first-class, documented, refused
    routes: tuple[str, ...]  # ways to a driver: cuda_repo, distro, runfile, none
    headers: tuple[str, ...]  # packages with the headers of the running kernel; <kernel> = output of uname -r
    initramfs: str  # command that rebuilds it
    source: str
    as_of: str
    reason: str | None = None  # of a refusal, or of a limit

    @property
    def manager(self) -> str:
        """The package manager: apt or dnf."""
        return "apt" if self.family == "debian" else "dnf"


class RepoDirectory(NamedTuple):
    """Directory of an operating system in the vendor's package repository; None: the vendor has none."""

    platform: str  # ID of os-release, dash, version
    directory: str | None
    status: str  # supported, legacy, none
    note: str | None
    source: str
    as_of: str


class RepositoryKey(NamedTuple):
    """The key that the vendor signs a directory with; directory None is the rest."""

    directory: str | None
    manager: str
    file: str | None  # its name in the repository; None: not known
    key: str  # fingerprint, or the end of it that is known
    sha1: bool  # its own signature is SHA-1, which apt with sqv refuses from `sha1_end` on
    sha1_end: str | None


class RetiredKey(NamedTuple):
    """A key that must not be trusted any more."""

    key: str
    retired: str


class ToolkitRepository(NamedTuple):
    """The tree of the container toolkit for one package manager."""

    manager: str
    url: str
    suite: str | None
    key: str
    sign: str  # part of an address that says that it is this repository, or a copy of it


class KernelHeaders(NamedTuple):
    """Kernels whose headers come in other packages. `match` is a part of `uname -r`."""

    match: str
    packages: tuple[str, ...]


@kept
def platforms(tables: Tables) -> Mapping[str, Platform]:
    """Every operating system by name, such as ubuntu-24.04."""
    rows = [typed(Platform, row) for row in tables.rows("platforms", "platforms")]
    return MappingProxyType({row.platform: row for row in rows})


@kept
def platform_names(tables: Tables) -> tuple[str, ...]:
    """What may be written for an operating system, sorted: every name, and the aliases with the same versions."""
    names = list(platforms(tables))
    for row in tables.rows("platforms", "platform_aliases"):
        same = [n for n in platforms(tables) if n.startswith(f"{row['platform']}-")]
        names += [f"{row['alias']}{n.removeprefix(row['platform'])}" for n in same]
    return tuple(sorted(names))


def platform_key(identity: str, version: str, tables: Tables = STANDARD) -> str:
    """The name that the tables know a system by (rocky 9.6 is rhel-9): by version, major version, or ID alone.

    A system that no table knows has its ID and version as name.
    """
    aliases = {row["alias"]: row["platform"] for row in tables.rows("platforms", "platform_aliases")}
    name = aliases.get(identity, identity)
    keys = (f"{name}-{version}", f"{name}-{version.split('.', maxsplit=1)[0]}", name)
    return next((key for key in keys if key in platforms(tables)), keys[0])


def platform(name: str, tables: Tables = STANDARD) -> Platform | None:
    """The row for `ID-VERSION_ID` of os-release, or None."""
    identity, _, version = name.partition("-")
    return platforms(tables).get(platform_key(identity, version, tables))


@kept
def repo_directories(tables: Tables) -> Mapping[str, RepoDirectory]:
    """Every operating system that the table knows, by `ID-VERSION` of os-release."""
    rows = [typed(RepoDirectory, row) for row in tables.rows("repositories", "repo_directories")]
    return MappingProxyType({row.platform: row for row in rows})


def architecture_directory(machine: str, tables: Tables = STANDARD) -> str | None:
    """Directory of a CPU architecture in the vendor's repository: `aarch64` is called `sbsa` there. None: unknown."""
    rows = tables.rows("repositories", "architecture_directories")
    return {row["architecture"]: row["directory"] for row in rows}.get(machine)


def cuda_tree(key: str, architecture: str, tables: Tables = STANDARD) -> str | None:
    """`ubuntu2404/x86_64`: the tree of the vendor's driver repository, or None: there is none.

    Only the table decides: no directory is ever built from a version number.
    """
    row = repo_directories(tables).get(key)
    machine = architecture_directory(architecture, tables)
    missing = {(r["directory"], r["architecture"]) for r in tables.rows("host_repositories", "missing_trees")}
    if row is None or row.directory is None or machine is None or (row.directory, architecture) in missing:
        return None
    return f"{row.directory}/{machine}"


repository_keys = table("host_repositories", "repository_keys", RepositoryKey)
retired_keys = table("host_repositories", "retired_keys", RetiredKey)
toolkit_repositories = table("host_toolkit", "toolkit_repositories", ToolkitRepository)
kernel_headers = table("host_kernel", "kernel_headers", KernelHeaders)


def cuda_url(tables: Tables = STANDARD) -> str:
    """Address of the vendor's driver repository with <directory> and <architecture directory>."""
    return str(next(row["url"] for row in tables.rows("repositories", "repositories") if row["id"] == "cuda"))


def cuda_sign(tables: Tables = STANDARD) -> str:
    """The part of an address that says that it is the vendor's driver repository, or a copy of it."""
    return str(next(row["sign"] for row in tables.rows("repositories", "repositories") if row["id"] == "cuda"))


def toolkit_key(tables: Tables = STANDARD) -> str:
    """The end of the fingerprint of the container toolkit's key."""
    rows = tables.rows("repositories", "signing_keys")
    return str(next(row["short_id"] for row in rows if row["use"].startswith("container toolkit")))


def runfile_url(tables: Tables = STANDARD) -> str:
    """Address of NVIDIA's installer files with <version> and <machine>."""
    return str(tables.rows("host_repositories", "runfiles")[0]["url"])
