"""Container images that the stack pulls, for a mirror."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpufleet.catalog import component, components_of
from gpufleet.catalog.azure import aks_node_os
from gpufleet.catalog.components import Component
from gpufleet.routes.chart_values import get_value
from gpufleet.stackfile.model import Stack
from gpufleet.stackfile.pools import AksPool
from gpufleet.stackfile.software import Images, OperatorRoute

if TYPE_CHECKING:
    from gpufleet.methods.hami import HamiPlan
    from gpufleet.routes.operator import OperatorPlan
    from gpufleet.routes.plugin import PluginPlan


@dataclass(frozen=True)
class Image:
    """A container image: where it comes from, and the name under which the stack pulls it."""

    source: str
    pulled_as: str


@dataclass(frozen=True)
class StackImages:
    """Images of a stack, sorted by the name they are pulled under, and in words those that no table states."""

    known: tuple[Image, ...]
    unknown: tuple[str, ...] = ()


def mirrored(image: str, images: Images) -> str:
    """The image under the stack's own registry, if it has one: the name after the last slash is kept."""
    return f"{images.registry}/{image.rpartition('/')[2]}" if images.registry else image


def stack_images(
    stack: Stack, plugin: PluginPlan | None, operator: OperatorPlan | None, hami: HamiPlan | None
) -> StackImages:
    """What the nodes pull for GPU software; of an operator release, only for what its values switch on."""
    unknown: list[str] = []
    found: list[Image] = []
    route = stack.stack
    if isinstance(route, OperatorRoute):
        found += _of_the_operator(stack, route, operator.values if operator is not None else {}, unknown)
    elif plugin is not None and plugin.daemon_sets:
        from gpufleet.routes.plugin import plugin_image

        plain = route.model_copy(update={"images": Images.model_validate({})})
        found.append(Image(plugin_image(plain), plugin_image(route)))
    if hami is not None:
        found += _of_hami(stack, unknown)
    by_name = {image.pulled_as: image for image in found}
    return StackImages(tuple(by_name[name] for name in sorted(by_name)), tuple(dict.fromkeys(unknown)))


def _of_hami(stack: Stack, unknown: list[str]) -> Iterator[Image]:
    """HAMi runs all parts of its chart."""
    exact = stack.cluster.version
    for row in components_of("hami"):
        source = row.image
        if source is None and exact is not None and exact.count(".") == 2:
            source = f"{row.image_path}:v{exact}"
        if source is None:
            unknown.append(f"image {row.image_path}: {row.note}")
        else:
            yield Image(source, mirrored(source, stack.stack.images))


def _of_the_operator(
    stack: Stack, route: OperatorRoute, values: Mapping[str, Any], unknown: list[str]
) -> Iterator[Image]:
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
        yield from _images(row, stated, stack, values, unknown)


def runs(row: Component, values: Mapping[str, Any]) -> bool:
    """Whether the operator's release with these values runs the component."""
    switch = row.enabled_by or (f"{row.section}.enabled" if row.value else "nfd.enabled")
    stated = get_value(values, switch)
    return bool(row.enabled is not False if stated is None else stated)


def _images(
    row: Component, stated: str | None, stack: Stack, values: Mapping[str, Any], unknown: list[str]
) -> Iterator[Image]:
    """The images of one component; `stated` is the version that the values give it."""
    path = row.image.rpartition(":")[0] if row.image else row.image_path
    version = stated or row.version
    tags = [version if row.name != "node-feature-discovery" else str(row.image).rpartition(":")[2]]
    if row.name == "operator-driver":
        systems, others = _driver_systems(stack)
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


def _driver_systems(stack: Stack) -> tuple[list[str], list[str]]:
    """Ends of the driver image's tag, by the pools that it goes to; and the pools whose system is not known."""
    systems, others = set(), []
    for pool in stack.pools:
        if pool.driver != "operator":
            continue
        system = aks_node_os(pool.os_sku, stack.cluster.version) if isinstance(pool, AksPool) else pool.os
        if system and system.startswith("ubuntu-"):
            systems.add(system.replace("-", ""))
        else:
            others.append(pool.name)
    return sorted(systems), others


def _text(values: Mapping[str, Any], path: str | None) -> str | None:
    """A text in the values; None where it is absent or empty, as the chart takes it."""
    found = get_value(values, path) if path else None
    return str(found) if found not in (None, "") else None
