"""Rules about MIG: what a GPU can be cut into, by whom, under which driver."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import GpuModel, Place, driver_version, known_to_fail
from gpufleet.catalog.mig_placement import fits, most_of
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import FleetPool
from gpufleet.methods.mig import Mig
from gpufleet.places.aks.model import aks_pool
from gpufleet.places.aks.plan import aks_profile
from gpufleet.rules.autoscaler import GF421
from gpufleet.rules.hardware import GF212

GF310 = rule(
    "GF310", Severity.ERROR,
    title="{gpu} cannot be cut by MIG.",
    reason="The model has no MIG instances.",
    remedy="Use `strategy: timeSlicing`, or a GPU with MIG.",
    source="mig; MIG-UG",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.10gb}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: T4}]
    """,
    right="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.6gb}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: A30}]
    """,
)

GF311 = rule(
    "GF311", Severity.ERROR,
    title="{gpu} has no MIG profile {value}.",
    reason="Profiles belong to a model and its memory; neighbouring models use the same names for different parts.",
    remedy="Use one of its profiles.",
    source="mig; MIG-UG",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.5gb}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: A100-SXM4-80GB}]
    """,
    fix=("profile: 1g.5gb", "profile: 1g.10gb"),
)

GF312 = rule(
    "GF312", Severity.ERROR,
    title="{value} do not fit on one {gpu}.",
    reason="MIG instances take fixed places on the GPU, so not every combination fits.",
    because="MIG instances take fixed places on the GPU; possible here: {most}.",
    remedy="Ask for fewer or smaller instances.",
    source="MIG-UG; GPUO",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, instances: {3g.40gb: 3}}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: A100-SXM4-80GB}]
    """,
    fix=("3g.40gb: 3", "3g.40gb: 2"),
)

GF313 = rule(
    "GF313", Severity.ERROR,
    title="MIG on {value} is {state} by AKS.",
    reason="AKS cuts GPUs when a node starts, on the sizes it supports.",
    remedy="Use a size with MIG, or `driver: operator`, whose MIG manager cuts them.",
    source="AKS-DOC (gpu-multi-instance); azure_sizes",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.12gb}}
        gpufleet:pools: [{name: t4, sharing: cut, vmSize: Standard_NCC40ads_H100_v5}]
    """,
    fix=("vmSize: Standard_NCC40ads_H100_v5", "vmSize: Standard_NC40ads_H100_v5"),
)

GF314 = rule(
    "GF314", Severity.ERROR,
    title="AKS cannot cut GPUs into {value}.",
    reason="`gpuInstanceProfile` cuts every GPU of a pool into instances of one kind, of those allowed.",
    remedy="Use `profile` with one of them, or `driver: operator`.",
    source="AKS-DOC (gpu-multi-instance); AB",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.20gb}}
        gpufleet:pools: [{name: t4, sharing: cut, vmSize: Standard_NC24ads_A100_v4}]
    """,
    fix=("profile: 1g.20gb", "profile: 2g.20gb"),
)

GF315 = rule(
    "GF315", Severity.ERROR,
    title="Driver {value} is known to fail with MIG.",
    reason="These drivers leave pods Pending, or fail in another way, on GPUs that MIG has cut.",
    because="{when}: {because}. Concerned up to {last} (NVIDIA/gpu-operator#1361).",
    remedy="Use 580.65.06 or newer.",
    source="NVIDIA/gpu-operator#1361; known_bad",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.10gb}}
        gpufleet:pools: [{name: t4, sharing: cut, gpu: A100-SXM4-80GB, driverVersion: 570.148.08}]
    """,
    fix=("driverVersion: 570.148.08", "driverVersion: 580.65.06"),
)

