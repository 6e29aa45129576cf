"""Hosts that the Ansible roles prepare: which they are, and what is decided about them from the stack file alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpufleet.catalog import DriverBranch, default_flavour, driver_branch
from gpufleet.catalog.platforms import cuda_url, runfile_url, toolkit_repositories
from gpufleet.hosts.platform import System, system_of
from gpufleet.hosts.target import recommended_branch
from gpufleet.methods.mig import Mig, layout_name
from gpufleet.places.existing.model import ExistingStack, NodePool, node_pool
from gpufleet.stackfile.hosts import HostDriver, Mirror, MirrorRepository

if TYPE_CHECKING:
    from gpufleet.fleet.model import Fleet, FleetPool

#: Owners whose hosts the roles go to. Hosts of the others are left alone.
PREPARED_OWNERS = ("host", "operator")


def listed_pools(fleet: Fleet) -> Iterator[FleetPool]:
    """The pools that list their hosts."""
    return (pool for pool in fleet.pools if isinstance(pool.spec, NodePool) and pool.spec.hosts)


def host_driver(pool: NodePool) -> HostDriver:
    """What the stack file says about the driver on the hosts, or the defaults."""
    return pool.host_driver or HostDriver.model_validate({})


def target_driver(pool: FleetPool, today: date) -> tuple[DriverBranch | None, str | None]:
    """(branch, exact version) that the roles install on a pool with `driver: host`; None is unknown."""
    spec, model = pool.spec, pool.hardware.model
    pinned = spec.driver_version or spec.driver_branch
    if pinned:
        branch = driver_branch(pinned)
    else:
        branch = recommended_branch([model], today.strftime("%Y-%m")) if model else None
    return branch, spec.driver_version or (branch.newest_seen if branch else None)


def kernel_modules(pool: FleetPool, branch: DriverBranch) -> str | None:
    """`open` or `proprietary`: what the stack file says, else what the roles choose. None: the GPU is unknown."""
    model, wanted = pool.hardware.model, host_driver(node_pool(pool)).flavour
    return wanted or (default_flavour([model], branch.branch) if model else None)


def system(pool: NodePool) -> System | None:
    """The operating system of a pool's hosts, None where the stack file or the table does not know it."""
    identity, _, version = (pool.os or "").partition("-")
    found = system_of(identity, version, pool.architecture)
    return found if found.row else None


def mig_layout(pool: FleetPool) -> tuple[str, dict[str, int]] | None:
    """(name, instances of each GPU) of the layout that the roles apply on the hosts of a pool, or None.

    One kind of instance has the name that every mig-parted has for it, such as all-1g.10gb.
    """
    method = pool.method
    if pool.owner != "host" or not isinstance(method, Mig) or pool.layout is None:
        return None
    return (f"all-{method.profile}" if method.profile else layout_name(pool.layout)), dict(pool.layout)


def source_hosts(stack: ExistingStack) -> dict[str, str]:
    """Place in the stack file -> host name, for every address that the roles configure as a source or fetch from."""
    mirror = stack.hosts.mirror or Mirror.model_validate({})
    pools = [pool for pool in stack.pools if pool.hosts and pool.driver == "host"]
    methods = {host_driver(p).method for p in pools}
    addresses: dict[str, str | None] = {}
    if "cuda_repo" in methods:
        addresses |= _addresses("cuda", mirror.cuda, cuda_url())
    if pools:
        addresses |= _addresses("toolkit", mirror.toolkit, toolkit_repositories()[0].url)
    if "runfile" in methods:
        addresses["runfileUrl"] = mirror.runfile_url or runfile_url()
    return {place: urlsplit(url).hostname or url for place, url in addresses.items() if url}


def _addresses(part: str, own: MirrorRepository | None, vendor: str) -> dict[str, str | None]:
    return {f"{part}.url": own.url, f"{part}.keyUrl": own.key_url} if own else {f"{part}.url": vendor}
