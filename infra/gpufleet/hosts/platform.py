"""Which operating system a host runs, and what follows: package family, routes, headers, tree of the repository."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gpufleet.catalog import platforms
from gpufleet.catalog.packages import modular_platforms
from gpufleet.catalog.reading import STANDARD, Tables
from gpufleet.catalog.versions import Order, deb_order, rpm_order

#: Debian's names of machines, where it has one of its own.
_DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class System:
    """A host's operating system. `row` is its row of platforms.yaml, None when the table does not know it."""

    id: str  # as os-release says, such as openEuler
    version: str
    architecture: str  # x86_64, aarch64
    manager: str  # apt, dnf
    key: str  # platform of the tables, such as ubuntu-24.04 or rhel-9
    row: platforms.Platform | None
    tables: Tables

    @property
    def family(self) -> str:
        """debian or redhat: the package scheme."""
        return self.row.family if self.row else "debian" if self.manager == "apt" else "redhat"

    @property
    def distribution(self) -> str:
        """ID of the row: rhel for a Rocky Linux."""
        return self.key.partition("-")[0]

    @property
    def order(self) -> Callable[[str], Order]:
        """What sorts versions of packages on the system."""
        return deb_order if self.family == "debian" else rpm_order

    @property
    def debian_architecture(self) -> str:
        """Debian's name of the architecture; the kernel's where it has none here."""
        return _DEBIAN.get(self.architecture, self.architecture)

    @property
    def refused(self) -> str | None:
        """Why the platform is refused, or None."""
        return self.row.reason if self.row and self.row.support == "refused" else None

    @property
    def routes(self) -> tuple[str, ...]:
        """Ways to a driver that exist on the platform."""
        return self.row.routes if self.row else ("runfile", "none")

    @property
    def initramfs(self) -> list[str]:
        """The command that rebuilds the initramfs."""
        return (self.row.initramfs if self.row else "update-initramfs -u -k all").split()

    @property
    def modular(self) -> bool:
        """Whether the driver comes in dnf module streams."""
        return self.manager == "dnf" and self.key in modular_platforms(self.tables)

    @property
    def tree(self) -> str | None:
        """`ubuntu2404/x86_64`: tree of the vendor's driver repository, or None."""
        return platforms.cuda_tree(self.key, self.architecture, self.tables)

    @property
    def no_tree(self) -> str:
        """Why there is no tree; "" where there is one."""
        if self.tree:
            return ""
        row = platforms.repo_directories(self.tables).get(self.key)
        what = "repository" if row is None or row.directory is None else f"{self.architecture} tree"
        return f"the vendor has no {what} for {self.id} {self.version}"

    def headers(self, kernel: str) -> list[tuple[str, str | None]]:
        """(package, its version or None for any) of what brings the headers of the running kernel.

        On Debian the kernel is a part of the name. An rpm has it as its version; another one brings another kernel.
        """
        names = self.row.headers if self.row else ("linux-headers-<kernel>",)
        if self.family == "debian":
            return [(name.replace("<kernel>", kernel), None) for name in names]
        other = next((row.packages for row in platforms.kernel_headers(self.tables) if row.match in kernel), names)
        version = re.sub(r"\.(?:x86_64|aarch64)(?:\+.*)?$", "", kernel)
        return [(n.removesuffix("-<kernel>"), version if n.endswith("-<kernel>") else None) for n in other]


def system_of(
    identity: str, version: str, architecture: str, manager: str | None = None, tables: Tables = STANDARD
) -> System:
    """The system of an ID and version as os-release has them. `manager`: the host's, else the one of the table."""
    key = platforms.platform_key(identity, version, tables)
    row = platforms.platforms(tables).get(key)
    return System(identity, version, architecture, manager or (row.manager if row else "apt"), key, row, tables)
