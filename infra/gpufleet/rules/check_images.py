"""The images that teams name, against the drivers and GPUs of their pools."""

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
from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.hardware import Hardware
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.stackfile.software import Team
from gpufleet.teams.teams import team_pools


def check_images(fleet: Fleet) -> Iterator[Finding]:
    """Every image of every team on every pool of the team."""
    for i, team in enumerate(fleet.stack.teams):
        pools = [pool for pool in team_pools(team, fleet) if pool.served]
        for j, image in enumerate(team.images):
            path, needs = f"teams[{i}].images[{j}]", required_cuda(image, {})
            if needs is None:
                yield finding("GF355", path, value=image)
                continue
            for pool in pools:
                yield from _check(team, image, needs, pool, path)


def _check(team: Team, image: str, needs: Required, pool: FleetPool, path: str) -> list[Finding]:
    hardware, details = pool.hardware, {"value": image, "pool": pool.name, "version": needs.version}
    newest = newest_cuda_major(hardware.model.compute_capability) if hardware.model else None
    if newest is not None and needs.major > newest and hardware.model is not None:
        of_gpu = {"gpu": hardware.model.id, "architecture": hardware.model.architecture, "newest": str(newest)}
        return [finding("GF354", path, **details, **of_gpu)]
    driver = pool.driver
    if driver is None:
        return [finding("GF356", path, **details)]
    verdict, top = fit(needs, driver.low, newest, compat=team.cuda_compat), driver_cuda(driver.low)
    supports = f"supports CUDA {top[0]}.{top[1]}" if top else "is older than every CUDA version of the table"
    details |= {"driver": driver.words, "supports": supports}
    details["choices"] = _choices(needs, pool, driver, verdict, stated=team.cuda_compat)
    if verdict is Fit.REFUSED:
        return [finding("GF350" if driver.certain else "GF351", path, **details)]
    if verdict is Fit.MINOR:
        return [finding("GF352", path, **details, full=full_driver(needs.major, needs.minor))]
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
    return [finding("GF353", path, **details, known=known)]


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
