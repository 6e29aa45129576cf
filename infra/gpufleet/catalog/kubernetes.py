"""Kubernetes distributions, and the label and taint names that cluster, cloud and charts fix."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from gpufleet.catalog import reading

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Distribution(NamedTuple):
    """What one Kubernetes distribution does about the container runtime. None means unknown or absent."""

    name: str
    containerd_socket: str | None
    containerd_config: str | None
    runtime_class: str | None  # name under which the node image brings NVIDIA's runtime
    detects_runtime: bool  # finds nvidia-container-runtime at its own start and adds the runtime itself
    config_owner: str  # who may write the containerd file: toolkit, distribution
    host_runtime_owner: str  # value of the roles' gpu_runtime_owner
    source: str
    as_of: str
    containerd_drop_in: str | None = None
    containerd_template: str | None = None
    containerd_template_v2: str | None = None
    default_runtime_option: str | None = None
    restart_units: tuple[str, ...] = ()
    runtime_classes: tuple[str, ...] = ()  # RuntimeClass objects for NVIDIA's runtime in every such cluster
    operator_toolkit_env: Mapping[str, str] = _NOTHING
    webhook_selector_owner: str | None = None  # who rewrites namespaceSelector of admission webhooks
    adds_tolerations: bool = False  # admission adds a toleration for the key of a requested extended resource
    note: str | None = None


@cache
def distributions() -> Mapping[str, Distribution]:
    """Every distribution by name."""
    return MappingProxyType({
        row["name"]: Distribution(**{
            **row,
            "restart_units": tuple(row["restart_units"]),
            "runtime_classes": tuple(row.get("runtime_classes") or ()),
            "operator_toolkit_env": MappingProxyType(row["operator_toolkit_env"]),
        })
        for row in reading.rows("distributions", "distributions")
    })


def distribution(name: str) -> Distribution | None:
    """The distribution of that name, or None when the table does not know it."""
    return distributions().get(name)


class Label(NamedTuple):
    """A node label whose name somebody else fixed. value None: any."""

    id: str
    key: str
    value: str | None
    writer: str  # who sets it: aks, user, nfd, gfd, gpu-operator, mig-manager
    status: str  # current, deprecated
    source: str
    as_of: str


class Taint(NamedTuple):
    """A node taint in common use. value None: none or any."""

    id: str
    key: str
    value: str | None
    effect: str
    writer: str  # who puts it there: aks, user
    tolerated_by: tuple[str, ...]  # charts and manifests that tolerate it by default
    source: str
    as_of: str


@cache
def labels() -> Mapping[str, Label]:
    """Every label by id."""
    return MappingProxyType({row["id"]: Label(**row) for row in reading.rows("conventions", "labels")})


@cache
def taints() -> Mapping[str, Taint]:
    """Every taint by id."""
    return MappingProxyType({
        row["id"]: Taint(**{**row, "tolerated_by": tuple(row["tolerated_by"])})
        for row in reading.rows("conventions", "taints")
    })


@cache
def reserved_label_prefixes() -> tuple[str, ...]:
    """Prefixes of label keys that AKS refuses from users."""
    return tuple(row["prefix"] for row in reading.rows("conventions", "reserved_label_prefixes"))
