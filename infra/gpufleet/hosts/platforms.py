"""Which operating system a host runs, and what follows: directory of the repository, package family, routes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .catalog import Catalog, Row


@dataclass(frozen=True)
class Platform:
    """A host's operating system. `row` is its row of platforms.yaml, None when the table does not know it."""

    id: str  # as os-release says, such as openEuler
    version: str
    architecture: str  # x86_64, aarch64
    manager: str | None  # apt, dnf, None
    key: str  # platform of the tables, such as ubuntu-24.04 or rhel-9
    row: Row | None

    @property
    def family(self) -> str:
        """debian or redhat: the package scheme."""
        if self.row:
            return str(self.row["family"])
        return "debian" if self.manager == "apt" else "redhat"

    @property
    def debian_architecture(self) -> str:
        """Debian's name of the architecture; the kernel's where it has none here."""
        return {"x86_64": "amd64", "aarch64": "arm64"}.get(self.architecture, self.architecture)

    @property
    def refused(self) -> str | None:
        """Why the platform is refused, or None."""
        return str(self.row["reason"]) if self.row and self.row["support"] == "refused" else None

    @property
    def routes(self) -> list[str]:
        """Ways to a driver that exist on the platform."""
        return list(self.row["routes"]) if self.row else ["runfile", "none"]

    @property
    def initramfs(self) -> str:
        """The program that rebuilds the initramfs."""
        row = self.row or {"initramfs": "update-initramfs" if self.manager == "apt" else "dracut"}
        return str(row["initramfs"]).split()[0]

    def modular(self, tables: Catalog) -> bool:
        """Whether the driver comes in dnf module streams."""
        return any(self.key in row["modular"] for row in tables.rows("packages", "rpm_modularity"))

    def headers(self, kernel: str, tables: Catalog) -> list[tuple[str, str | None]]:
        """(package, its version or None for any) of what brings the headers of the running kernel.

        On Debian the kernel is a part of the name. An rpm has it as its version; another one brings another kernel.
        """
        names = self.row["headers"] if self.row else ["linux-headers-<kernel>"]
        if self.family == "redhat":
            variant = next((r for r in tables.rows("host_kernel", "kernel_headers") if r["match"] in kernel), None)
            names = variant["packages"] if variant else names
        if self.family == "debian":
            return [(name.replace("<kernel>", kernel), None) for name in names]
        version = re.sub(r"\.(?:x86_64|aarch64)(?:\+.*)?$", "", kernel)
        return [(n.removesuffix("-<kernel>"), version if n.endswith("-<kernel>") else None) for n in names]


def platform_of(system: dict[str, Any], tables: Catalog) -> Platform:
    """The platform of a probe's `system` part: by id and version, then id and major version, then id alone."""
    identity, version = str(system.get("id", "")), str(system.get("version_id", ""))
    alias = tables.row("platforms", "platform_aliases", "alias", identity)
    name = alias["platform"] if alias else identity
    rows = {row["platform"]: row for row in tables.rows("platforms", "platforms")}
    keys = [f"{name}-{version}", f"{name}-{version.split('.', maxsplit=1)[0]}", name]
    key = next((key for key in keys if key in rows), keys[0])
    return Platform(identity, version, str(system.get("architecture", "")), system.get("manager"), key, rows.get(key))


def repository_directory(platform: Platform, tables: Catalog) -> tuple[str | None, str]:
    """(`<distro>/<architecture>` of the vendor's CUDA repository or None, why not).

    Only the table decides: no directory is ever built from a version number.
    """
    row = tables.row("repositories", "repo_directories", "platform", platform.key)
    if row is None or row["directory"] is None:
        return None, f"the vendor has no repository for {platform.id} {platform.version}"
    machine = tables.row("repositories", "architecture_directories", "architecture", platform.architecture)
    missing = any(
        r["directory"] == row["directory"] and r["architecture"] == platform.architecture
        for r in tables.rows("host_repositories", "missing_trees")
    )
    if machine is None or missing:
        return None, f"the vendor has no {platform.architecture} tree for {platform.id} {platform.version}"
    return f"{row['directory']}/{machine['directory']}", ""
