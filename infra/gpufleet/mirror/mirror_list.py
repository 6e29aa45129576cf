"""Everything that a stack takes from elsewhere: images, charts, packages with their repositories and keys, files.

Names and versions come from the tables that the roles read. What no table states is listed as unknown, never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from gpufleet.catalog import DriverBranch, component, packages_for, reading
from gpufleet.catalog.platforms import Platform, cuda_tree, platform
from gpufleet.inventory.inventory import mig_layout
from gpufleet.parts.artifact import Image
from gpufleet.places.existing.model import ExistingStack, NodePool
from gpufleet.places.existing.place import hardware_of
from gpufleet.plan.compile import stack_images
from gpufleet.plan.hosts import host_driver, kernel_modules, listed_pools, target_driver
from gpufleet.plan.model import Plan
from gpufleet.stackfile.model import Stack

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


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


def mirror_list(stack: Stack, plan: Plan, today: date) -> MirrorList:
    """What the stack needs; `today` decides which driver branches are still supported where a pool names none."""
    unknown: list[str] = []
    images = tuple(_images(stack, plan, unknown))
    charts = tuple(_charts(plan, unknown))
    repositories: dict[tuple[str, str, str], Repository] = {}
    files: list[File] = []
    if isinstance(stack, ExistingStack):
        for i, pool in listed_pools(stack):
            if pool.driver != "host":
                continue
            for repository in _repositories(pool, stack, i, today, unknown, files):
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
    packages = _sorted([*one.packages, *other.packages])
    return Repository(one.name, one.os, one.architecture, one.address, one.used, one.keys, packages)


def _sorted(packages: Iterable[Package]) -> tuple[Package, ...]:
    return tuple(sorted(set(packages), key=lambda p: (p.name, p.version or "", p.note)))


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
    pool: NodePool, stack: ExistingStack, i: int, today: date, unknown: list[str], files: list[File]
) -> Iterator[Repository]:
    """The repositories of one pool's hosts. What cannot be told goes into `unknown`, single files into `files`."""
    branch, version = target_driver(pool, today)
    if branch is None or version is None:
        unknown.append(f"driver version of pool {pool.name}: set pools[{i}].driverVersion")
    elif not (pool.driver_branch or pool.driver_version):
        unknown.append(
            f"driver version of pool {pool.name} after today: none is stated, so the roles take the newest long-term"
            f" branch of their table, now {version}; set pools[{i}].driverBranch or driverVersion"
        )
    if host_driver(pool).method == "runfile" and version is not None:
        files.append(_runfile(pool, stack, version))
    system = platform(pool.os) if pool.os else None
    if system is None:
        unknown.append(f"packages for the hosts of pool {pool.name}: set pools[{i}].os, such as ubuntu-24.04")
        return
    if branch is not None and version is not None:
        yield from _driver(pool, stack, system, branch, version, unknown)
    yield _toolkit(pool, stack, system)
    yield _distribution(pool, system, unknown)
    if mig_layout(pool, stack) is not None:
        manager = component("mig-parted")
        unknown.append(
            f"address of the package nvidia-mig-manager {manager.version} ({system.manager}): no repository of the"
            " vendor has it; take it from the releases of NVIDIA/mig-parted, into a repository that the hosts know"
        )


def _runfile(pool: NodePool, stack: ExistingStack, version: str) -> File:
    def filled(url: str) -> str:
        return url.replace("<version>", version).replace("<machine>", pool.architecture)

    vendor = str(reading.rows("host_repositories", "runfiles")[0]["url"])
    mirror = stack.hosts.mirror
    own = mirror.runfile_url if mirror is not None else None
    return File(filled(vendor), filled(own or vendor), host_driver(pool).runfile_sha256)


def _driver(
    pool: NodePool, stack: ExistingStack, system: Platform, branch: DriverBranch, version: str, unknown: list[str]
) -> Iterator[Repository]:
    method = host_driver(pool).method
    if method == "runfile":
        return
    row = packages_for(branch.branch, system.family, "ubuntu-archive" if method == "distro" else "cuda")
    flavour = kernel_modules(pool, branch)
    if row is None or flavour is None or not row.names["driver_meta"].get(flavour):
        what = f"{flavour or 'any'} modules of branch {branch.branch} for {pool.os}"
        unknown.append(f"driver packages of pool {pool.name}: no table has {what}")
        return
    names = [str(row.names["driver_meta"][flavour])]
    names += [str(row.names["utils"])] if row.names.get("utils") else []
    signed = row.names.get("signed_modules")
    packages = [Package(_filled(name, branch, version), version) for name in names]
    if signed:
        note = "one for each kernel flavour in use, such as generic, at the kernel's version"
        packages.append(Package(_filled(str(signed[flavour]), branch, version), None, note))
    packages.append(Package("nvidia-persistenced", version, "where the branch has it as a package of its own"))
    packages += _fabric(pool, row.names, branch, version, unknown)
    packages.append(Package("*", version, "whatever these depend on in the same repository, at the same version"))
    if method == "distro":
        yield Repository("distro", system.id, pool.architecture, None, None, (), _sorted(packages))
        return
    tree = cuda_tree(system, pool.architecture)
    address = None
    if tree is not None:
        distro, machine = tree.split("/")
        template = str(reading.rows("repositories", "repositories")[0]["url"])
        address = template.replace("<directory>", distro).replace("<architecture directory>", machine)
    mirror = stack.hosts.mirror.cuda if stack.hosts.mirror else None
    used = _used(mirror.url, tree, pool.architecture) if mirror else address
    keys = tuple(_cuda_keys(address, system.manager))
    if address is None:
        unknown.append(f"driver packages for {pool.os} on {pool.architecture}: the vendor has no repository for it")
    unknown += [f"address of the key {k.fingerprint} of {address}" for k in keys if k.address is None]
    yield Repository("cuda", system.id, pool.architecture, address, used, keys, _sorted(packages))


