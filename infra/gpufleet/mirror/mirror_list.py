"""Everything that a stack takes from elsewhere: images, charts, packages with their repositories and keys, files.

Names and versions come from the tables that the roles read. What no table states is listed as unknown, never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

from gpufleet.catalog import DriverBranch, PackageNames, component
from gpufleet.catalog.hosts import FabricPlatform, fabric_platforms
from gpufleet.catalog.packages import build_packages, extra_repositories, toolkit_packages, version_lock
from gpufleet.catalog.platforms import runfile_url
from gpufleet.catalog.versions import upstream
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.hosts import packages, sources
from gpufleet.hosts.driver import installer_url
from gpufleet.hosts.platform import System
from gpufleet.parts.artifact import Image
from gpufleet.places.existing.hosts import (
    host_driver,
    kernel_modules,
    listed_pools,
    mig_layout,
    system,
    target_driver,
)
from gpufleet.places.existing.model import ExistingStack, NodePool, existing_stack, node_pool
from gpufleet.plan.compile import stack_images
from gpufleet.plan.model import Plan
from gpufleet.stackfile.model import Stack


@dataclass(frozen=True)
class Chart:
    """A Helm chart and the repository that holds it."""

    name: str
    version: str
    repository: str


@dataclass(frozen=True)
class Package:
    """A package at its upstream version; the revision that a repository appends is its own. None: the newest there."""

    name: str
    version: str | None
    note: str = ""


@dataclass(frozen=True)
class Key:
    """A signing key. `fingerprint` may be the end of one, as far as a source states it."""

    address: str | None
    fingerprint: str | None


@dataclass(frozen=True)
class Repository:
    """Packages of one repository for one operating system and architecture.

    `address` is the vendor's, None where no table has one; `used` the one that the stack's hosts are given.
    """

    name: str
    os: str
    architecture: str
    address: str | None
    used: str | None
    keys: tuple[Key, ...]
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class File:
    """A single file with its checksum."""

    address: str
    used: str
    sha256: str | None


@dataclass(frozen=True)
class MirrorList:
    """Everything to mirror; `unknown` says what is missing from it, and why."""

    images: tuple[Image, ...]
    charts: tuple[Chart, ...]
    repositories: tuple[Repository, ...]
    files: tuple[File, ...]
    unknown: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; keys in the order of declaration."""
        return asdict(self)


def mirror_list(fleet: Fleet, plan: Plan, today: date) -> MirrorList:
    """What the stack needs; `today` decides which driver branches are still supported where a pool names none."""
    unknown: list[str] = []
    images = tuple(_images(fleet.stack, plan, unknown))
    charts = tuple(_charts(plan, unknown))
    repositories: dict[tuple[str, str, str], Repository] = {}
    files: list[File] = []
    for pool in listed_pools(fleet):
        if pool.owner != "host":
            continue
        for repository in _repositories(pool, existing_stack(fleet), today, unknown, files):
            key = (repository.name, repository.os, repository.architecture)
            repositories[key] = _joined(repositories.get(key), repository)
    return MirrorList(
        images=images,
        charts=charts,
        repositories=tuple(repositories.values()),
        files=tuple(dict.fromkeys(files)),
        unknown=tuple(dict.fromkeys(unknown)),
    )


def _joined(one: Repository | None, other: Repository) -> Repository:
    if one is None:
        return other
    return replace(one, packages=_sorted([*one.packages, *other.packages]))


def _sorted(found: Iterable[Package]) -> tuple[Package, ...]:
    return tuple(sorted(set(found), key=lambda p: (p.name, p.version or "", p.note)))


def _images(stack: Stack, plan: Plan, unknown: list[str]) -> Iterator[Image]:
    found = stack_images(plan.software)
    unknown += found.unknown
    yield from found.known
    for image in sorted({image for team in stack.teams for image in team.images}):
        yield Image(image, image)


def _charts(plan: Plan, unknown: list[str]) -> Iterator[Chart]:
    for chart in filter(None, (artifact.chart_used() for artifact in plan.software)):
        if chart.repository is not None:
            yield Chart(chart.name, chart.version, chart.repository)
        else:
            unknown.append(f"chart {chart.name}: it is taken from disk, with what it depends on")


def _repositories(
    pool: FleetPool, stack: ExistingStack, today: date, unknown: list[str], files: list[File]
) -> Iterator[Repository]:
    """The repositories of one pool's hosts. What cannot be told goes into `unknown`, single files into `files`."""
    spec = node_pool(pool)
    branch, version = target_driver(pool, today)
    if branch is None or version is None:
        unknown.append(f"driver version of pool {pool.name}: set {pool.path}.driverVersion")
    elif not (spec.driver_branch or spec.driver_version):
        unknown.append(
            f"driver version of pool {pool.name} after today: none is stated, so the roles take the newest long-term"
            f" branch of their table, now {version}; set {pool.path}.driverBranch or driverVersion"
        )
    if host_driver(spec).method == "runfile" and version is not None:
        files.append(_runfile(spec, stack, version))
    seen = system(spec)
    if seen is None:
        unknown.append(f"packages for the hosts of pool {pool.name}: set {pool.path}.os, such as ubuntu-24.04")
        return
    if branch is not None and version is not None:
        yield from _driver(pool, stack, seen, branch, version, unknown)
    yield _toolkit(stack, seen)
    yield _distribution(pool, seen, unknown)
    if mig_layout(pool) is not None:
        manager = component("mig-parted")
        unknown.append(
            f"address of the package nvidia-mig-manager {manager.version} ({seen.manager}): no repository of the"
            " vendor has it; take it from the releases of NVIDIA/mig-parted, into a repository that the hosts know"
        )


