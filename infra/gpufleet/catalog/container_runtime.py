"""How a GPU reaches a container: by the device plugin, the container toolkit and CDI. Table: container_runtime.yaml."""

from functools import cache
from typing import NamedTuple

from gpufleet.catalog import reading
from gpufleet.catalog.versions import fields


class ContainerRuntime(NamedTuple):
    """One way of a GPU into a container. None means either, or none."""

    plugin: str  # operator, standalone, own (a method's)
    toolkit: str  # operator, host, image
    cdi: bool | None
    nri: bool
    default: str  # handler of pods without a class: runc, nvidia, own (what the node had before)
    strategy: str  # cdi, envvar
    hook: str | None  # file on the node that CDI specifications call
    pods: str  # whether pods name a runtime class: never, unless-default
    source: str
    as_of: str


class OperatorCdi(NamedTuple):
    """What the releases of the operator from `first` on do about CDI where the values say nothing."""

    id: str
    first: str | None
    cdi: bool
    cdi_devices: bool
    nri: bool
    source: str
    as_of: str


@cache
def container_runtimes() -> tuple[ContainerRuntime, ...]:
    """Every row."""
    return tuple(ContainerRuntime(**row) for row in reading.rows("container_runtime", "container_runtimes"))


def container_runtime(plugin: str, toolkit: str, cdi: bool, nri: bool) -> ContainerRuntime | None:
    """The row for a combination; None where it is none that works."""
    for row in container_runtimes():
        if (row.plugin, row.toolkit, row.nri) == (plugin, toolkit, nri) and row.cdi in (None, cdi):
            return row
    return None


@cache
def operator_cdi(version: str) -> OperatorCdi:
    """What a release of the operator (`v26.7.0`) does; of a version that is no number, what the newest does."""
    rows = [OperatorCdi(**row) for row in reading.rows("container_runtime", "operator_cdi")]
    numbers = fields(version)
    fitting = [row for row in rows if row.first is None or not numbers or numbers >= fields(row.first)]
    return fitting[-1]
