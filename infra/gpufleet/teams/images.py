"""The images that teams name, against the drivers and GPUs of their pools."""

from __future__ import annotations

from typing import Any

from gpufleet.catalog import cuda_min_driver, driver_version, operator_drivers
from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.facts import Facts, pool_facts
from gpufleet.plan.pool_driver import pool_driver
from gpufleet.plan.sharing import serves
from gpufleet.stackfile.model import Stack, stack_pools
from gpufleet.stackfile.pools import Pool
from gpufleet.stackfile.software import Team
from gpufleet.teams.cuda import (
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


def check_images(stack: Stack) -> list[Finding]:
    """Every image of every team on every pool of the team."""
    found: list[Finding] = []
    served = {p.name: p for p in stack_pools(stack) if serves(p)}
    for i, team in enumerate(stack.teams):
        pools = [served[name] for name in dict.fromkeys(team.pools) if name in served]
        for j, image in enumerate(team.images):
            path, needs = f"teams[{i}].images[{j}]", required_cuda(image, {})
            if needs is None:
                found.append(finding("GF355", path, value=image))
                continue
            for pool in pools:
                found += _check(team, image, needs, pool, path)
    return found


def _check(team: Team, image: str, needs: Required, pool: Pool, path: str) -> list[Finding]:
    facts, details = pool_facts(pool), {"value": image, "pool": pool.name, "version": needs.version}
    newest = newest_cuda_major(facts.model.compute_capability) if facts.model else None
    if newest is not None and needs.major > newest and facts.model is not None:
        of_gpu = {"gpu": facts.model.id, "architecture": facts.model.architecture, "newest": str(newest)}
        return [finding("GF354", path, **details, **of_gpu)]
    driver = pool_driver(pool, facts)
    if driver is None:
        return [finding("GF356", path, **details)]
    verdict, top = fit(needs, driver.low, newest, compat=team.cuda_compat), driver_cuda(driver.low)
    supports = f"supports CUDA {top[0]}.{top[1]}" if top else "is older than every CUDA version of the table"
    details |= {"driver": driver.words, "supports": supports}
    details["choices"] = _choices(needs, pool, facts, driver, verdict, stated=team.cuda_compat)
    if verdict is Fit.REFUSED:
        return [finding("GF350" if driver.certain else "GF351", path, **details)]
    if verdict is Fit.MINOR:
        return [finding("GF352", path, **details, full=full_driver(needs.major, needs.minor))]
    if verdict is Fit.FORWARD:
        return _forward(team, facts, path, details)
    return []


def _forward(team: Team, facts: Facts, path: str, details: dict[str, Any]) -> list[Finding]:
    """Forward compatibility that the team has stated, on a GPU where it is known to work, is nothing to report."""
    works = forward_compatible(facts.model)
    if team.cuda_compat and works:
        return []
    name = facts.model.id if facts.model else "this GPU"
    known = f"{name} is one" if works else f"no source says it of {name}"
    return [finding("GF353", path, **details, known=known)]


def _choices(needs: Required, pool: Pool, facts: Facts, driver: KnownDriver, verdict: Fit, *, stated: bool) -> str:
    """What the reader can do: another driver, another image, cuda-compat; only what is possible here."""
    options = [text for text in (_other_driver(needs, pool, facts), _other_image(driver)) if text]
    if not stated and forward_compatible(facts.model):
        carried = "which the image carries" if needs.branches is not None else "in the image"
        options.append(
            f"forward compatibility on this data-centre GPU, by the package cuda-compat-{needs.major}-{needs.minor}"
            f" {carried}, with `cudaCompat: true` on the team"
        )
    floor = cuda_min_driver().get(needs.major)
    if verdict is Fit.REFUSED and floor and driver_version(driver.low) >= driver_version(floor):
        options.append("NVIDIA_DISABLE_REQUIRE=1 in the pod, which leaves minor-version mode")
    return f"Choose {'; or '.join(options)}." if options else "Use another image or another pool."


def _other_driver(needs: Required, pool: Pool, facts: Facts) -> str:
    wanted = full_driver(needs.major, needs.minor) or cuda_min_driver().get(needs.major)
    last = facts.model.newest_driver_branch if facts.model else None
    if wanted is None or (last is not None and driver_version(wanted).branch > last):
        return ""
    if pool.driver == "operator":
        listed = [v for v in operator_drivers() if driver_version(v) >= driver_version(wanted)]
        fits = [str(driver_version(v).branch) for v in listed if last is None or driver_version(v).branch <= last]
        return f'`driverBranch: "{min(fits)}"` on the pool' if fits else ""
    if pool.driver == "aks":
        own = facts.size is not None and facts.size.driver_family != "grid"  # the operator has no GRID driver
        return f"a node image with driver {wanted} or newer" + (", or `driver: operator` with one" if own else "")
    return f"driver {wanted} or newer on the hosts"


def _other_image(driver: KnownDriver) -> str:
    top = driver_cuda(driver.low)
    return f"an image built for CUDA {top[0]}.{top[1]} or older" if top else ""
