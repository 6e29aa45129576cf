"""Container images of an operator release, by what its values switch on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpufleet.catalog import component, components_of
from gpufleet.catalog.components import Component
from gpufleet.fleet.model import Fleet
from gpufleet.parts.artifact import Image, Images
from gpufleet.parts.chart_values import get_value
from gpufleet.stackfile.software import OperatorRoute


def operator_images(fleet: Fleet, route: OperatorRoute, values: Mapping[str, Any]) -> Images:
    """What the nodes pull for a release, only for what its values switch on."""
    unknown: list[str] = []
    known = tuple(_known(fleet, route, values, unknown))
    return Images(known, tuple(unknown))


def _known(fleet: Fleet, route: OperatorRoute, values: Mapping[str, Any], unknown: list[str]) -> Iterator[Image]:
    chart = component("gpu-operator")
    own = chart._replace(version=route.version or chart.version, value="operator.version")
    for row in (own, *components_of("gpu-operator")):
        if not runs(row, values):
            continue
        stated = _text(values, row.value)
        if row.name == "operator-validator" and stated is None:
            row = row._replace(version=own.version)  # the operator's own image, at the chart's version
        elif row is not own and stated is None and own.version != chart.version:
            unknown.append(f"image of {row.name}: the catalogue does not know what the chart {own.version} brings")
            continue
        yield from _of_row(row, stated, fleet, values, unknown)


def runs(row: Component, values: Mapping[str, Any]) -> bool:
    """Whether the operator's release with these values runs the component."""
    switch = row.enabled_by or (f"{row.section}.enabled" if row.value else "nfd.enabled")
    stated = get_value(values, switch)
    return bool(row.enabled is not False if stated is None else stated)


def _of_row(
    row: Component, stated: str | None, fleet: Fleet, values: Mapping[str, Any], unknown: list[str]
) -> Iterator[Image]:
    """The images of one component; `stated` is the version that the values give it."""
    path = row.image.rpartition(":")[0] if row.image else row.image_path
    version = stated or row.version
    tags = [version if row.name != "node-feature-discovery" else str(row.image).rpartition(":")[2]]
    if row.name == "operator-driver":
        systems, others = _driver_systems(fleet)
        tags = [f"{version}-{system}" for system in systems]
        if others:
            unknown.append(f"image {path}:{version}-OS of pools {', '.join(others)}: {row.note}")
    elif row.image is None and stated is None:
        tags = []
        unknown.append(f"image of {row.name} {version}: {row.note}")
    for tag in tags:
        source = f"{path}{'@' if tag.startswith('sha256:') else ':'}{tag}"
        yield Image(source, _pulled(source, row, values))


def _pulled(source: str, row: Component, values: Mapping[str, Any]) -> str:
    """The image as the values of the release name it."""
    folder, _, name = source.rpartition("/")
    if row.value is None:  # the subchart's value holds the image with its registry
        path = _text(values, "node-feature-discovery.image.repository")
        return f"{path}:{source.rpartition(':')[2]}" if path else source
    plain = re.split("[:@]", name)[0]
    end = name.removeprefix(plain)
    own = _text(values, f"{row.section}.image")
    return f"{_text(values, f'{row.section}.repository') or folder}/{own or plain}{end}"


def _driver_systems(fleet: Fleet) -> tuple[list[str], list[str]]:
    """Ends of the driver image's tag, by the pools that it goes to; and the pools whose system is not known."""
    systems, others = set(), []
    for pool in fleet.pools:
        if pool.owner != "operator":
            continue
        if pool.os and pool.os.startswith("ubuntu-"):
            systems.add(pool.os.replace("-", ""))
        else:
            others.append(pool.name)
    return sorted(systems), others


def _text(values: Mapping[str, Any], path: str | None) -> str | None:
    """A text in the values; None where it is absent or empty, as the chart takes it."""
    found = get_value(values, path) if path else None
    return str(found) if found not in (None, "") else None
