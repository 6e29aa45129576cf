"""Rules about the CUDA of the teams' images and the drivers of their pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpufleet.catalog import cuda_min_driver, driver_version, operator_drivers
from gpufleet.catalog.cuda import (
    Fit,
    KnownDriver,
    Required,
    driver_cuda,
    fit,
    forward_compatible,
    full_driver,
    newest_cuda_major,
    required_cuda,
)
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.parts.hardware import Hardware
from gpufleet.stackfile.software import Team
from gpufleet.teams.teams import team_pools

GF350 = rule(
    "GF350", Severity.ERROR,
    title="unsatisfied condition: cuda>={version}",
    reason="The driver is older than the CUDA of the image. The container does not start, or CUDA fails in it.",
    because="{value} on pool {pool}: {driver} {supports}. The container does not start, or CUDA fails in it "
    "(NVIDIA's CUDA compatibility guide).",
    remedy="Use another driver, another image, or the package cuda-compat in the image where the GPU allows it.",
    do="{choices}",
    source="COMPAT; CUDA-IMG; cuda",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, driverBranch: "535"}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]
    """,
    fix=('driverBranch: "535"', 'driverBranch: "580"'),
)

GF351 = rule(
    "GF351", Severity.WARNING,
    title="unsatisfied condition: cuda>={version}",
    reason="The driver of the AKS node image is older than the CUDA of the image. A newer node image may carry "
    "another driver, so this is a warning.",
    because="{value} on pool {pool}: {driver} {supports}. A newer node image may carry another.",
    remedy="Use another driver, another image, or the package cuda-compat in the image where the GPU allows it.",
    do="{choices}",
    source="COMPAT; AB-IMG; aks",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:pools: [{name: t4, vmSize: Standard_NV6ads_A10_v5}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]
    """,
    fix=('"app:1-cu130"', '"app:1-cu128"'),
)

GF352 = rule(
    "GF352", Severity.WARNING,
    title="{value} runs on pool {pool} in minor-version mode only.",
    reason="The driver is of the same CUDA major version, but older than the image's. Most programs run; PTX of the "
    "newer version cannot be compiled, and newer driver calls are missing.",
    because="{driver} {supports}. CUDA {version} came with driver {full}; below it, PTX of this version cannot be "
    "compiled and newer driver calls are missing.",
    remedy="Use another driver, another image, or the package cuda-compat in the image where the GPU allows it.",
    do="{choices}",
    source="COMPAT; CUDA-RN",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools: [{name: t4, driverVersion: 535.183.01}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cuda12.8"]}]
    """,
    fix=('"app:1-cuda12.8"', '"app:1-cuda12.2"'),
)

GF353 = rule(
    "GF353", Severity.WARNING,
    title="{value} runs on pool {pool} through cuda-compat only.",
    reason="The driver is of an older CUDA major version. The package cuda-compat helps on data-centre GPUs only; "
    "elsewhere the container does not start, or CUDA ends with error 804.",
    because="{driver} {supports}. Forward compatibility works on data-centre GPUs; {known}. Elsewhere the container "
    "ends with `unsatisfied condition: cuda>={version}`, or CUDA with error 804.",
    remedy="Use another driver, another image, or the package cuda-compat in the image where the GPU allows it.",
    do="{choices}",
    source="COMPAT; CUDA-IMG",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools: [{name: t4, driverBranch: "570"}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["nvidia/cuda:13.0.2-base"]}]
    """,
    right="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools: [{name: t4, driverBranch: "570"}]
        gpufleet:teams:
          - {name: x, namespace: x, pools: [t4], images: ["nvidia/cuda:13.0.2-base"], cudaCompat: true}
    """,
)

GF354 = rule(
    "GF354", Severity.ERROR,
    title="CUDA {version} has no code for {gpu}.",
    reason="New CUDA versions no longer compile for old GPU architectures. Kernels fail with `no kernel image is "
    "available`, whatever the driver.",
    because="{value} on pool {pool}: CUDA {newest} is the last that compiles for the {architecture} architecture, "
    "whatever the driver; kernels fail with `no kernel image is available`.",
    remedy="Use an image built for CUDA {newest}, or a pool with newer GPUs.",
    source="CUDA-RN; architectures",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:pools: [{name: t4, driverBranch: "580", gpu: V100-SXM2-32GB}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]
    """,
    fix=('"app:1-cu130"', '"app:1-cu128"'),
)

GF355 = rule(
    "GF355", Severity.NOTE,
    title="{value} does not say its CUDA version.",
    reason="Nothing compares the image with the drivers of the team's pools.",
    remedy="Use a tag that says it, such as `-cuda12.8`, or compare it yourself (docs/cuda.md).",
    source="CUDA-IMG",
    wrong='gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1"]}]',
    right='gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]',
)

GF356 = rule(
    "GF356", Severity.NOTE,
    title="Nothing is known of the driver on pool {pool}.",
    reason="The pool states no driver, so the CUDA version of the image is not compared with it.",
    because="So {value} (CUDA {version}) is not compared with it.",
    remedy="State `driverBranch` or `driverVersion` where the owner is `host` or `operator`.",
    source="COMPAT",
    needs=("value", "drivers"),
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], images: ["app:1-cu130"]}]
    """,
    fix=(
        "gpufleet:cluster: {kind: existing}",
        'gpufleet:cluster: {kind: existing}\ngpufleet:pools: [{name: t4, driverBranch: "580"}]',
    ),
)


