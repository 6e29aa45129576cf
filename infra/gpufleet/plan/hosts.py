"""Hosts that the Ansible roles prepare: which they are, which driver they get, and what contradicts that."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from urllib.parse import urlsplit

from gpufleet.catalog import DriverBranch, driver_branch
from gpufleet.catalog.platforms import cuda_url, platform_names, runfile_url, toolkit_repositories
from gpufleet.findings.finding import Finding, finding
from gpufleet.hosts.platform import System, system_of
from gpufleet.hosts.target import default_flavour, recommended_branch
from gpufleet.plan.facts import pool_facts
from gpufleet.stackfile.hosts import HostDriver, Mirror, MirrorRepository
from gpufleet.stackfile.model import ExistingStack, Stack
from gpufleet.stackfile.pools import NodePool
from gpufleet.stackfile.source import join_path

#: Names that mean something else to Ansible.
RESERVED_NAMES = ("all", "localhost", "ungrouped")
#: Owners whose hosts the roles go to. Hosts of the others are left alone.
PREPARED_OWNERS = ("host", "operator")


def listed_pools(stack: Stack) -> Iterator[tuple[int, NodePool]]:
    """(position, pool) of the pools that list their hosts."""
    for i, pool in enumerate(stack.pools):
        if isinstance(pool, NodePool) and pool.hosts:
            yield i, pool


def host_driver(pool: NodePool) -> HostDriver:
    """What the stack file says about the driver on the hosts, or the defaults."""
    return pool.host_driver or HostDriver.model_validate({})


def target_driver(pool: NodePool, today: date) -> tuple[DriverBranch | None, str | None]:
    """(branch, exact version) that the roles install on a pool with `driver: host`; None is unknown."""
    pinned, model = pool.driver_version or pool.driver_branch, pool_facts(pool).model
    if pinned:
        branch = driver_branch(pinned)
    else:
        branch = recommended_branch([model], today.strftime("%Y-%m")) if model else None
    return branch, pool.driver_version or (branch.newest_seen if branch else None)


def kernel_modules(pool: NodePool, branch: DriverBranch) -> str | None:
    """`open` or `proprietary`: what the stack file says, else what the roles choose. None: the GPU is unknown."""
    model, wanted = pool_facts(pool).model, host_driver(pool).flavour
    return wanted or (default_flavour([model], branch.branch) if model else None)


def system(pool: NodePool) -> System | None:
    """The operating system of a pool's hosts, None where the stack file or the table does not know it."""
    identity, _, version = (pool.os or "").partition("-")
    found = system_of(identity, version, pool.architecture)
    return found if found.row else None


def check_hosts(stack: Stack) -> list[Finding]:
    """Everything that the stack file says about hosts and that cannot be."""
    if not isinstance(stack, ExistingStack):
        return []
    found: list[Finding] = []
    for i, pool in enumerate(stack.pools):
        found += _check_driver(pool, f"pools[{i}]")
        found += _check_system(pool, stack, f"pools[{i}]")
    return found + _check_mirror(stack)


def _check_driver(pool: NodePool, path: str) -> list[Finding]:
    wanted = pool.host_driver
    if wanted is None:
        return []
    if pool.driver != "host":
        return [finding("GF801", f"{path}.hostDriver", value=pool.driver)]
    found: list[Finding] = []
    if wanted.method == "runfile" and pool.driver_version is None:
        found.append(finding("GF802", f"{path}.hostDriver.method", value=wanted.method))
    if wanted.flavour is None:
        return found
    where, model = f"{path}.hostDriver.flavour", pool_facts(pool).model
    if model is not None and model.modules not in ("both", wanted.flavour):
        found.append(finding("GF803", where, value=wanted.flavour, allowed=[model.modules], gpu=model.id))
    pinned = pool.driver_version or pool.driver_branch
    branch = driver_branch(pinned) if pinned else None
    if branch is not None and branch.kernel_modules not in ("both", wanted.flavour):
        number, offered = str(branch.branch), [branch.kernel_modules]
        found.append(finding("GF804", where, value=wanted.flavour, allowed=offered, branch=number))
    return found


def _check_system(pool: NodePool, stack: ExistingStack, path: str) -> list[Finding]:
    if pool.os is None:
        return []
    where, seen = f"{path}.os", system(pool)
    if seen is None:
        why = "Package names and repositories come from a table of operating systems."
        what = "operating system"
        return [finding("GF109", where, value=pool.os, allowed=platform_names(), what=what, why=why)]
    if not pool.hosts or pool.driver not in PREPARED_OWNERS:
        return []
    if seen.row and seen.row.support == "refused":
        return [finding("GF805", where, value=pool.os, why=seen.refused or "It is not supported.")]
    return _check_route(pool, seen, stack, path) if pool.driver == "host" else []


def _check_route(pool: NodePool, seen: System, stack: ExistingStack, path: str) -> list[Finding]:
    """Whether the driver can come as asked. An own mirror, or repositories of others, are the user's word."""
    method, mirror = host_driver(pool).method, stack.hosts.mirror
    where = f"{path}.hostDriver.method" if pool.host_driver else f"{path}.os"
    if method == "cuda_repo" and (not stack.hosts.manage_repositories or (mirror and mirror.cuda)):
        return []
    if method not in seen.routes:
        routes = [r for r in seen.routes if r != "none"]
        return [finding("GF806", where, value=method, allowed=routes, os=pool.os)]
    if method == "cuda_repo" and seen.tree is None:
        return [finding("GF807", f"{path}.architecture", value=pool.architecture, os=pool.os)]
    return []


def source_hosts(stack: ExistingStack) -> dict[str, str]:
    """Place in the stack file -> host name, for every address that the roles configure as a source or fetch from."""
    mirror = stack.hosts.mirror or Mirror.model_validate({})
    pools = [p for _, p in listed_pools(stack) if p.driver == "host"]
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


def _check_mirror(stack: ExistingStack) -> list[Finding]:
    """With allowed hosts, every source in use is on one of them: the roles end with an error otherwise."""
    mirror = stack.hosts.mirror
    if mirror is None or not mirror.allowed_hosts:
        return []
    return [
        finding("GF808", f"hosts.mirror.{place}", value=host, allowed=mirror.allowed_hosts)
        for place, host in source_hosts(stack).items()
        if host not in mirror.allowed_hosts
    ]


def check_inventory(stack: Stack, kubeconfig: str | None) -> list[Finding]:
    """What keeps Ansible from reaching the hosts, or their cluster; asked when an inventory is."""
    pools = [(i, pool) for i, pool in listed_pools(stack) if pool.driver in PREPARED_OWNERS]
    if not pools:
        return [finding("GF810", "pools")]
    found: list[Finding] = []
    for i, pool in pools:
        for name, host in pool.hosts.items():
            path = join_path(("pools", i, "hosts", name))
            if host is None or host.address is None:
                found.append(finding("GF811", path, value=name))
            if name in RESERVED_NAMES:
                found.append(finding("GF812", path, value=name))
    if kubeconfig is None:
        found.append(finding("GF813", "cluster.kubeconfig"))
    return found
