"""Kubernetes distributions, and the label and taint conventions of cluster and cloud."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from infra.catalog import tables

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Distribution(NamedTuple):
    """What one Kubernetes distribution does about the container runtime. None means unknown or absent."""

    name: str
    containerd_socket: str | None
    containerd_config: str | None
    runtime_class: str | None  # a RuntimeClass that exists without our doing
    detects_runtime: bool  # finds nvidia-container-runtime at its own start and adds the runtime itself
    config_owner: str  # who may write the containerd file: toolkit, distribution
    source: str
    as_of: str
    containerd_drop_in: str | None = None
    containerd_template: str | None = None
    containerd_template_v2: str | None = None
    default_runtime_option: str | None = None
    restart_units: tuple[str, ...] = ()
    operator_toolkit_env: Mapping[str, str] = _NOTHING
    note: str | None = None


@cache
def distributions() -> Mapping[str, Distribution]:
    """Every distribution by name."""
    return MappingProxyType({
        row["name"]: Distribution(**{
            **row,
            "restart_units": tuple(row["restart_units"]),
            "operator_toolkit_env": MappingProxyType(row["operator_toolkit_env"]),
        })
        for row in tables.rows("distributions", "distributions")
    })


def distribution(name: str) -> Distribution | None:
    """The distribution of that name, or None when the table does not know it."""
    return distributions().get(name)
