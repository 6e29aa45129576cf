"""Rules about the driver that the GPU Operator installs: systems, images, versions; one release serves all nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpufleet.catalog import component, driver_version
from gpufleet.catalog.operator_systems import driver_image_system, driver_images, operator_systems
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.owner import pinned_version
from gpufleet.parts.chart_values import get_value
from gpufleet.places.aks.model import aks_pool
from gpufleet.stackfile.software import OperatorRoute

GF208 = rule(
    "GF208", Severity.ERROR,
    title="The operator has no driver for {value}.",
    reason="NVIDIA publishes no driver image for this system, so the driver pods would wait for it for ever.",
    because="NVIDIA publishes no driver image for it, so the driver pods would wait for it for ever.",
    remedy="Use Ubuntu, RHEL or Rocky Linux as listed, or let another owner install the driver: `driver: host`, on AKS "
    "`driver: aks`.",
    source="NVIDIA/gpu-operator#2225; NVIDIA/gpu-operator#1212; microsoft/azurelinux#8355; operator_systems",
    needs=("value", "owner"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, driver: operator, os: debian-12}]
    """,
    fix=("debian-12", "ubuntu-24.04"),
)

GF214 = rule(
    "GF214", Severity.ERROR,
    title="The pools of one operator release want different drivers: {value}.",
    reason="The chart has one driver version for the whole release.",
    remedy="Agree on one version for all pools with owner operator, or put them on clusters of their own.",
    source="GPUO",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools:
          - {name: t4, driverBranch: "580"}
          - {name: b, vmSize: Standard_NC4as_T4_v3, driver: operator, driverVersion: 610.57.04}
    """,
    fix=("driverVersion: 610.57.04", "driverVersion: 580.173.02"),
)

GF215 = rule(
    "GF215", Severity.ERROR,
    title="The pools of one operator release need different kernel modules: {value}.",
    reason="The chart has one kernel module type for the whole release.",
    remedy="Put these GPU generations on clusters of their own, or let another owner install one of the drivers.",
    source="GPUO; architectures",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools:
          - {name: t4, driver: operator, gpu: V100-SXM2-16GB, driverBranch: "580"}
          - {name: b, hosts: {n2: {}}, gpu: B200, driver: operator, driverBranch: "580"}
    """,
    fix=("gpu: V100-SXM2-16GB, ", ""),
)

GF216 = rule(
    "GF216", Severity.ERROR,
    title="The operator does not support several operating systems in one cluster: {value}.",
    reason="One release takes the operating system of one GPU node, whichever it finds first, for the driver image of "
    "all nodes.",
    remedy="Use one operating system for all GPU pools, or set `driver.nvidiaDriverCRD.enabled: true` in `values`, "
    "which makes driver pods for each system.",
    source="AKS-DOC (nvidia-gpu-operator); NVIDIA/gpu-operator (getGPUNodeOSInfo)",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools:
          - {name: t4}
          - {name: b, vmSize: Standard_NC4as_T4_v3, driver: operator, osSku: Ubuntu2204}
    """,
    fix=("osSku: Ubuntu2204", "osSku: Ubuntu"),
)

GF217 = rule(
    "GF217", Severity.WARNING,
    title="The operator's release does not list driver {value}.",
    reason="An image of that driver may not exist for the nodes' operating system; the driver pods would wait for "
    "ever.",
    remedy="Use a listed version or its branch, or acknowledge this after checking the registry.",
    source="GPUO; operator_drivers",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, driverVersion: 580.95.05}]
    """,
    fix=("driverVersion: 580.95.05", "driverVersion: 580.173.02"),
)

GF240 = rule(
    "GF240", Severity.ERROR,
    title="Precompiled drivers go by branch; {value} cannot be chosen.",
    reason="Their images are tagged with branch, kernel and system, so that the newest version of the branch comes.",
    remedy='Write the branch instead: `driverBranch: "580"`.',
    source="NVIDIA/cloud-native-docs (precompiled-drivers)",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator, values: {driver: {usePrecompiled: true}}}
        gpufleet:pools: [{name: t4, driverVersion: 580.173.02}]
    """,
    fix=("driverVersion: 580.173.02", 'driverBranch: "580"'),
)

GF241 = rule(
    "GF241", Severity.ERROR,
    title="There are no precompiled drivers of branch {value} for {os}.",
    reason="NVIDIA publishes them for some branches and some releases of Ubuntu. Other images have to be your own.",
    remedy="Choose a branch that is allowed, leave usePrecompiled out, or name your own registry in "
    "`values: {{driver: {{repository: ...}}}}`.",
    source="NVIDIA/cloud-native-docs (platform-support); operator_systems",
    needs=("value", "owner"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {driver: {usePrecompiled: true}}}
        gpufleet:pools: [{name: t4, driver: operator, os: ubuntu-26.04, driverBranch: "580"}]
    """,
    fix=("ubuntu-26.04", "ubuntu-24.04"),
)

