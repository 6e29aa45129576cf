"""Rules about Kubernetes versions: what AKS serves, what pools may run, what the software needs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from gpufleet.catalog import AksVersion, aks_limit, aks_versions, component
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet
from gpufleet.places.aks.model import AksCluster, aks_stack

GF470 = rule(
    "GF470", Severity.ERROR,
    title="AKS does not serve Kubernetes {value}.",
    reason="AKS makes clusters and pools of the minor versions that it supports.",
    because="AKS serves {oldest} to {newest} (as of {as_of}).",
    remedy="Write one of these versions.",
    source="AKS-DOC (supported-kubernetes-versions); aks_versions",
    wrong='gpufleet:cluster: {version: "1.27"}',
    right='gpufleet:cluster: {version: "1.37"}',
)

GF471 = rule(
    "GF471", Severity.WARNING,
    title="AKS supports Kubernetes {value} until the end of {month}.",
    reason="After that, AKS makes no new cluster of the version, and repairs nothing in it.",
    because="After that, AKS makes no new cluster of the version, and repairs nothing in it{long}.",
    remedy="Raise `version`, one minor version at a time.",
    source="AKS-DOC (supported-kubernetes-versions); aks_versions",
    wrong='gpufleet:cluster: {version: "1.34"}',
    right='gpufleet:cluster: {version: "1.37"}',
)

GF472 = rule(
    "GF472", Severity.WARNING,
    title="Whether AKS serves Kubernetes {value} is not known here.",
    reason="The table of this release of gpufleet does not have the version.",
    because="The table of {as_of} has {oldest} to {newest}.{long}",
    remedy="Look it up with `az aks get-versions`, and acknowledge this.",
    source="AKS-DOC (supported-kubernetes-versions); aks_versions",
    wrong='gpufleet:cluster: {version: "1.38"}',
    right='gpufleet:cluster: {version: "1.37"}',
)

GF473 = rule(
    "GF473", Severity.ERROR,
    title="The pool's Kubernetes {value} does not go with a cluster of {cluster}.",
    reason="A pool is never newer than its control plane, and at most two minor versions older.",
    remedy="Write a version within these bounds, or leave it out: the pool then has that of the cluster.",
    source="SDK-AN; hashicorp/terraform-provider-azurerm#5541",
    wrong="""
        gpufleet:cluster: {version: "1.36"}
        gpufleet:pools: [{name: t4, version: "1.37"}]
    """,
    fix=('{name: t4, version: "1.37"}', '{name: t4, version: "1.35"}'),
)

GF482 = rule(
    "GF482", Severity.WARNING,
    title="The channel {value} moves the cluster past Kubernetes {stated}.",
    reason="It brings newer minor versions, and AKS never goes back: once it has moved, the stated version is refused "
    "as a downgrade whenever the cluster or a pool changes.",
    remedy="Use `upgradeChannel: patch`, or leave `version` out; acknowledge this if you raise `version` in time.",
    source="SDK-AN; AKS-DOC (auto-upgrade-cluster)",
    wrong='gpufleet:cluster: {upgradeChannel: rapid, version: "1.37"}',
    right='gpufleet:cluster: {upgradeChannel: patch, version: "1.37"}',
)

GF280 = rule(
    "GF280", Severity.ERROR,
    title="{software} needs Kubernetes {least} or newer, and the cluster has {value}.",
    reason="The software refuses older versions, or does not start there.",
    remedy="Raise the cluster's version, or choose a route or a method that takes it.",
    source="GPUO; HAMI; components",
    wrong="""
        gpufleet:cluster: {kind: existing, version: "1.22"}
        gpufleet:sharing: {half: {strategy: hami, splitCount: 4}}
        gpufleet:pools: [{name: t4, sharing: half}]
    """,
    fix=('version: "1.22"', 'version: "1.30"'),
)

GF281 = rule(
    "GF281", Severity.WARNING,
    title="{software} was not tried on Kubernetes {value}.",
    reason="The vendor's list of platforms begins with a newer version.",
    because="The vendor's list of platforms begins with {least}.",
    remedy="Raise the cluster's version, or acknowledge this.",
    source="GPUO; components",
    wrong="""
        gpufleet:cluster: {kind: existing, version: "1.30"}
        gpufleet:stack: {kind: operator}
    """,
    fix=('version: "1.30"', 'version: "1.33"'),
)

#: A version is near its end this many months before, the last month counted.
NEAR_END = 3
#: Kubernetes brings a minor version about every four months; AKS serves the next one as a preview.
MONTHS_PER_MINOR = 4
#: Long-term support keeps a version for a year longer: about three minor versions.
LONG_TERM = 3


@check("aks", GF470, GF471, GF472)
def served(fleet: Fleet) -> Iterator[Finding]:
    """Whether AKS serves the versions that the file states, and for how long."""
    stack, today = aks_stack(fleet), date.today()
    stated = [("cluster.version", stack.cluster.version)]
    stated += [(f"pools[{i}].version", pool.version) for i, pool in enumerate(stack.pools)]
    for path, version in stated:
        if version is not None:
            yield from _judged(path, version, stack.cluster, today)


def _judged(path: str, version: str, cluster: AksCluster, today: date) -> Iterator[Finding]:
    table = aks_versions()
    known = {"oldest": next(iter(table)), "newest": list(table)[-1], "as_of": list(table.values())[-1].as_of}
    minor, row = _minor(version), table.get(".".join(version.split(".")[:2]))
    if row is not None:
        yield from _support(path, version, row, cluster, today)
        return
    oldest, newest = _minor(known["oldest"]), _minor(known["newest"])
    # Long-term support is a matter of the tier; that of a cluster which exists is not known.
    long = cluster.tier == "Premium" or cluster.existing is not None
    if long and oldest - LONG_TERM <= minor < oldest:
        yield GF472.at(path, value=version, long=" Long-term support may still serve it.", **known)
    elif newest < minor <= newest + 1 + _months(list(table.values())[-1].ga, today) // MONTHS_PER_MINOR:
        yield GF472.at(path, value=version, long="", **known)
    else:
        yield GF470.at(path, value=version, allowed=tuple(table), **known)


def _support(path: str, version: str, row: AksVersion, cluster: AksCluster, today: date) -> Iterator[Finding]:
    if row.eol is not None and -_months(row.eol, today) < NEAR_END:
        long = f"; tier Premium with long-term support keeps it until {row.lts_eol}" if row.lts_eol else ""
        yield GF471.at(path, value=version, month=row.eol, long=long)


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _months(since: str | None, today: date) -> int:
    """Whole months from a month such as "2026-10" to today; below 0 where it is still to come."""
    if since is None:
        return 0
    year, month = map(int, since.split("-")[:2])
    return (today.year - year) * 12 + today.month - month


@check("aks", GF482)
def moving_target(fleet: Fleet) -> Iterator[Finding]:
    """A version that a channel leaves behind."""
    cluster = aks_stack(fleet).cluster
    if cluster.version is not None and cluster.upgrade_channel in ("stable", "rapid"):
        yield GF482.at("cluster.upgradeChannel", value=cluster.upgrade_channel, stated=cluster.version)


@check("aks", GF473)
def skew(fleet: Fleet) -> Iterator[Finding]:
    """A pool's own version against that of the control plane."""
    stack = aks_stack(fleet)
    cluster = stack.cluster.version
    for i, own in enumerate(pool.version for pool in stack.pools):
        if own is None or cluster is None:
            continue
        behind, exact = _minor(cluster) - _minor(own), own.count(".") == cluster.count(".") == 2
        newer = behind < 0 or (behind == 0 and exact and _patch(own) > _patch(cluster))
        if newer or behind > aks_limit("pool-version-skew"):
            yield GF473.at(f"pools[{i}].version", value=own, cluster=cluster)


def _patch(version: str) -> int:
    return int(version.rpartition(".")[2])


@check("stack", GF280, GF281)
def needed(fleet: Fleet) -> Iterator[Finding]:
    """What the software needs of the cluster that the file states."""
    version = fleet.stack.cluster.version
    if version is None:
        return
    used = [("The GPU Operator", "gpu-operator")] if fleet.release is not None else []
    used += [("HAMi", "hami")] if any(pool.method.strategy == "hami" for pool in fleet.served) else []
    for software, name in used:
        row, minor = component(name), _minor(version)
        if row.kubernetes_min and minor < _minor(row.kubernetes_min):
            yield GF280.at("cluster.version", value=version, software=software, least=row.kubernetes_min)
        elif row.kubernetes_validated and minor < _minor(row.kubernetes_validated):
            yield GF281.at("cluster.version", value=version, software=software, least=row.kubernetes_validated)
