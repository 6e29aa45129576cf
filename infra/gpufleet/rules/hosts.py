"""Rules about hosts in stack files: drivers, operating systems, package sources."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import driver_branch
from gpufleet.catalog.platforms import platform_names
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.hosts.platform import System
from gpufleet.places.existing.hosts import PREPARED_OWNERS, host_driver, source_hosts, system
from gpufleet.places.existing.model import ExistingStack, NodePool, existing_stack, node_pool
from gpufleet.stackfile.rules import GF109

GF801 = rule(
    "GF801", Severity.ERROR,
    title="hostDriver says how the roles install a driver, and this pool's owner is {value}.",
    reason="The owner of a pool is the only one to install its driver.",
    remedy="Remove hostDriver, or set `driver: host`.",
    source="roles/gpu_driver/README.md",
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, driver: operator, hostDriver: {method: distro}}]
    """,
    fix=("driver: operator, ", ""),
)

GF802 = rule(
    "GF802", Severity.ERROR,
    title="The installer file has a checksum, and the pool has no driverVersion.",
    reason="A checksum belongs to one file, and a file to one exact version.",
    remedy="Set driverVersion beside the checksum.",
    source="DIG",
    needs=("value", "version"),
    wrong="""
        gpufleet:pools:
          - name: t4
            hostDriver:
              method: runfile
              runfileSha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    """,
    right="""
        gpufleet:pools:
          - name: t4
            hostDriver:
              method: runfile
              runfileSha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
            driverVersion: 580.126.09
    """,
)

GF803 = rule(
    "GF803", Severity.ERROR,
    title="{gpu} does not take {value} kernel modules.",
    reason="Open modules need Turing or newer; Grace Hopper and Blackwell take no others (NVIDIA driver "
    "installation guide).",
    remedy="Remove flavour; it follows the GPU.",
    source="DIG; OGKM; architectures",
    wrong="gpufleet:pools: [{name: t4, gpu: B200, hostDriver: {flavour: proprietary}}]",
    right="gpufleet:pools: [{name: t4, gpu: B200, hostDriver: {flavour: open}}]",
)

GF804 = rule(
    "GF804", Severity.ERROR,
    title="Driver branch {branch} has no {value} kernel modules.",
    reason="The open ones exist since 515; from 620 on there are no others (NVIDIA driver installation guide).",
    remedy="Remove flavour, or choose another branch.",
    source="DIG; driver_branches",
    wrong='gpufleet:pools: [{name: t4, driverBranch: "620", hostDriver: {flavour: proprietary}}]',
    right='gpufleet:pools: [{name: t4, driverBranch: "580", hostDriver: {flavour: proprietary}}]',
)

GF805 = rule(
    "GF805", Severity.ERROR,
    title="Hosts with {value} cannot be prepared.",
    reason="The release is older than what Ansible or NVIDIA's packages support.",
    remedy="Use a newer release, or `driver: none` and prepare the hosts in another way.",
    source="ansible-core; platforms",
    wrong="gpufleet:pools: [{name: t4, os: rhel-8}]",
    right="gpufleet:pools: [{name: t4, os: rhel-9}]",
)

GF806 = rule(
    "GF806", Severity.ERROR,
    title="{os} has no such route to a driver: {value}.",
    reason="Which routes exist comes from a table (platforms.yaml); no repository address is built from a version "
    "number.",
    remedy="Set hostDriver.method to one that exists, or hosts.mirror.cuda to a repository of your own.",
    source="platforms; NVIDIA/nvidia-container-runtime#193",
    needs=("value", "sources"),
    wrong="gpufleet:pools: [{name: t4, os: debian-12, hostDriver: {method: distro}}]",
    right="gpufleet:pools: [{name: t4, os: ubuntu-24.04, hostDriver: {method: distro}}]",
)

GF807 = rule(
    "GF807", Severity.ERROR,
    title="The vendor's repository has no {value} tree for {os}.",
    reason="Not every architecture is built for every operating system (repositories.yaml, host_repositories.yaml).",
    remedy="Use `hostDriver: {{method: runfile, ...}}`, or hosts.mirror.cuda with a repository of your own.",
    source="repositories; host_repositories",
    needs=("value", "sources"),
    wrong="gpufleet:pools: [{name: t4, os: debian-13, architecture: aarch64}]",
    right="gpufleet:pools: [{name: t4, os: debian-12, architecture: aarch64}]",
)

