"""What the host roles and the plan share: PCI ids, package names, repositories and keys.

The roles read the same files themselves; this is the view of the Python side.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from gpufleet.catalog import reading


class PackageNames(NamedTuple):
    """Names of the driver's packages in one repository and range of branches. None: no such package there.

    `<branch>` and `<version>` stand for the branch number and the full driver version.
    """

    id: str
    repo: str  # cuda, ubuntu-archive
    os_family: str  # debian, redhat
    min_branch: int | None  # inclusive; None: open end
    max_branch: int | None
    names: Mapping[str, Any]  # every other key of the row
    source: str
    as_of: str


class PciGpu(NamedTuple):
    """One PCI device id of a GPU (vendor 10de, lower case, without 0x)."""

    device: str
    gpu: str  # id of a GpuModel
    name: str | None  # the driver's name of the card
    source: str
    as_of: str
    subsystem: str | None = None  # where the device id alone fits several models


class RepoDirectory(NamedTuple):
    """Directory of an operating system in the vendor's package repository; None: the vendor has none."""

    platform: str  # ID of os-release, dash, version
    directory: str | None
    status: str  # supported, legacy, none
    note: str | None
    source: str
    as_of: str


_PACKAGE_FIELDS = {"id", "repo", "os_family", "min_branch", "max_branch", "source", "as_of"}


@cache
def package_names() -> tuple[PackageNames, ...]:
    """Every row."""
    return tuple(
        PackageNames(
            **{key: row[key] for key in _PACKAGE_FIELDS},
            names=MappingProxyType({key: value for key, value in row.items() if key not in _PACKAGE_FIELDS}),
        )
        for row in reading.rows("packages", "package_names")
    )


def packages_for(branch: int, os_family: str, repo: str = "cuda") -> PackageNames | None:
    """The row that holds for a driver branch, or None."""
    for row in package_names():
        fits = (row.min_branch or 0) <= branch and (row.max_branch is None or branch <= row.max_branch)
        if fits and (row.os_family, row.repo) == (os_family, repo):
            return row
    return None


@cache
def pci_gpus() -> tuple[PciGpu, ...]:
    """Every known PCI device id of a GPU."""
    return tuple(PciGpu(**row) for row in reading.rows("pci", "pci_gpus"))


def pci_gpu(device: str, subsystem: str | None = None) -> PciGpu | None:
    """The GPU of a PCI device id ("2330" or "0x2330"), or None: not known, or several and no subsystem id given."""
    wanted, sub = (text.lower().removeprefix("0x") if text else None for text in (device, subsystem))
    for row in pci_gpus():
        if row.device == wanted and row.subsystem in (None, sub):
            return row
    return None


@cache
def repo_directories() -> Mapping[str, RepoDirectory]:
    """Every operating system that the table knows, by `ID-VERSION` of os-release."""
    return MappingProxyType({
        row["platform"]: RepoDirectory(**row) for row in reading.rows("repositories", "repo_directories")
    })


def architecture_directory(machine: str) -> str | None:
    """Directory of a CPU architecture in the vendor's repository: `aarch64` is called `sbsa` there. None: unknown."""
    rows = reading.rows("repositories", "architecture_directories")
    return {row["architecture"]: row["directory"] for row in rows}.get(machine)
