"""The packages that make up a driver, and whether what is installed may stay beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpufleet.catalog.packages import (
    FABRIC_ROLES,
    PackageNames,
    driver_names,
    flavour_packages,
    foreign_packages,
    kmod_providers,
    packages_for,
    pinning_package,
    role_architectures,
)
from gpufleet.catalog.reading import STANDARD, Tables
from gpufleet.catalog.versions import upstream
from gpufleet.hosts.context import Context
from gpufleet.hosts.platform import System
from gpufleet.hosts.work import Problem

#: The daemon that keeps GPUs initialised; some branches have it in another package.
PERSISTENCED = "nvidia-persistenced"
#: Stands in names for the end of the kernel's name, such as generic.
KERNEL_FLAVOUR = "<kernel flavour>"


def names_for(branch: int | None, system: System, method: str) -> PackageNames | None:
    """The row of packages.yaml for a branch on a system, by the route that brings the driver."""
    return packages_for(branch or 0, system.family, method, system.distribution, system.tables)


def filled(name: str, branch: int | None, version: str | None, kernel: str | None = None) -> str:
    """A package name with branch, version and, where the kernel is known, kernel flavour filled in."""
    name = name.replace("<branch>", str(branch)).replace("<version>", str(version))
    return name if kernel is None else name.replace(KERNEL_FLAVOUR, kernel.rpartition("-")[2])


def driver_packages(row: PackageNames, flavour: str, components: str = "full") -> list[str]:
    """Templates of the driver packages to ask for, without what they pull in; none when the row lacks the flavour.

    The whole driver where the branch has no packages without graphics.
    """
    meta = row.driver_meta.get(flavour)
    compute = (row.compute_only or {}).get(flavour) if components == "compute" else None
    names = list(compute or ([meta] if meta else []))
    if not names:
        return []
    return names + [name for name in (row.utils, row.signed_modules.get(flavour)) if name]


def fabric_packages(row: PackageNames, roles: Iterable[str], architecture: str, tables: Tables = STANDARD) -> list[str]:
    """Templates of packages that carry exactly the driver's version, by their role, as far as the row has them."""
    return [name for role in roles if _exists(role, architecture, tables) and (name := row.name(role))]


def missing_roles(row: PackageNames, roles: Iterable[str], architecture: str, tables: Tables = STANDARD) -> list[str]:
    """Roles that the branch's row has no package for."""
    return [role for role in roles if _exists(role, architecture, tables) and not row.name(role)]


def _exists(role: str, architecture: str, tables: Tables) -> bool:
    assert role in FABRIC_ROLES
    return architecture in role_architectures(tables).get(role, (architecture,))


def stale_pins(context: Context) -> list[str]:
    """Installed packages that pin another branch or version, which would outvote ours."""
    ours = (str(context.target.branch), str(context.target.version))
    return [name for name, what in _pins(context).items() if what not in ours]


def pins(context: Context) -> list[str]:
    """Installed packages that pin a driver."""
    return list(_pins(context))


def _pins(context: Context) -> dict[str, str]:
    found = {name: pinning_package(context.tables).fullmatch(name) for name in context.packages}
    return {name: match[match.lastindex or 0] for name, match in found.items() if match}


def other_kmods(context: Context) -> list[str]:
    """Installed providers of the kernel module that are not the wanted kind (dnf)."""
    if context.system.manager != "dnf":
        return []
    wanted = context.settings.gpu_driver_kmod
    found = {
        row.kmod: sorted(n for n in context.packages if re.search(row.pattern, n))
        for row in kmod_providers(context.tables)
    }
    return [name for kmod, names in found.items() if kmod != wanted for name in names] if found.get(wanted) else []


def other_flavour(context: Context) -> list[str]:
    """Installed driver packages of the flavour that is not wanted; both at once exclude each other."""
    patterns = [
        row.pattern for row in flavour_packages(context.tables)
        if row.manager == context.system.manager and row.flavour != context.target.flavour
        and row.id in (None, context.system.id)
    ]  # fmt: skip
    return sorted(name for name in context.driver_family if any(re.search(p, name) for p in patterns))


def mixed_origins(context: Context) -> list[Problem]:
    """What excludes the wanted driver: an installer file and packages, or packages of two origins, are never mixed."""
    method = context.settings.gpu_driver_method
    if not context.settings.wants_driver:
        return []
    if method == "runfile":
        return [Problem("GF730", {"packages": _listed(context.driver_family)})] if context.driver_family else []
    found = [Problem("GF729")] if context.probe.runfile else []
    foreign = _foreign(context, method)
    if foreign:
        words = "; ".join(f"{origin}: {_listed(names)}" for origin, names in foreign.items())
        found.append(Problem("GF730", {"packages": words}))
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _foreign(context: Context, method: str) -> dict[str, list[str]]:
    """Origin -> installed driver packages that do not come from the wanted source."""
    found: dict[str, list[str]] = {}
    versions = {name: upstream(row.version) for name, row in context.packages.items()}
    for row in foreign_packages(context.tables):
        if row.manager != context.system.manager or row.method == method:
            continue
        own = {v for name, v in versions.items() if row.unless and re.search(row.unless, name)}
        names = [n for n, version in versions.items() if re.search(row.pattern, n) and version not in own]
        if names:
            found[row.origin] = names
    return found


def preferences(header: str, version: str | None, tables: Tables) -> str:
    """apt preferences that keep every driver package at one version, whatever a repository brings."""
    names = " ".join(row.names for row in driver_names(tables) if row.pinned)
    return f"{header}Package: {names}\nPin: version {version}-*\nPin-Priority: 1001\n"


def unattended(tables: Tables) -> list[str]:
    """Patterns of packages that unattended-upgrades has to leave alone."""
    names = [row.names for row in driver_names(tables) if row.unattended]
    return [f"^{name.removesuffix('*')}" + ("" if name.endswith("*") else "$") for name in names]
