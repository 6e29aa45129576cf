"""What is known of the driver on a pool's nodes, by its owner."""

from __future__ import annotations

from gpufleet.catalog import aks_node_driver, component
from gpufleet.plan.driver_owner import pinned_version
from gpufleet.plan.facts import Facts
from gpufleet.stackfile.pools import Pool
from gpufleet.teams.cuda import KnownDriver, branch_bounds


def pool_driver(pool: Pool, facts: Facts) -> KnownDriver | None:
    """The driver of a pool by its owner; None where nothing is known, or nobody installs one."""
    if pool.driver == "aks" and facts.size is not None:
        row = aks_node_driver(facts.size)
        if row is None:
            return None
        words = f"driver {row.version} (AKS node images of {row.as_of[:7]})"
        return KnownDriver(row.version, row.version, False, words)
    if pool.driver == "operator":
        if pool.driver_branch is None or pool.driver_version is not None:
            version = pool.driver_version or component("operator-driver").version
            return KnownDriver.exact(version)
        pinned = pinned_version(pool)
        return KnownDriver.exact(pinned) if pinned else branch_bounds(pool.driver_branch)
    if pool.driver == "host":
        if pool.driver_version is not None:
            return KnownDriver.exact(pool.driver_version)
        return branch_bounds(pool.driver_branch) if pool.driver_branch else None
    return None