def _runfile(pool: NodePool, stack: ExistingStack, version: str) -> File:
    vendor, mirror = runfile_url(), stack.hosts.mirror
    own = (mirror.runfile_url if mirror is not None else None) or vendor
    address, used = (installer_url(url, version, pool.architecture) for url in (vendor, own))
    return File(address, used, host_driver(pool).runfile_sha256)


def _driver(
    pool: FleetPool, stack: ExistingStack, seen: System, branch: DriverBranch, version: str, unknown: list[str]
) -> Iterator[Repository]:
    method = host_driver(node_pool(pool)).method
    if method == "runfile":
        return
    row, flavour = packages.names_for(branch.branch, seen, method), kernel_modules(pool, branch)
    names = packages.driver_packages(row, flavour) if row and flavour else []
    if row is None or not names:
        what = f"{flavour or 'any'} modules of branch {branch.branch} for {pool.os}"
        unknown.append(f"driver packages of pool {pool.name}: no table has {what}")
        return
    found = [_package(name, branch, version) for name in names]
    found.append(Package(packages.PERSISTENCED, version, "where the branch has it as a package of its own"))
    found += _fabric(pool, row, seen, branch, version, unknown)
    found.append(Package("*", version, "whatever these depend on in the same repository, at the same version"))
    if method == "distro":
        yield Repository("distro", seen.key, seen.architecture, None, None, (), _sorted(found))
        return
    vendor = sources.vendor("cuda", seen)
    if vendor.url is None:
        unknown.append(f"driver packages for {pool.os} on {seen.architecture}: the vendor has no repository for it")
    keys = tuple(Key(vendor.key_url, key) for key in vendor.fingerprints)
    unknown += [f"address of the key {k.fingerprint} of {vendor.url}" for k in keys if k.address is None]
    mirror = stack.hosts.mirror.cuda if stack.hosts.mirror else None
    used = sources.fill(mirror.url, seen) if mirror else vendor.url
    yield Repository("cuda", seen.key, seen.architecture, vendor.url, used, keys, _sorted(found))


def _package(name: str, branch: DriverBranch, version: str) -> Package:
    filled = packages.filled(name, branch.branch, version)
    if packages.KERNEL_FLAVOUR in filled:
        note = "one for each kernel flavour in use, such as generic, at the kernel's version"
        return Package(filled, None, note)
    return Package(filled, version)


def _fabrics(pool: FleetPool) -> Iterator[FabricPlatform]:
    """The fabrics that a pool's hosts may have. The roles look for NVSwitch on the host; the model says where it may
    be."""
    model = pool.hardware.model
    members = set(model.members or (model.id,)) if model else set()
    yield from (row for row in fabric_platforms().values() if members & set(row.gpus))


def _fabric(
    pool: FleetPool, row: PackageNames, seen: System, branch: DriverBranch, version: str, unknown: list[str]
) -> Iterator[Package]:
    """Packages of the NVLink fabric."""
    for fabric in _fabrics(pool):
        where = "where the host has NVSwitch" if "fabric_manager" in fabric.roles else ""
        for name in packages.fabric_packages(row, fabric.roles, seen.architecture):
            yield Package(packages.filled(name, branch.branch, version), version, where)
        for role in packages.missing_roles(row, fabric.roles, seen.architecture):
            unknown.append(f"{role} of driver {version} for pool {pool.name}: no table names a package")
        for name in fabric.vendor_packages:
            yield Package(name, None, where)


def _toolkit(stack: ExistingStack, seen: System) -> Repository:
    vendor = sources.vendor("container-toolkit", seen)
    mirror = stack.hosts.mirror.toolkit if stack.hosts.mirror else None
    return Repository(
        name="container-toolkit",
        os=seen.key,
        architecture=seen.architecture,
        address=vendor.url,
        used=sources.fill(mirror.url, seen) if mirror else vendor.url,
        keys=tuple(Key(vendor.key_url, key) for key in vendor.fingerprints),
        packages=_sorted(Package(row.package, upstream(row.version)) for row in toolkit_packages()),
    )


def _distribution(pool: FleetPool, seen: System, unknown: list[str]) -> Repository:
    """What comes from the operating system's own repositories, which the hosts have already."""
    headers = seen.row.headers if seen.row else ()
    found = [Package(name, None, "<kernel> is `uname -r` of the hosts") for name in headers]
    builds = build_packages(seen.manager, runfile=True)
    found += [Package(name, None, "with the compiler that it depends on") for name in builds]
    lock = version_lock(seen.key)
    if lock and host_driver(node_pool(pool)).method != "runfile":
        found.append(Package(lock, None, "the roles hold versions with it"))
    found += [Package(name, None) for fabric in _fabrics(pool) for name in fabric.system_packages]
    extra = ", ".join(extra_repositories(seen.key))
    if extra:
        unknown.append(f"addresses and keys of {extra} for {seen.key}: the host's own, which dkms comes from")
    return Repository("operating system", seen.key, seen.architecture, None, None, (), _sorted(found))
