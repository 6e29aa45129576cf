"""MIG: does a layout fit the GPU, who cuts it, and under which names the instances are offered."""

from __future__ import annotations

from gpufleet.catalog import GpuModel, driver_version, known_bad_drivers
from gpufleet.catalog.mig_placement import fits, most_of
from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.facts import Facts
from gpufleet.plan.pool_driver import pool_driver
from gpufleet.stackfile.model import Stack, stack_pools
from gpufleet.stackfile.pools import AksPool, Pool
from gpufleet.stackfile.sharing import Mig

GPU = "nvidia.com/gpu"


def layout(spec: Mig, model: GpuModel | None) -> dict[str, int] | None:
    """Instances of each GPU: profile -> count; None where the model has no such profile or is unknown."""
    if model is None or not model.mig_profiles:
        return None
    wanted = {spec.profile: most_of(model, spec.profile) or 0} if spec.profile else dict(spec.instances)
    if any(most_of(model, p) is None or n < 1 for p, n in wanted.items()):
        return None
    return dict(sorted(wanted.items()))


def aks_profile(spec: Mig, model: GpuModel | None) -> str | None:
    """`gpuInstanceProfile` of AKS that cuts the GPU as asked; AKS knows uniform layouts only."""
    if model is None or spec.profile is None:
        return None
    return next((name for name, profile in model.mig_aks.items() if profile == spec.profile), None)


def resource_names(spec: Mig) -> tuple[str, ...]:
    """What pods ask for, sorted. Media extensions are written `.me` in resource names."""
    suffix = ".shared" if spec.rename_by_default else ""
    if spec.mig_strategy == "single":
        return (GPU + suffix,)
    kinds = [spec.profile] if spec.profile else list(spec.instances)
    return tuple(sorted(f"nvidia.com/mig-{k.replace('+', '.')}{suffix}" for k in kinds if k))


def memory_per_instance_gib(profile: str) -> float:
    """GiB of one instance by its name: 10 for 1g.10gb."""
    return float(profile.split(".")[1].split("gb", maxsplit=1)[0])


def release_strategy(stack: Stack) -> str:
    """`mig.strategy` of the operator, one word for all nodes; it reaches the plugin as an environment variable."""
    words = {
        spec.mig_strategy for p in stack_pools(stack) if isinstance(spec := stack.sharing.get(p.sharing or ""), Mig)
    }
    return "mixed" if "mixed" in words else "single" if words else "none"


def check_mig(pool: Pool, spec: Mig, facts: Facts, release: str | None, path: str) -> list[Finding]:
    """Everything about one MIG pool that hardware, owner or autoscaler contradict.

    `release` is the MIG strategy of the operator release, None on the standalone route.
    """
    where, model = f"{path}.sharing", facts.model
    if model is None:
        return []
    if not model.mig_profiles:
        return [finding("GF310", where, value=pool.sharing, gpu=model.id)]
    found: list[Finding] = []
    allowed = [f"{p} (up to {n})" for p, n in model.mig_profiles.items()]
    asked = {spec.profile: 1} if spec.profile else spec.instances
    for profile, count in asked.items():
        most = most_of(model, profile)
        if most is None:
            found.append(finding("GF311", where, value=profile, allowed=allowed, gpu=model.id))
        elif count > most:
            found.append(finding("GF312", where, value=f"{count} x {profile}", gpu=model.id, most=str(most)))
    if not found and spec.instances and fits(model, spec.instances) is False:
        text = ", ".join(f"{n} x {p}" for p, n in sorted(spec.instances.items()))
        found.append(finding("GF312", where, value=text, gpu=model.id, most="fewer of them together"))
    found += _check_cutter(pool, spec, facts, path)
    found += _check_driver(pool, spec, facts, model, path)
    if isinstance(pool, AksPool) and pool.autoscale and pool.autoscale.min == 0 and spec.mig_strategy == "mixed":
        names = ", ".join(resource_names(spec))
        found.append(finding("GF421", f"{path}.autoscale.min", value=0, resource=names))
    if release is not None and spec.mig_strategy != release:
        found.append(finding("GF316", where, value=spec.mig_strategy, other=release))
    return found


def _check_cutter(pool: Pool, spec: Mig, facts: Facts, path: str) -> list[Finding]:
    """AKS cuts GPUs only as its profiles say, and only where the size is known to support it."""
    if not isinstance(pool, AksPool) or pool.driver != "aks":
        return []
    if facts.size is not None and facts.size.mig is not True:
        state = "not supported" if facts.size.mig is False else "not known to be supported"
        return [finding("GF313", f"{path}.vmSize", value=facts.size.size, state=state)]
    if facts.model is not None and aks_profile(spec, facts.model) is None:
        asked = spec.profile or ", ".join(spec.instances)
        return [finding("GF314", f"{path}.sharing", value=asked, allowed=sorted(facts.model.mig_aks.values()))]
    return []


def _check_driver(pool: Pool, spec: Mig, facts: Facts, model: GpuModel, path: str) -> list[Finding]:
    """Drivers that somebody chose: too old for MIG on this GPU, too old for a profile, or known to fail with MIG."""
    driver = pool_driver(pool, facts) if pool.driver in ("host", "operator") else None
    if driver is None:
        return []
    key = "driverVersion" if pool.driver_version else "driverBranch" if pool.driver_branch else "driver"
    where, given = f"{path}.{key}", pool.driver_version or pool.driver_branch or driver.high
    have = driver_version(driver.high)  # of a branch, the newest that is known
    if model.mig_min_driver and have < driver_version(model.mig_min_driver):
        return [finding("GF212", where, value=given, gpu=f"MIG on {model.id}", oldest=model.mig_min_driver)]
    found = [
        finding("GF212", where, value=given, gpu=f"{profile} on {model.id}", oldest=str(oldest))
        for profile in ([spec.profile] if spec.profile else spec.instances)
        if (oldest := model.mig_min_branch.get(model.mig_profile(profile) or "")) is not None and have.branch < oldest
    ]
    if driver.low == driver.high:
        found += [
            finding("GF315", where, value=given, when=bad.when, why=bad.reason, last=bad.last or driver.high)
            for bad in known_bad_drivers()
            if "mig" in bad.applies and bad.concerns(driver.high)
        ]
    return found
