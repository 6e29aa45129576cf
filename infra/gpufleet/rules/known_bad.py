"""Versions that are known to fail on this fleet, and branches of the driver that have ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from gpufleet.catalog import (
    DriverBranch,
    GpuModel,
    KnownBad,
    Place,
    component,
    default_flavour,
    distribution,
    driver_branch,
    driver_branches,
    known_to_fail,
)
from gpufleet.catalog.known_bad import USUAL_SOCKET
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.hosts.target import recommended_branch
from gpufleet.methods.mps import Mps
from gpufleet.parts.chart_values import get_value
from gpufleet.places.existing.hosts import kernel_modules, target_driver
from gpufleet.stackfile.software import OperatorRoute

GF270 = rule(
    "GF270", Severity.ERROR,
    title="{component} {value} is known to fail here: {when}.",
    reason="The table known_bad lists the version with this condition and its thread.",
    because="{because}. Source: {source}.",
    remedy="Use another version.",
    do="{remedy_text}",
    source="known_bad; NVIDIA/gpu-operator#1694",
    wrong="""
        gpufleet:cluster: {kind: existing, name: lab, distribution: k3s, kubeconfig: {path: k.conf}}
        gpufleet:stack: {kind: operator, version: v25.3.3}
        gpufleet:pools: [{name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1, os: ubuntu-22.04, driver: operator}]
    """,
    fix=("v25.3.3", "v25.3.4"),
)

GF271 = rule(
    "GF271", Severity.WARNING,
    title="{component} {value} has a known fault: {when}.",
    reason="The table known_bad lists the version with this condition and its thread.",
    because="{because}. Source: {source}.",
    remedy="Use another version.",
    do="{remedy_text}",
    source="known_bad; NVIDIA/open-gpu-kernel-modules#971",
    wrong="""
        gpufleet:pools: [{name: t4, gpu: B200, gpusPerNode: 8, driverVersion: 570.133.20}]
    """,
    fix=("570.133.20", "580.126.09"),
)

GF272 = rule(
    "GF272", Severity.WARNING,
    title="Driver branch {branch} has ended: its support ended in {eol}.",
    reason="There are no more fixes, and packages vanish from the archives.",
    remedy="Move to a branch that is supported.",
    do="{remedy_text}",
    source="driver_branches; DC-DOCS",
    wrong="gpufleet:pools: [{name: t4, gpu: T4, driverBranch: '535'}]",
    fix=("535", "580"),
)


#: Part of the operator's values -> component whose version it sets. The driver is a matter of pools.
_PARTS = {"devicePlugin": "k8s-device-plugin", "dcgmExporter": "dcgm-exporter", "toolkit": "container-toolkit"}


def known_on() -> date:
    """The day to which the table of branches is known. The plan is the same on every day; preflight asks the host's."""
    newest = max(row.as_of for row in driver_branches().values())
    return date.fromisoformat(newest if len(newest) > 7 else f"{newest}-01")


def _told(where: str, name: str, version: str, faults: tuple[KnownBad, ...]) -> Iterator[Finding]:
    for row in faults:
        made = GF270 if row.severity == "error" else GF271
        yield made.at(
            where, value=version, component=name, when=row.when, because=row.reason, source=row.source,
            remedy_text=row.remedy,
        )  # fmt: skip


@check("stack", GF270, GF271)
def software(fleet: Fleet) -> Iterator[Finding]:
    """The operator's release and the parts that the stack file sets a version of."""
    route = fleet.stack.stack
    if not isinstance(route, OperatorRoute) or fleet.release is None:
        return
    release = component("gpu-operator").version
    own = {
        part: str(version)
        for part in _PARTS
        if (version := get_value(route.values, f"{part}.version")) is not None
    }
    gpus = frozenset(p.hardware.model.id for p in fleet.pools if p.owner == "operator" and p.hardware.model)
    place, uses = Place(gpus=gpus, distributions=frozenset({fleet.distribution})), _uses(fleet)
    parts = [("gpu-operator", route.version or release, "stack.version" if route.version else "stack")]
    for part, name in _PARTS.items():
        if part in own:
            parts.append((name, own[part], f"stack.values.{part}.version"))
    for name, version, where in parts:
        # A plugin of the stack's own is not the one that the release brings.
        left = uses - {"mps-by-label"} if name == "gpu-operator" and "devicePlugin" in own else uses
        here = Place(gpus=place.gpus, distributions=place.distributions, uses=frozenset(left))
        yield from _told(where, name, version, known_to_fail(name, version, here))


def _uses(fleet: Fleet) -> set[str]:
    """What the plan makes of the operator's release, in the words of the table."""
    uses: set[str] = set()
    release, known = fleet.release, distribution(fleet.distribution)
    if release is None:
        return uses
    if release.toolkit:
        uses.add("operator-toolkit")
        if known and known.operator_toolkit_env.get("CONTAINERD_SOCKET", USUAL_SOCKET) != USUAL_SOCKET:
            uses.add("another-socket")
        if known and known.operator_toolkit_env.get("RUNTIME_CONFIG_SOURCE", "").startswith("file"):
            uses.add("runtime-config-file")
    if release.driver:
        uses.add("driver-container")
    if any(isinstance(pool.method, Mps) for pool in fleet.served):
        uses.add("mps-by-label")  # the release's default key is without sharing
    if any(profile.pods_per_device > 1 for profile in fleet.profiles.values()):
        uses.add("virtual-gpus")
    return uses


@check("pool", GF270, GF271, GF272)
def driver(pool: FleetPool) -> Iterator[Finding]:
    """The driver that the operator or the roles install on the pool's GPUs."""
    spec, model = pool.spec, pool.hardware.model
    installs = pool.owner == "host" or (pool.owner == "operator" and pool.release is not None)
    if pool.owner not in pool.place.owners or not installs:
        return
    branch, version = _installed(pool)
    given = spec.driver_version or spec.driver_branch
    key = "driverVersion" if spec.driver_version else "driverBranch" if spec.driver_branch else "driver"
    where = f"{pool.path}.{key}"
    if branch is not None and branch.eol is not None and branch.eol < known_on().strftime("%Y-%m"):
        next_branch = recommended_branch([model], known_on().strftime("%Y-%m")) if model else None
        advice = f"Set `driverBranch: {next_branch.branch}`." if next_branch else GF272.remedy
        yield GF272.at(where, value=given, branch=str(branch.branch), eol=branch.eol, remedy_text=advice)
    if version is None or model is None:
        return
    place = Place(gpus=frozenset({model.id}), modules=_modules(pool, model, branch))
    yield from _told(where, "The driver", version, known_to_fail("driver", version, place))


def _installed(pool: FleetPool) -> tuple[DriverBranch | None, str | None]:
    """(branch, exact version) of the driver that is installed on a pool; None is unknown."""
    if pool.owner == "host":
        return target_driver(pool, known_on())
    known = pool.driver
    exact = known.high if known is not None and known.low == known.high else None
    given = exact or pool.spec.driver_branch
    return (driver_branch(given) if given else None), exact


def _modules(pool: FleetPool, model: GpuModel, branch: DriverBranch | None) -> str | None:
    if branch is None:
        return None
    if pool.owner == "host":
        return kernel_modules(pool, branch)
    chosen = pool.release.kernel_module_type if pool.release else None
    return chosen or default_flavour([model], branch.branch)
