"""Rules about the way of a GPU into a container: toolkit, CDI and runtime class under one operator release."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import distribution
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool, Release
from gpufleet.fleet.runtime import NVIDIA_RUNTIME_CLASS, toolkit_of

GF235 = rule(
    "GF235", Severity.ERROR,
    title="Pools with driver owners {value} cannot share one operator release that uses CDI.",
    reason="One release has one path for the program that CDI starts in each container: that of the operator's "
    "toolkit. Nodes with a toolkit of their own lack it, and their pods fail at start.",
    remedy="Let one owner install the driver on all pools, or set `stack: {{kind: operator, values: {{cdi: {{enabled: "
    "false}}}}}}`; pods on hosts then name a runtime class.",
    source="NVIDIA/gpu-operator (controllers/object_controls.go); container_runtimes",
    needs=("value", "owner"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator}
        gpufleet:pools:
          - {name: t4, driver: host}
          - {name: b, hosts: {n2: {}}, gpu: L4, driver: operator}
    """,
    fix=("{kind: operator}", "{kind: operator, values: {cdi: {enabled: false}}}"),
)

GF236 = rule(
    "GF236", Severity.ERROR,
    title="Pools with driver owners {value} cannot share one operator release on this cluster.",
    reason="One release has one toolkit setting and one runtime class. Nodes that come with a driver bring the "
    "toolkit and a runtime class of their own; nodes without one have neither.",
    remedy="Let one owner install the driver on all pools that the operator serves.",
    source="AB; NVIDIA/gpu-operator#730",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools:
          - {name: t4, driver: aks}
          - {name: b, vmSize: Standard_NC24ads_A100_v4, driver: operator}
    """,
    fix=("driver: operator", "driver: aks"),
)

GF237 = rule(
    "GF237", Severity.ERROR,
    title="CDI cannot be on where {value} hands out the GPUs.",
    reason="It hands out GPUs by environment variable. The operator's toolkit in CDI mode knows only the device `all`, "
    "so that no GPU pod starts (Project-HAMi/HAMi#1106).",
    remedy="Remove the value: the release sets `cdi.enabled: false` by itself.",
    source="Project-HAMi/HAMi#1106; NVIDIA/nvidia-container-toolkit#1239",
    needs=("value", "owner"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {cdi: {enabled: true}}}
        gpufleet:sharing: {parts: {strategy: hami}}
        gpufleet:pools: [{name: t4, driver: operator, sharing: parts}]
    """,
    fix=(", values: {cdi: {enabled: true}}", ""),
)

GF238 = rule(
    "GF238", Severity.ERROR,
    title="`cdi.nriPluginEnabled` cannot work here.",
    reason="It needs the operator's toolkit on all nodes, CDI, and an operator from v26.3.0 on. And it deletes the "
    "runtime class `nvidia`, also one that the distribution made.",
    because="{why}",
    remedy="Leave it out.",
    source="NVIDIA/gpu-operator (object_controls.go, validations.yaml)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {cdi: {nriPluginEnabled: true}}}
        gpufleet:pools: [{name: t4, driver: host}]
    """,
    fix=("driver: host", "driver: operator"),
)


@check("stack", GF235, GF236, GF237, GF238)
def release(fleet: Fleet) -> Iterator[Finding]:
    """What all pools that one release serves have in common."""
    found = fleet.release
    if found is None:
        return
    served = [pool for pool in fleet.served if pool.owner in pool.owners]
    toolkits = {toolkit_of(pool.spec, pool.place) for pool in served}
    owners = " / ".join(sorted({pool.owner for pool in served}))
    if toolkits >= {"image", "operator"}:
        yield GF236.at(f"{_last(served, 'operator').path}.driver", value=owners)
    elif len({pool.runtime.hook for pool in served if pool.runtime and pool.runtime.strategy == "cdi"}) > 1:
        yield GF235.at(f"{_last(served, 'operator').path}.driver", value=owners)
    own = next((pool.method.strategy for pool in served if pool.method.own_plugin), None)
    if own and found.toolkit and found.cdi.devices:
        yield GF237.at("stack.values.cdi.enabled", value=own)
    if found.cdi.nri and (why := _no_nri(fleet, found, toolkits)):
        yield GF238.at("stack.values.cdi.nriPluginEnabled", value=True, why=why)


def _last(pools: list[FleetPool], owner: str) -> FleetPool:
    return [pool for pool in pools if pool.owner == owner][-1]


def _no_nri(fleet: Fleet, release: Release, toolkits: set[str]) -> str | None:
    """Why the container runtime's plugin cannot inject the devices; None where it can."""
    known = distribution(fleet.distribution)
    if not release.cdi.known.nri:
        return "The chart of this version has no such value; it is there from v26.3.0 on."
    if not release.cdi.enabled:
        return "It needs CDI, which is off; the chart refuses it."
    if toolkits - {"operator"}:
        return "It needs the operator's toolkit on all nodes, and some have one of their own."
    if known is not None and NVIDIA_RUNTIME_CLASS in known.runtime_classes:
        return f"It deletes the runtime class {NVIDIA_RUNTIME_CLASS}, which {known.name} itself makes."
    return None
