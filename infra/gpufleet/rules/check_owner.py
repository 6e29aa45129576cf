"""Who installs the driver: what cluster, route, version and GPU contradict (docs/driver-owner.md)."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import component, driver_branch, driver_branches, driver_version, operator_drivers
from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.owner import pinned_version


def check_owner(pool: FleetPool, fleet: Fleet) -> Iterator[Finding]:
    """Everything that the owner of one pool contradicts."""
    spec, owner, path = pool.spec, pool.owner, pool.path
    where, allowed = f"{path}.driver", fleet.place.owners
    if owner not in allowed:
        yield finding("GF201", where, value=owner, allowed=allowed, kind=fleet.stack.cluster.kind)
        return
    if owner == "operator" and fleet.release is None:
        yield finding("GF202", where, value=owner)
    if owner == "managed":
        yield finding("GF203", where, value=owner, sdk=component("pulumi-azure-native").version)
    if owner in ("none", "managed") and spec.sharing is not None:
        yield finding("GF204", f"{path}.sharing", value=spec.sharing, owner=owner)
    if owner == "none":
        yield finding("GF205", where, value=owner)
    for key, value in (("driverVersion", spec.driver_version), ("driverBranch", spec.driver_branch)):
        if value is not None and owner not in ("operator", "host"):
            yield finding("GF206", f"{path}.{key}", value=value, owner=owner)
    if owner in ("operator", "host"):
        yield from _version(pool)


def _version(pool: FleetPool) -> Iterator[Finding]:
    """Whether the driver that will be installed drives the GPU at all."""
    spec, model = pool.spec, pool.hardware.model
    given = spec.driver_version or spec.driver_branch
    key = "driverVersion" if spec.driver_version else "driverBranch"
    where = f"{pool.path}.{key}" if given else f"{pool.path}.driver"
    if spec.driver_branch and driver_branch(spec.driver_branch) is None:
        known = [str(branch) for branch in driver_branches()]
        why = "The catalogue lists all branches."
        yield finding("GF109", where, value=given, allowed=known, what="driver branch", why=why)
        return
    if spec.driver == "host" and given is None:
        return
    if spec.driver == "operator" and given is not None and (pinned := pinned_version(spec)) not in operator_drivers():
        yield finding("GF217", where, value=pinned, allowed=operator_drivers())
    if model is None:
        return
    version = given or component("operator-driver").version
    branch = driver_version(version).branch
    newest, oldest = model.newest_driver_branch, model.min_driver
    if newest is not None and branch > newest:
        details = {"gpu": model.id, "architecture": model.architecture, "newest": str(newest)}
        yield finding("GF211", where, value=version, **details)
    if oldest is not None:
        wanted, exact = driver_version(oldest), bool(spec.driver_version) or given is None
        if driver_version(version) < wanted if exact else branch < wanted.branch:
            yield finding("GF212", where, value=version, gpu=model.id, oldest=oldest)


def check_release(fleet: Fleet) -> Iterator[Finding]:
    """What the pools of one operator release must agree on."""
    if fleet.release is None:
        return
    versions: dict[str, str] = {}
    modules: dict[str, str] = {}
    for pool in fleet.pools:
        if pool.owner != "operator":
            continue
        versions.setdefault(pinned_version(pool.spec) or component("operator-driver").version, pool.path)
        model = pool.hardware.model
        if model is not None and model.modules != "both":
            modules.setdefault(model.modules, pool.path)
    for code, found in (("GF214", versions), ("GF215", modules)):
        if len(found) > 1:
            yield finding(code, f"{list(found.values())[-1]}.driver", value=" / ".join(sorted(found)))
