"""MIG: does a layout fit the GPU, who cuts it, and under which names the instances are offered.

Profiles and how many of each fit come from the catalogue (NVIDIA's MIG guide). Which ones fit together follows from
where each may begin on the GPU's memory slots, which the table's figures give: 7 of a kind begin at slots 0 to 6, 4 at
every second slot, 3 at 0, 2 and 4, 2 at 0 and 4 (NVIDIA/go-nvml, placement tables). Profiles with `+me` hold a media
engine that the GPU has once: each of them fits once, so (inferred) one of all of them does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpufleet.catalog import GpuModel, driver_version, known_bad_drivers
from gpufleet.findings.finding import Finding, finding
from gpufleet.plan.facts import Facts
from gpufleet.plan.pool_driver import pool_driver
from gpufleet.stackfile.model import Stack, stack_pools
from gpufleet.stackfile.pools import AksPool, Pool
from gpufleet.stackfile.sharing import Mig

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Placement:
    """Memory slots at which instances of a profile may begin, and how many slots each takes."""

    starts: tuple[int, ...]
    size: int


def placement(model: GpuModel, profile: str) -> Placement | None:
    """Where a profile may stand on a model; None where the table does not say enough to tell."""
    known = model.mig_profile(profile)
    if known is None or model.mig_slices is None:
        return None
    plain = known.split("+", maxsplit=1)[0].split("-", maxsplit=1)[0]
    most = model.mig_profiles.get(plain, model.mig_profiles[known])
    compute = int(plain.split("g.")[0])
    if model.mig_slices == 7:
        if compute == 7:
            return Placement((0,), 8)
        small = {7: Placement(tuple(range(7)), 1), 4: Placement((0, 2, 4, 6), 2), 3: Placement((0, 2, 4), 2)}
        return small.get(most) or (Placement((0, 4), 4) if most == 2 else Placement((0,), 4) if compute == 4 else None)
    if model.mig_slices == 4:
        return {4: Placement((0, 1, 2, 3), 1), 2: Placement((0, 2), 2), 1: Placement((0,), 4)}.get(most)
    if model.mig_slices == 2:
        return {2: Placement((0, 1), 1), 1: Placement((0,), 2)}.get(most)
    return None


def most_of(model: GpuModel, profile: str) -> int | None:
    """Most instances of a profile on one GPU, in either spelling; None: the model has no such profile."""
    known = model.mig_profile(profile)
    return None if known is None else model.mig_profiles[known]


def fits(model: GpuModel, instances: Mapping[str, int]) -> bool | None:
    """Whether these instances fit on one GPU together; None where that cannot be told."""
    wanted: list[Placement] = []
    if sum(count for profile, count in instances.items() if "+me" in profile) > 1:
        return False
    for profile, count in instances.items():
        where = placement(model, profile)
        if where is None:
            return None
        wanted += [where] * count
    wanted.sort(key=lambda p: (-p.size, p.starts))
    slots = 8 if model.mig_slices == 7 else model.mig_slices or 0

    def place(i: int, taken: int) -> bool:
        if i == len(wanted):
            return True
        for start in wanted[i].starts:
            mask = ((1 << wanted[i].size) - 1) << start
            if start + wanted[i].size <= slots and not taken & mask and place(i + 1, taken | mask):
                return True
        return False

    return place(0, 0)


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
