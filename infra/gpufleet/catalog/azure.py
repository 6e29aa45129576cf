"""Azure: GPU sizes, drivers of the AKS node images, Kubernetes versions of AKS, fields of the SDK."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from gpufleet.catalog import reading
from gpufleet.catalog.versions import driver_version


class AzureSize(NamedTuple):
    """One exact Azure VM size. None means unknown, never "none"."""

    size: str
    gpus_schedulable: int | None  # devices that the scheduler sees on one node, before MIG or sharing
    cards: float | None  # physical cards behind one node; below 1 for a part of a card
    gpu: str | None  # id of a GpuModel; None also where the GPU is not NVIDIA's
    memory_gib_per_gpu: float | None  # of one schedulable device, as the size page prints it
    driver_family: str  # cuda, grid, amd; none: AKS installs no driver
    mig: bool | None  # false also where the vendor has no such feature
    nvswitch: bool | None  # true: AKS starts the fabric manager on this size
    arch: str  # amd64, arm64
    status: str  # supported, retiring, unsupported, unverified
    scarce: bool  # capacity is hard to get: a surge node may not come
    source: str
    as_of: str
    note: str | None = None
    cache_gib: int | None = None  # room for an ephemeral OS disk in the cache, and
    temp_gib: int | None = None  # on the temporary disk


class AksVersion(NamedTuple):
    """One minor version of Kubernetes on AKS. Months such as "2027-06"; None means unknown."""

    version: str
    ga: str | None
    eol: str | None  # end of standard support
    lts_eol: str | None  # end of long-term support
    source: str
    as_of: str


class RetiredTag(NamedTuple):
    """A tag that AKS once obeyed."""

    tag: str
    retired: str  # the day
    instead: str
    source: str
    as_of: str


class Channel(NamedTuple):
    """What a channel of AKS does to nodes by itself. moves None: nothing."""

    channel: str
    moves: str | None
    drains: bool  # nodes are drained and made anew
    source: str
    as_of: str


class NodeDriver(NamedTuple):
    """The driver that AKS node images carry for a family of sizes. A new image may bring another."""

    artifact: str
    driver_family: str
    version: str
    source: str
    as_of: str
    gpus: tuple[str, ...] = ()  # ids of the models it is for; empty: all of the family
    note: str | None = None


@cache
def azure_sizes() -> Mapping[str, AzureSize]:
    """Every size of the table by its exact name."""
    return MappingProxyType({row["size"]: AzureSize(**row) for row in reading.rows("azure_sizes", "azure_sizes")})


def azure_size(name: str) -> AzureSize | None:
    """The size of that name in any letter case (Azure ignores it), or None when the table has no such row."""
    return azure_sizes().get(name) or _sizes_folded().get(name.casefold())


@cache
def _sizes_folded() -> Mapping[str, AzureSize]:
    return MappingProxyType({name.casefold(): size for name, size in azure_sizes().items()})


@cache
def aks_versions() -> Mapping[str, AksVersion]:
    """Every minor version that the table knows, oldest first."""
    return MappingProxyType({row["version"]: AksVersion(**row) for row in reading.rows("aks", "aks_versions")})


@cache
def aks_retired_tags() -> Mapping[str, RetiredTag]:
    """Every retired tag by its name in lower case: Azure ignores case."""
    return MappingProxyType({row["tag"].lower(): RetiredTag(**row) for row in reading.rows("aks", "aks_retired_tags")})


@cache
def aks_channel(key: str, value: str) -> Channel:
    """What `upgradeChannel: patch` or `nodeOsUpgradeChannel: NodeImage` does. Raises KeyError for other words."""
    return {row["channel"]: Channel(**row) for row in reading.rows("aks", "aks_channels")}[f"{key} {value}"]


@cache
def aks_login(login: str) -> tuple[str, ...]:
    """Options of AKS's kubeconfig that go with a login mode of kubelogin. Raises KeyError for other words."""
    return {row["login"]: tuple(row["keeps"]) for row in reading.rows("aks", "aks_logins")}[login]


@cache
def aks_limit(name: str) -> Any:
    """A limit of the service by its id. Raises KeyError when the table has no such row."""
    return {row["id"]: row["value"] for row in reading.rows("aks", "aks_limits")}[name]


@cache
def aks_node_drivers() -> tuple[NodeDriver, ...]:
    """Every row."""
    return tuple(
        NodeDriver(**{**row, "gpus": tuple(row.get("gpus", ()))}) for row in reading.rows("aks", "aks_node_drivers")
    )


def aks_node_driver(size: AzureSize) -> NodeDriver | None:
    """The driver that node images are known to carry for a size, or None: AKS installs none, or none is known."""
    for row in aks_node_drivers():
        if row.driver_family == size.driver_family and (not row.gpus or size.gpu in row.gpus):
            return row
    return None


@cache
def aks_mig_instances() -> Mapping[str, int]:
    """GPU instance profile of AKS ("MIG1g") -> instances that it makes of one GPU."""
    return MappingProxyType({row["profile"]: row["instances"] for row in reading.rows("aks", "aks_mig")})


def azure_native_fields(name: str) -> tuple[str, ...]:
    """The fields that an argument class of the Azure SDK has. Raises KeyError when the table has no such class."""
    return {row["class"]: tuple(row["fields"]) for row in reading.rows("aks", "azure_native")}[name]


def aks_node_os(os_sku: str, kubernetes: str | None) -> str | None:
    """The operating system (`ubuntu-24.04`) of nodes with an OS SKU of a cluster; None where the table has no answer.

    `Ubuntu` follows the cluster's minor version, so that an unstated version leaves it open; `Ubuntu2204` names one.
    """
    minor = driver_version(".".join(kubernetes.split(".")[:2])) if kubernetes else None
    for row in reading.rows("aks", "aks_node_os"):
        if os_sku.lower() == row["os"].replace("-", "").replace(".", ""):
            return str(row["os"])
        first, last = (driver_version(row[k]) if row[k] else None for k in ("default_from", "default_to"))
        if os_sku == "Ubuntu" and minor and (first is None or first <= minor) and (last is None or minor <= last):
            return str(row["os"])
    return None
