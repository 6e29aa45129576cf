"""MIG: does a layout fit the GPU, and does the driver know it."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import GpuModel, driver_version, known_bad_drivers
from gpufleet.catalog.mig_placement import fits, most_of
from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.methods.mig import Mig


def check_mig(pool: FleetPool, fleet: Fleet) -> Iterator[Finding]:
    """Everything about one MIG pool that the GPU, its driver, or the operator release contradict."""
    mig, model, where = pool.method, pool.hardware.model, f"{pool.path}.sharing"
    if not isinstance(mig, Mig) or pool.profile is None or model is None:
        return
    if not model.mig_profiles:
        yield finding("GF310", where, value=pool.spec.sharing, gpu=model.id)
        return
    yield from _layout(mig, model, where)
    yield from _driver(pool, mig, model)
    if fleet.release is not None and mig.mig_strategy != fleet.release.mig_strategy:
        yield finding("GF316", where, value=mig.mig_strategy, other=fleet.release.mig_strategy)


def _layout(mig: Mig, model: GpuModel, where: str) -> Iterator[Finding]:
    found = False
    for profile, count in ({mig.profile: 1} if mig.profile else mig.instances).items():
        most = most_of(model, profile)
        if most is None:
            allowed = [f"{p} (up to {n})" for p, n in model.mig_profiles.items()]
            yield finding("GF311", where, value=profile, allowed=allowed, gpu=model.id)
        elif count > most:
            yield finding("GF312", where, value=f"{count} x {profile}", gpu=model.id, most=str(most))
        found = found or most is None or count > most
    if not found and mig.instances and fits(model, mig.instances) is False:
        text = ", ".join(f"{n} x {p}" for p, n in sorted(mig.instances.items()))
        yield finding("GF312", where, value=text, gpu=model.id, most="fewer of them together")


def _driver(pool: FleetPool, mig: Mig, model: GpuModel) -> Iterator[Finding]:
    """Drivers that somebody chose: too old for MIG on this GPU, too old for a profile, or known to fail with MIG."""
    driver, spec = pool.driver, pool.spec
    if driver is None or spec.driver not in ("host", "operator"):
        return
    key = "driverVersion" if spec.driver_version else "driverBranch" if spec.driver_branch else "driver"
    where, given = f"{pool.path}.{key}", spec.driver_version or spec.driver_branch or driver.high
    have = driver_version(driver.high)  # of a branch, the newest that is known
    if model.mig_min_driver and have < driver_version(model.mig_min_driver):
        yield finding("GF212", where, value=given, gpu=f"MIG on {model.id}", oldest=model.mig_min_driver)
        return
    for profile in mig.kinds:
        oldest = model.mig_min_branch.get(model.mig_profile(profile) or "")
        if oldest is not None and have.branch < oldest:
            yield finding("GF212", where, value=given, gpu=f"{profile} on {model.id}", oldest=str(oldest))
    if driver.low == driver.high:
        for bad in known_bad_drivers():
            if "mig" in bad.applies and bad.concerns(driver.high):
                details = {"when": bad.when, "why": bad.reason, "last": bad.last or driver.high}
                yield finding("GF315", where, value=given, **details)
