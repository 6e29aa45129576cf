"""Who installs the driver: what follows from a pool's owner, alone and for a whole operator release.

Sources: AKS documentation (use-nvidia-gpu, nvidia-gpu-operator, aks-managed-gpu-nodes), GPU Operator 26.7 values and
documentation (docs/driver-owner.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpufleet.catalog import component, distribution, driver_branch, driver_version, operator_drivers
from gpufleet.catalog.cuda import KnownDriver, branch_bounds
from gpufleet.fleet.model import FleetPool, Release
from gpufleet.fleet.runtime import NVIDIA_RUNTIME_CLASS, release_cdi
from gpufleet.parts.chart_values import get_value
from gpufleet.parts.hardware import Hardware
from gpufleet.parts.names import DEPLOY_LABEL
from gpufleet.places.base import Place
from gpufleet.stackfile.pool import Pool
from gpufleet.stackfile.software import OperatorRoute

#: Who installs the driver, for people; a place adds its own owners.
OWNER_WORDS = {
    "operator": "the GPU Operator installs it",
    "host": "the Ansible roles install it on the host",
    "none": "nobody installs it",
}


def serves(pool: Pool) -> bool:
    """Whether the stack's GPU software runs on this pool at all."""
    return pool.driver not in ("none", "managed")


def pinned_version(pool: Pool) -> str | None:
    """The exact version that a pool asks for; of a branch, the one that the operator's release lists."""
    if pool.driver_version or not pool.driver_branch:
        return pool.driver_version
    listed = [v for v in operator_drivers() if driver_version(v).branch == int(pool.driver_branch)]
    if listed:
        return max(listed, key=driver_version)
    branch = driver_branch(pool.driver_branch)
    return branch.newest_seen if branch else None


def known_driver(pool: Pool, place: Place[Any, Any], hardware: Hardware) -> KnownDriver | None:
    """The driver of a pool by its owner; None where nothing is known, or nobody installs one."""
    if pool.driver == "operator":
        if pool.driver_branch is None or pool.driver_version is not None:
            return KnownDriver.exact(pool.driver_version or component("operator-driver").version)
        pinned = pinned_version(pool)
        return KnownDriver.exact(pinned) if pinned else branch_bounds(pool.driver_branch)
    if pool.driver == "host":
        if pool.driver_version is not None:
            return KnownDriver.exact(pool.driver_version)
        return branch_bounds(pool.driver_branch) if pool.driver_branch else None
    return place.own_driver(pool, hardware)


def release_of(
    route: OperatorRoute,
    pools: Sequence[FleetPool],
    cluster: str,
    mig_strategy: str,
    layouts: Mapping[str, Mapping[str, int]],
) -> Release:
    """What one operator release has for all nodes; where owners are mixed, node labels keep its operands apart.

    `cluster` is the distribution.
    """
    own = [pool for pool in pools if pool.owner == "operator"]
    known = distribution(cluster)
    shipped = known.runtime_class if known is not None and not own else None
    pinned = sorted({v for pool in own if (v := pinned_version(pool.spec))})
    modules = {pool.hardware.model.modules for pool in own if pool.hardware.model}
    flavour = {"proprietary": "proprietary", "open": "open"}.get(next(iter(modules)) if len(modules) == 1 else "")
    return Release(
        driver=bool(own),
        toolkit=bool(own),
        runtime_class=shipped or NVIDIA_RUNTIME_CLASS,
        cdi=release_cdi(route, bool(own), pools),
        version=_driver(pinned, get_value(route.values, "driver.usePrecompiled") is True),
        kernel_module_type=flavour if own else None,
        mig_strategy=mig_strategy,
        layouts=layouts,
    )


def _driver(pinned: Sequence[str], precompiled: bool) -> str | None:
    """driver.version: images of precompiled drivers are tagged with the branch, not the version (cloud-native-docs)."""
    if precompiled:
        return str(driver_version(pinned[0] if pinned else component("operator-driver").version).branch)
    return pinned[0] if pinned else None


def operand_labels(pool: Pool, release: Release, ahead: bool = False) -> dict[str, str]:
    """Labels that keep the operator's operands off nodes where another owner has done the work.

    `ahead`: also off what the release does not install now. Where labels change after the release (agent pools of a
    cloud), one that begins to install drivers finds them there.
    """
    if not serves(pool):
        return {DEPLOY_LABEL + "operands": "false"}
    if pool.driver == "operator":
        return {}
    installs = {"driver": release.driver or ahead, "container-toolkit": release.toolkit or ahead}
    return {DEPLOY_LABEL + part: "false" for part, on in installs.items() if on}