GF316 = rule(
    "GF316", Severity.ERROR,
    title="This pool offers MIG instances as `{value}`, another one of the same operator as `{other}`.",
    reason="The operator gives one MIG strategy to the plugins of all nodes.",
    remedy="Set the same `naming` in all MIG profiles.",
    source="GPUO",
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing:
          cut: {strategy: mig, profile: 1g.10gb}
          other: {strategy: mig, instances: {1g.10gb: 1, 3g.40gb: 1}}
        gpufleet:pools:
          - {name: t4, sharing: cut, gpu: A100-SXM4-80GB}
          - {name: b, hosts: {n2: {}}, gpu: A100-SXM4-80GB, sharing: other}
    """,
    fix=("profile: 1g.10gb", "profile: 1g.10gb, naming: mixed"),
)


@check("pool", GF212, GF310, GF311, GF312, GF315, GF316)
def instances(pool: FleetPool) -> Iterator[Finding]:
    """Everything about one MIG pool that the GPU, its driver, or the operator release contradict."""
    mig, model, where = pool.method, pool.hardware.model, f"{pool.path}.sharing"
    if not isinstance(mig, Mig) or pool.profile is None or model is None:
        return
    if not model.mig_profiles:
        yield GF310.at(where, value=pool.spec.sharing, gpu=model.id)
        return
    yield from _layout(mig, model, where)
    yield from _driver(pool, mig, model)
    if pool.release is not None and mig.mig_strategy != pool.release.mig_strategy:
        yield GF316.at(where, value=mig.mig_strategy, other=pool.release.mig_strategy)


def _layout(mig: Mig, model: GpuModel, where: str) -> Iterator[Finding]:
    found = False
    for profile, count in ({mig.profile: 1} if mig.profile else mig.instances).items():
        most = most_of(model, profile)
        if most is None:
            allowed = [f"{p} (up to {n})" for p, n in model.mig_profiles.items()]
            yield GF311.at(where, value=profile, allowed=allowed, gpu=model.id)
        elif count > most:
            yield GF312.at(where, value=f"{count} x {profile}", gpu=model.id, most=str(most))
        found = found or most is None or count > most
    if not found and mig.instances and fits(model, mig.instances) is False:
        text = ", ".join(f"{n} x {p}" for p, n in sorted(mig.instances.items()))
        yield GF312.at(where, value=text, gpu=model.id, most="fewer of them together")


def _driver(pool: FleetPool, mig: Mig, model: GpuModel) -> Iterator[Finding]:
    """Drivers that somebody chose: too old for MIG on this GPU, too old for a profile, or known to fail with MIG."""
    driver, spec = pool.driver, pool.spec
    if driver is None or spec.driver not in ("host", "operator"):
        return
    key = "driverVersion" if spec.driver_version else "driverBranch" if spec.driver_branch else "driver"
    where, given = f"{pool.path}.{key}", spec.driver_version or spec.driver_branch or driver.high
    have = driver_version(driver.high)  # of a branch, the newest that is known
    if model.mig_min_driver and have < driver_version(model.mig_min_driver):
        yield GF212.at(where, value=given, gpu=f"MIG on {model.id}", oldest=model.mig_min_driver)
        return
    for profile in mig.kinds:
        oldest = model.mig_min_branch.get(model.mig_profile(profile) or "")
        if oldest is not None and have.branch < oldest:
            yield GF212.at(where, value=given, gpu=f"{profile} on {model.id}", oldest=str(oldest))
    if driver.low == driver.high:
        for bad in known_to_fail("driver", driver.high, Place(mig="partial")):
            details = {"when": bad.when, "because": bad.reason, "last": bad.last or driver.high}
            yield GF315.at(where, value=given, **details)


@check("aks pool", GF313, GF314, GF421)
def cut_by_aks(pool: FleetPool) -> Iterator[Finding]:
    """AKS cuts GPUs only as its profiles say, and only where the size is known to support it."""
    spec, mig, model, size = aks_pool(pool), pool.method, pool.hardware.model, pool.hardware.size
    if not isinstance(mig, Mig) or pool.profile is None or model is None or not model.mig_profiles:
        return
    if spec.driver == "aks":
        if size is not None and size.mig is not True:
            state = "not supported" if size.mig is False else "not known to be supported"
            yield GF313.at(f"{pool.path}.vmSize", value=size.size, state=state)
        elif aks_profile(mig, model) is None:
            asked = ", ".join(mig.kinds)
            yield GF314.at(f"{pool.path}.sharing", value=asked, allowed=sorted(model.mig_aks.values()))
    if spec.autoscale and spec.autoscale.min == 0 and mig.mig_strategy == "mixed":
        yield GF421.at(f"{pool.path}.autoscale.min", value=0, resource=", ".join(mig.resources))
