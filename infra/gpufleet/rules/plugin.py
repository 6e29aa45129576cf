"""Rules about NVIDIA's standalone device plugin."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import component
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.parts.names import UNSHARED
from gpufleet.stackfile.software import PluginRoute

GF305 = rule(
    "GF305", Severity.WARNING,
    title="Device plugin {value} is not the version that the prediction describes ({known}).",
    reason="Parsing and labels differ between releases.",
    remedy="Leave `version` out, or check the release notes and acknowledge this.",
    source="PLUGIN",
    wrong="gpufleet:stack: {version: v0.17.0}",
    right="gpufleet:stack: {version: v0.20.0}",
)

GF306 = rule(
    "GF306", Severity.ERROR,
    title="Pools of the profile {value} differ in their default runtime.",
    reason="One DaemonSet per profile has one runtime class.",
    remedy="Give them profiles of their own, or the same nvidiaDefaultRuntime.",
    source="PLUGIN; K8S-DOC (runtime-class)",
    needs=("value", "offers"),
    wrong="""
        gpufleet:pools:
          - {name: t4}
          - {name: b, hosts: {n2: {}}, gpu: T4, nvidiaDefaultRuntime: true}
    """,
    fix=("name: t4", "name: t4, nvidiaDefaultRuntime: true"),
)


@check("stack", GF305, GF306)
def plugin(fleet: Fleet) -> Iterator[Finding]:
    """Versions whose behaviour the prediction does not describe, and runtimes that one DaemonSet cannot serve."""
    route = fleet.stack.stack
    if not isinstance(route, PluginRoute):
        return
    known = component("k8s-device-plugin").version
    if route.version and route.version != known:
        yield GF305.at("stack.version", value=route.version, known=known)
    by_profile: dict[str, list[FleetPool]] = {}
    for pool in (one for one in fleet.served if one.runtime and one.owner in one.owners):
        by_profile.setdefault(pool.spec.sharing or UNSHARED, []).append(pool)
    for name, pools in by_profile.items():
        if len({pool.runtime_class for pool in pools}) > 1:
            yield GF306.at(f"{pools[0].path}.nvidiaDefaultRuntime", value=name)