GF808 = rule(
    "GF808", Severity.ERROR,
    title="Packages would come from {value}, which allowedHosts does not name.",
    reason="With allowedHosts the roles leave no other package source on a host, and stop at one that they need "
    "themselves.",
    remedy="Mirror it (hosts.mirror), or add it to allowedHosts.",
    source="repositories; host_repositories; host_toolkit",
    needs=("value", "sources"),
    wrong="""
        gpufleet:hosts:
          mirror: {toolkit: {url: "https://mirror.example.com/toolkit"}, allowedHosts: [mirror.example.com]}
    """,
    right="""
        gpufleet:hosts:
          mirror:
            cuda: {url: "https://mirror.example.com/cuda/<directory>/<architecture directory>/"}
            toolkit: {url: "https://mirror.example.com/toolkit"}
            allowedHosts: [mirror.example.com]
    """,
)


@check("existing pool", GF801, GF802, GF803, GF804)
def host_driver_wanted(pool: FleetPool) -> Iterator[Finding]:
    """How the roles are asked to install the driver, against owner, GPU and branch."""
    spec, path, model = node_pool(pool), pool.path, pool.hardware.model
    wanted = spec.host_driver
    if wanted is None:
        return
    if spec.driver != "host":
        yield GF801.at(f"{path}.hostDriver", value=spec.driver)
        return
    if wanted.method == "runfile" and spec.driver_version is None:
        yield GF802.at(f"{path}.hostDriver.method", value=wanted.method)
    if wanted.flavour is None:
        return
    where = f"{path}.hostDriver.flavour"
    if model is not None and model.modules not in ("both", wanted.flavour):
        yield GF803.at(where, value=wanted.flavour, allowed=[model.modules], gpu=model.id)
    pinned = spec.driver_version or spec.driver_branch
    branch = driver_branch(pinned) if pinned else None
    if branch is not None and branch.kernel_modules not in ("both", wanted.flavour):
        number, offered = str(branch.branch), [branch.kernel_modules]
        yield GF804.at(where, value=wanted.flavour, allowed=offered, branch=number)


@check("existing", GF109, GF805, GF806, GF807)
def operating_systems(fleet: Fleet) -> Iterator[Finding]:
    """The hosts' operating systems, and whether a driver can come there as asked."""
    stack = existing_stack(fleet)
    for i, pool in enumerate(stack.pools):
        yield from _system(pool, stack, f"pools[{i}]")


def _system(pool: NodePool, stack: ExistingStack, path: str) -> Iterator[Finding]:
    if pool.os is None:
        return
    where, seen = f"{path}.os", system(pool)
    if seen is None:
        because = "Package names and repositories come from a table of operating systems."
        told = {"what": "operating system", "because": because, "hint": "Use one of those allowed."}
        yield GF109.at(where, value=pool.os, allowed=platform_names(), **told)
    elif not pool.hosts or pool.driver not in PREPARED_OWNERS:
        return
    elif seen.row and seen.row.support == "refused":
        yield GF805.at(where, value=pool.os, because=seen.refused or "It is not supported.")
    elif pool.driver == "host":
        yield from _route(pool, seen, stack, path)


def _route(pool: NodePool, seen: System, stack: ExistingStack, path: str) -> Iterator[Finding]:
    """Whether the driver is available as asked. Own mirrors, and repositories of others, are not checked."""
    method, mirror = host_driver(pool).method, stack.hosts.mirror
    where = f"{path}.hostDriver.method" if pool.host_driver else f"{path}.os"
    if method == "cuda_repo" and (not stack.hosts.manage_repositories or (mirror and mirror.cuda)):
        return
    if method not in seen.routes:
        routes = [r for r in seen.routes if r != "none"]
        yield GF806.at(where, value=method, allowed=routes, os=pool.os)
    elif method == "cuda_repo" and seen.tree is None:
        yield GF807.at(f"{path}.architecture", value=pool.architecture, os=pool.os)


@check("existing", GF808)
def mirror_hosts(fleet: Fleet) -> Iterator[Finding]:
    """With allowed hosts, every source in use is on one of them: the roles end with an error otherwise."""
    stack = existing_stack(fleet)
    mirror = stack.hosts.mirror
    if mirror is None or not mirror.allowed_hosts:
        return
    for place, host in source_hosts(stack).items():
        if host not in mirror.allowed_hosts:
            yield GF808.at(f"hosts.mirror.{place}", value=host, allowed=mirror.allowed_hosts)