def _filled(name: str, branch: DriverBranch, version: str) -> str:
    return name.replace("<branch>", str(branch.branch)).replace("<version>", version)


def _used(url: str, tree: str | None, machine: str) -> str:
    distro, _, directory = (tree or "").partition("/")
    filled = url.replace("<directory>", distro).replace("<architecture directory>", directory)
    return filled.replace("<machine>", machine).replace("<architecture>", _MACHINES[machine])


def _fabric(pool: NodePool, names: Any, branch: DriverBranch, version: str, unknown: list[str]) -> Iterator[Package]:
    """Packages of the NVLink fabric. The roles look for NVSwitch on the host; here the model says where it may be."""
    model = hardware_of(pool).model
    members = set(model.members or (model.id,)) if model else set()
    for row in reading.rows("fabric", "fabric_platforms"):
        if not members & set(row["gpus"]):
            continue
        kinds = [k for k, wanted in (("fabric_manager", "fabric_manager"), ("nscq", "fabric_manager"),
                                     ("nvsdm", "nvlsm"), ("imex", "imex")) if row[wanted]]  # fmt: skip
        if pool.architecture != "x86_64":
            kinds = [k for k in kinds if k != "nvsdm"]  # x86_64 only (packages.yaml)
        where = "where the host has NVSwitch" if row["fabric_manager"] else ""
        for kind in kinds:
            if names.get(kind):
                yield Package(_filled(str(names[kind]), branch, version), version, where)
            else:
                unknown.append(f"{kind} of driver {version} for pool {pool.name}: no table names a package")
        if row["nvlsm"]:
            yield Package("nvlsm", None, where)


def _cuda_keys(address: str | None, manager: str) -> Iterator[Key]:
    """The key of a directory of the vendor's repository, by the table that the roles use."""
    if address is None:
        return
    directory = address.rstrip("/").split("/")[-2]
    rows = [r for r in reading.rows("host_repositories", "repository_keys") if r["manager"] == manager]
    own = [r for r in rows if r["directory"] == directory] or [r for r in rows if r["directory"] is None]
    for row in own[:1]:
        yield Key(f"{address}{row['file']}" if row["file"] else None, row["key"])


def _toolkit(pool: NodePool, stack: ExistingStack, system: Platform) -> Repository:
    row = next(r for r in reading.rows("host_toolkit", "toolkit_repositories") if r["manager"] == system.manager)
    address = _used(str(row["url"]), None, pool.architecture)
    key = next(k for k in reading.rows("repositories", "signing_keys") if k["use"].startswith("container toolkit"))
    mirror = stack.hosts.mirror.toolkit if stack.hosts.mirror else None
    rows = reading.rows("platforms", "toolkit_packages")
    packages = _sorted(Package(r["package"], str(r["version"]).partition("-")[0]) for r in rows)
    return Repository(
        name="container-toolkit",
        os=system.id,
        architecture=pool.architecture,
        address=address,
        used=_used(mirror.url, None, pool.architecture) if mirror else address,
        keys=(Key(str(row["key"]), key["short_id"]),),
        packages=packages,
    )


def _distribution(pool: NodePool, system: Platform, unknown: list[str]) -> Repository:
    """What comes from the operating system's own repositories, which the hosts have already."""
    packages = [Package(name, None, "<kernel> is `uname -r` of the hosts") for name in system.headers]
    packages.append(Package("dkms", None, "with the compiler that it depends on"))
    for row in reading.rows("host_repositories", "version_lock"):
        if row["platform"] == system.id and host_driver(pool).method != "runfile":
            packages.append(Package(str(row["package"]), None, "the roles hold versions with it"))
    model = hardware_of(pool).model
    members = set(model.members or (model.id,)) if model else set()
    if any(row["nvlsm"] and members & set(row["gpus"]) for row in reading.rows("fabric", "fabric_platforms")):
        packages.append(Package("infiniband-diags", None))
    for row in reading.rows("host_repositories", "extra_repositories"):
        if row["platform"] == system.id:
            extra = ", ".join(row["repositories"])
            unknown.append(f"addresses and keys of {extra} for {system.id}: the host's own, which dkms comes from")
    return Repository("operating system", system.id, pool.architecture, None, None, (), _sorted(packages))