@check("stack", GF350, GF351, GF352, GF353, GF354, GF355, GF356)
def images(fleet: Fleet) -> Iterator[Finding]:
    """Every image of every team on every pool of the team."""
    for i, team in enumerate(fleet.stack.teams):
        pools = [pool for pool in team_pools(team, fleet) if pool.served]
        for j, image in enumerate(team.images):
            path, needs = f"teams[{i}].images[{j}]", required_cuda(image, {})
            if needs is None:
                yield GF355.at(path, value=image)
                continue
            for pool in pools:
                yield from _check(team, image, needs, pool, path)


def _check(team: Team, image: str, needs: Required, pool: FleetPool, path: str) -> list[Finding]:
    hardware, details = pool.hardware, {"value": image, "pool": pool.name, "version": needs.version}
    newest = newest_cuda_major(hardware.model.compute_capability) if hardware.model else None
    if newest is not None and needs.major > newest and hardware.model is not None:
        of_gpu = {"gpu": hardware.model.id, "architecture": hardware.model.architecture, "newest": str(newest)}
        return [GF354.at(path, **details, **of_gpu)]
    driver = pool.driver
    if driver is None:
        return [GF356.at(path, **details)]
    verdict, top = fit(needs, driver.low, newest, compat=team.cuda_compat), driver_cuda(driver.low)
    supports = f"supports CUDA {top[0]}.{top[1]}" if top else "is older than every CUDA version of the table"
    details |= {"driver": driver.words, "supports": supports}
    details["choices"] = _choices(needs, pool, driver, verdict, stated=team.cuda_compat)
    if verdict is Fit.REFUSED:
        return [(GF350 if driver.certain else GF351).at(path, **details)]
    if verdict is Fit.MINOR:
        return [GF352.at(path, **details, full=full_driver(needs.major, needs.minor))]
    if verdict is Fit.FORWARD:
        return _forward(team, hardware, path, details)
    return []


def _forward(team: Team, hardware: Hardware, path: str, details: dict[str, Any]) -> list[Finding]:
    """Forward compatibility that the team has stated, on a GPU where it is known to work, is nothing to report."""
    works = forward_compatible(hardware.model)
    if team.cuda_compat and works:
        return []
    name = hardware.model.id if hardware.model else "this GPU"
    known = f"{name} is one" if works else f"no source says it of {name}"
    return [GF353.at(path, **details, known=known)]


def _choices(needs: Required, pool: FleetPool, driver: KnownDriver, verdict: Fit, *, stated: bool) -> str:
    """What the reader can do: another driver, another image, cuda-compat; only what is possible here."""
    options = [text for text in (_other_driver(needs, pool), _other_image(driver)) if text]
    if not stated and forward_compatible(pool.hardware.model):
        carried = "which the image carries" if needs.branches is not None else "in the image"
        options.append(
            f"forward compatibility on this data-centre GPU, by the package cuda-compat-{needs.major}-{needs.minor}"
            f" {carried}, with `cudaCompat: true` on the team"
        )
    floor = cuda_min_driver().get(needs.major)
    if verdict is Fit.REFUSED and floor and driver_version(driver.low) >= driver_version(floor):
        options.append("NVIDIA_DISABLE_REQUIRE=1 in the pod, which leaves minor-version mode")
    return f"Choose {'; or '.join(options)}." if options else "Use another image or another pool."


def _other_driver(needs: Required, pool: FleetPool) -> str:
    hardware = pool.hardware
    wanted = full_driver(needs.major, needs.minor) or cuda_min_driver().get(needs.major)
    last = hardware.model.newest_driver_branch if hardware.model else None
    if wanted is None or (last is not None and driver_version(wanted).branch > last):
        return ""
    if pool.owner == "operator":
        listed = [v for v in operator_drivers() if driver_version(v) >= driver_version(wanted)]
        fits = [str(driver_version(v).branch) for v in listed if last is None or driver_version(v).branch <= last]
        return f'`driverBranch: "{min(fits)}"` on the pool' if fits else ""
    if pool.owner == "aks":
        own = hardware.size is not None and hardware.size.driver_family != "grid"  # the operator has no GRID driver
        return f"a node image with driver {wanted} or newer" + (", or `driver: operator` with one" if own else "")
    return f"driver {wanted} or newer on the hosts"


def _other_image(driver: KnownDriver) -> str:
    top = driver_cuda(driver.low)
    return f"an image built for CUDA {top[0]}.{top[1]} or older" if top else ""
