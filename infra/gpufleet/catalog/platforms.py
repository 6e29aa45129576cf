"""Operating systems of hosts, and the directory that the vendor's driver repository has for each."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from gpufleet.catalog import reading
from gpufleet.catalog.hosts import architecture_directory, repo_directories


class Platform(NamedTuple):
    """One operating system. `id`: ID of os-release, dash, version (major only for the RHEL family)."""

    id: str
    family: str  # debian, redhat
    support: str  # first-class, documented, refused
    routes: tuple[str, ...]  # ways to a driver: cuda_repo, distro, runfile, none
    headers: tuple[str, ...]  # packages with the headers of the running kernel; <kernel> = output of uname -r
    source: str
    as_of: str
    reason: str | None = None  # of a refusal, or of a limit

    @property
    def manager(self) -> str:
        """The package manager: apt or dnf."""
        return "apt" if self.family == "debian" else "dnf"


@cache
def platforms() -> Mapping[str, Platform]:
    """Every operating system by id."""
    return MappingProxyType({
        row["platform"]: Platform(
            row["platform"],
            row["family"],
            row["support"],
            tuple(row["routes"]),
            tuple(row["headers"]),
            row["source"],
            row["as_of"],
            row.get("reason"),
        )
        for row in reading.rows("platforms", "platforms")
    })


@cache
def platform_names() -> tuple[str, ...]:
    """What may be written for an operating system, sorted: every id, and the aliases with the same versions."""
    names = list(platforms())
    for row in reading.rows("platforms", "platform_aliases"):
        same = [n for n in platforms() if n.startswith(f"{row['platform']}-")]
        names += [f"{row['alias']}{n.removeprefix(row['platform'])}" for n in same]
    return tuple(sorted(names))


def platform(name: str) -> Platform | None:
    """The row for `ID-VERSION_ID` of os-release (rocky-9.6 is rhel-9): by version, then major version, then id alone.

    None: the table does not know it. The roles look hosts up in the same order.
    """
    identity, _, version = name.partition("-")
    aliases = {row["alias"]: row["platform"] for row in reading.rows("platforms", "platform_aliases")}
    identity = aliases.get(identity, identity)
    keys = (f"{identity}-{version}", f"{identity}-{version.split('.', maxsplit=1)[0]}", identity)
    return next((platforms()[key] for key in keys if key in platforms()), None)


def cuda_tree(system: Platform, architecture: str) -> str | None:
    """`ubuntu2404/x86_64`: the tree of the vendor's driver repository, or None: there is none."""
    row = repo_directories().get(system.id)
    machine = architecture_directory(architecture)
    missing = {(r["directory"], r["architecture"]) for r in reading.rows("host_repositories", "missing_trees")}
    if row is None or row.directory is None or machine is None or (row.directory, architecture) in missing:
        return None
    return f"{row.directory}/{machine}"
