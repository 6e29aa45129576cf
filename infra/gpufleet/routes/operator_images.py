"""Container images of an operator release, by what its values switch on, and where its values name them.

Names and versions are the values' own, else the defaults of the chart's release. What no table has is said to be
unknown, never left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpufleet.catalog import component, components_of
from gpufleet.catalog.charts import GPU_OPERATOR, ChartTable, chart_table, chart_tables
from gpufleet.catalog.components import Component
from gpufleet.catalog.operator_systems import driver_image_system
from gpufleet.fleet.model import Fleet
from gpufleet.parts.artifact import Image, Images
from gpufleet.parts.chart_values import effective, get_value, set_value
from gpufleet.stackfile.software import Images as OwnImages
from gpufleet.stackfile.software import OperatorRoute

#: The subchart names its image otherwise: registry and name together, and secrets as objects.
_NFD = "node-feature-discovery"
#: Parts whose version is that of the chart where the values give none: they are the operator's own image.
_OWN_IMAGE = ("operator", "validator", "nodeStatusExporter")
#: Containers of another part's pods; the chart takes no pull secrets for them.
_IN_OTHER_PODS = ("manager", "driverManager")
_DIGEST = "sha256:"


def operator_images(fleet: Fleet, route: OperatorRoute, values: Mapping[str, Any]) -> Images:
    """What the nodes pull for a release, only for what its values switch on."""
    release = route.version or component(GPU_OPERATOR).version
    table = chart_table(GPU_OPERATOR, release)
    known: list[Image] = []
    unknown: list[str] = []
    for row in _rows():
        if runs(row, values, table):
            for image in _of_row(row, release, fleet, values, table):
                if isinstance(image, Image):
                    known.append(image)
                else:
                    unknown.append(image)
    return Images(tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unknown)))


def use_secrets(values: dict[str, Any], secrets: tuple[str, ...], release: str) -> None:
    """Every part that runs pulls with the stack's secrets; what the stack file names itself stays.

    The parts take names, the NFD subchart objects. A driver's manager is a container of the driver's pod.
    """
    table = chart_table(GPU_OPERATOR, release)
    for row in _rows():
        if not runs(row, values, table) or row.section.rpartition(".")[2] in _IN_OTHER_PODS:
            continue
        nfd = row.name == _NFD
        path = f"{_NFD if nfd else row.section}.imagePullSecrets"
        if get_value(values, path) is None:
            set_value(values, path, [{"name": name} for name in secrets] if nfd else list(secrets))


def use_registry(values: dict[str, Any], images: OwnImages, release: str) -> None:
    """Every image from the stack's registry, also of parts that do not run yet; a repository of the values stays."""
    table = chart_table(GPU_OPERATOR, release)
    for row in _rows():
        path = f"{row.section}.repository"
        if get_value(values, path) is not None or (table is not None and not table.has(path)):
            continue
        if table is not None and not table.default(path) and row.name != _NFD and not runs(row, values, table):
            continue  # the chart names no image of this part either, as long as nobody switches it on
        set_value(values, path, f"{images.registry}/{_NFD}" if row.name == _NFD else images.registry)


def runs(row: Component, values: Mapping[str, Any], table: ChartTable | None) -> bool:
    """Whether the operator's release with these values runs the component; without a table the newest one counts."""
    known = table or chart_tables(GPU_OPERATOR)[0]
    return all(effective(values, switch, known) is True for switch in row.runs_with)


def _rows() -> tuple[Component, ...]:
    """The operator and what its release brings. Its own image serves the jobs of its hooks too."""
    return (component(GPU_OPERATOR)._replace(value="operator.version"), *components_of(GPU_OPERATOR))


def _of_row(
    row: Component, release: str, fleet: Fleet, values: Mapping[str, Any], table: ChartTable | None
) -> Iterator[Image | str]:
    """The images of one component; a text for one that no table states."""
    stated = {part: _stated(row, values, part) for part in ("repository", "image", "version")}
    vendor = _vendor(row, release, table)
    found = {part: vendor.get(part, "") if stated[part] is None else str(stated[part]) for part in stated}
    missing = [part for part, text in found.items() if not text]
    if missing:
        yield _unknown(row, missing, table, release)
        return
    name = f"{vendor.get('repository') or found['repository']}/{vendor.get('image') or found['image']}"
    pulled = f"{found['repository']}/{found['image']}"
    if row.os_suffix and not found["version"].startswith(_DIGEST):
        precompiled = row.section == "driver" and get_value(values, "driver.usePrecompiled") is True
        tags, others = _with_system(found["version"], fleet, release, precompiled)
    else:
        tags, others = [found["version"]], ""
    for tag in tags:
        end = f"{'@' if tag.startswith(_DIGEST) else ':'}{tag}"
        yield Image(name + end, pulled + end)
    if others:
        yield f"image {name}:{others}"


def _stated(row: Component, values: Mapping[str, Any], part: str) -> str | None:
    """What the values say of a part of an image's name; None where they say nothing.

    An empty text is a name that is missing; only where the chart has its own version instead does it say nothing.
    """
    if row.name != _NFD:
        found = get_value(values, f"{row.section}.{part}")
    elif part == "version":
        found = get_value(values, str(row.value))
    else:
        whole = get_value(values, f"{row.section}.repository")
        found = None if whole is None else str(whole).rpartition("/")[0 if part == "repository" else 2]
    own_version = part == "version" and (row.name == _NFD or row.section in _OWN_IMAGE)
    return None if found is None or (found == "" and own_version) else str(found)


def _vendor(row: Component, release: str, table: ChartTable | None) -> dict[str, str]:
    """The parts of an image's name as the chart's release has them."""
    if row.name == _NFD:
        below = table.subcharts.get(_NFD) if table else None
        repository, _, name = str(below.default("image.repository")).rpartition("/") if below else ("", "", "")
        # The subchart's default tag is its own release.
        return {"repository": repository, "image": name, "version": f"v{below.release}"} if below else {}
    if row.section == "operator":
        table = table or chart_tables(GPU_OPERATOR)[0]  # the operator's own image has one name in all releases
    found = {
        part: str(table.default(f"{row.section}.{part}") or "") if table else ""
        for part in ("repository", "image", "version")
    }
    if not found["version"] and row.section in _OWN_IMAGE:
        found["version"] = release
    return found


def _unknown(row: Component, missing: list[str], table: ChartTable | None, release: str) -> str:
    if table is None or (row.name == _NFD and table.subcharts.get(_NFD) is None):
        return f"image of {row.name}: the catalogue does not know what the chart {release} brings"
    return f"image of {row.name}: neither values nor chart name its {' and '.join(missing)}"


def _with_system(version: str, fleet: Fleet, release: str, precompiled: bool) -> tuple[list[str], str]:
    """Tags with the operating system of the nodes; and in words those of pools whose system or kernel is not known."""
    systems: dict[str, list[str]] = {}
    own = [pool for pool in fleet.pools if pool.owner == "operator"]
    for pool in own or fleet.served:
        systems.setdefault((driver_image_system(pool.os, release) if pool.os else None) or "", []).append(pool.name)
    if precompiled:
        known = sorted(system for system in systems if system) or ["OS"]
        branch = version.partition(".")[0]
        tags = f" and :{branch}-KERNEL-".join(known)
        return [], f"{branch}-KERNEL-{tags}: one image for each kernel of the nodes, as `uname -r` prints it"
    others = systems.pop("", [])
    words = f"{version}-OS of pools {', '.join(others)}: the operator appends the node's operating system to the tag"
    return [f"{version}-{system}" for system in sorted(systems)], words if others else ""