GF242 = rule(
    "GF242", Severity.ERROR,
    title="{value} and precompiled drivers exclude each other.",
    reason="The operator stops with an error: the modules of GDS and GDRCopy are built beside the driver.",
    remedy="Leave one of them out.",
    source="NVIDIA/gpu-operator (controllers/object_controls.go)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {driver: {usePrecompiled: true}, gds: {enabled: true}}}
        gpufleet:pools: [{name: t4, driver: operator}]
    """,
    fix=(", gds: {enabled: true}", ""),
)


@check("stack", GF214, GF215)
def release(fleet: Fleet) -> Iterator[Finding]:
    """What the pools of one operator release must agree on."""
    if fleet.release is None:
        return
    versions: dict[str, str] = {}
    modules: dict[str, str] = {}
    for pool in _own(fleet):
        versions.setdefault(pinned_version(pool.spec) or component("operator-driver").version, pool.path)
        model = pool.hardware.model
        if model is not None and model.modules != "both":
            modules.setdefault(model.modules, pool.path)
    for broken, found in ((GF214, versions), (GF215, modules)):
        if len(found) > 1:
            yield broken.at(f"{list(found.values())[-1]}.driver", value=" / ".join(sorted(found)))


@check("aks", GF208, GF216)
def systems_on_aks(fleet: Fleet) -> Iterator[Finding]:
    """On AKS the operating system is an OS SKU, which may follow the version of Kubernetes."""
    route = _driver_route(fleet)
    if route is None:
        return
    if not get_value(route.values, "driver.repository"):
        for pool in _own(fleet):
            if aks_pool(pool).os_sku.startswith("AzureLinux"):
                yield GF208.at(f"{pool.path}.osSku", value=aks_pool(pool).os_sku, allowed=("Ubuntu",))
    pools = [pool for pool in fleet.pools if pool.spec.driver != "none"]
    yield from _one_system(pools, route, "osSku", {pool.path: aks_pool(pool).os_sku for pool in pools})


@check("existing", GF208, GF216)
def systems(fleet: Fleet) -> Iterator[Finding]:
    """Images of the driver exist for the systems of the pools that get it; an own registry may hold others."""
    route = _driver_route(fleet)
    if route is None:
        return
    if not get_value(route.values, "driver.repository"):
        for pool in _own(fleet):
            if pool.os is not None and driver_images(pool.os) == "none":
                yield GF208.at(f"{pool.path}.os", value=pool.os, allowed=tuple(operator_systems()))
    pools = [pool for pool in fleet.pools if pool.os is not None]
    yield from _one_system(pools, route, "os", {pool.path: str(pool.os) for pool in pools})


def _driver_route(fleet: Fleet) -> OperatorRoute | None:
    """The operator's route where it installs a driver: nothing else of it depends on the operating system."""
    route = fleet.stack.stack
    return route if isinstance(route, OperatorRoute) and fleet.release and fleet.release.driver else None


def _one_system(
    pools: Sequence[FleetPool], route: OperatorRoute, key: str, stated: Mapping[str, str]
) -> Iterator[Finding]:
    """The operator may take any node with a GPU as the first, also one whose driver is somebody else's."""
    if _on(route, "driver.nvidiaDriverCRD.enabled"):
        return
    version = route.version or component("gpu-operator").version
    systems: dict[str, FleetPool] = {}
    for pool in pools:
        tag = driver_image_system(pool.os, version) if pool.os else None
        systems.setdefault(tag or pool.os or stated[pool.path], pool)
    if len(systems) > 1:
        last = max(systems.values(), key=lambda pool: pool.index)
        words = {stated[pool.path] for pool in systems.values()}
        names = words if len(words) == len(systems) else {str(pool.os) for pool in systems.values()}
        yield GF216.at(f"{last.path}.{key}", value=" / ".join(sorted(names)))


@check("stack", GF240, GF241, GF242)
def precompiled(fleet: Fleet) -> Iterator[Finding]:
    """Precompiled drivers come by branch, for some systems, without modules beside them."""
    route = _driver_route(fleet)
    if route is None or not _on(route, "driver.usePrecompiled"):
        return
    for part in ("gds", "gdrcopy"):
        if _on(route, f"{part}.enabled"):
            yield GF242.at(f"stack.values.{part}.enabled", value=part)
    for pool in _own(fleet):
        if pool.spec.driver_version is not None:
            yield GF240.at(f"{pool.path}.driverVersion", value=pool.spec.driver_version)
            continue
        branch = driver_version(pinned_version(pool.spec) or component("operator-driver").version).branch
        row = operator_systems().get(pool.os or "")
        if row is not None and branch not in row.precompiled and not get_value(route.values, "driver.repository"):
            where = f"{pool.path}.driverBranch" if pool.spec.driver_branch else f"{pool.path}.driver"
            yield GF241.at(where, value=branch, allowed=tuple(map(str, row.precompiled)), os=pool.os)


def _own(fleet: Fleet) -> list[FleetPool]:
    """The pools whose driver the operator installs."""
    return [pool for pool in fleet.pools if pool.owner == "operator"]


def _on(route: OperatorRoute, path: str) -> Any:
    return get_value(route.values, path) is True
