"""Charts, images and other software with their versions."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from gpufleet.catalog.reading import STANDARD, Tables, kept, typed


class Component(NamedTuple):
    """One piece of software in one version."""

    name: str
    version: str
    source: str
    as_of: str
    image: str | None = None  # full reference, where the component is an image
    chart: str | None = None  # name of the Helm chart, where it is one
    repository: str | None = None  # where the chart lives
    part_of: str | None = None  # the component whose release brings this one
    value: str | None = None  # chart value that holds the version
    runs_with: tuple[str, ...] = ()  # chart values that all have to be true for it to run
    os_suffix: bool = False  # whether the operator appends the nodes' operating system to the tag
    kubernetes_min: str | None = None  # the oldest minor version of Kubernetes that the release takes
    kubernetes_validated: str | None = None  # the oldest one that the vendor has tried it on
    image_path: str | None = None  # the image without its tag, where a part of the tag is not known
    note: str | None = None

    @property
    def section(self) -> str:
        """The part of the chart's values that holds `value`: `driver.manager` of `driver.manager.version`."""
        return (self.value or "").rpartition(".")[0]


@kept
def components(tables: Tables) -> Mapping[str, Component]:
    """Every component by name."""
    return MappingProxyType({row["name"]: typed(Component, row) for row in tables.rows("components", "components")})


def component(name: str, tables: Tables = STANDARD) -> Component:
    """The component of that name. Raises KeyError when there is none: names come from code, not from users."""
    return components(tables)[name]


def components_of(name: str) -> tuple[Component, ...]:
    """What the release of component `name` brings, in the order of the table."""
    return tuple(row for row in components().values() if row.part_of == name)
