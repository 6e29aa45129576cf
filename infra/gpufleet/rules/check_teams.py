"""Teams: quotas that limit nothing, namespaces of others, and pods that would not get onto the nodes."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.findings.finding import Finding, finding
from gpufleet.fleet.model import Fleet
from gpufleet.fleet.taints import tolerations
from gpufleet.teams.teams import team_pools, team_resources

_TAKEN = ("default", "kube-system", "kube-public", "kube-node-lease")


def check_teams(fleet: Fleet) -> Iterator[Finding]:
    """Quota keys that limit nothing, and namespaces that belong to somebody else."""
    for i, team in enumerate(fleet.stack.teams):
        resources = team_resources(team_pools(team, fleet))
        for key in team.quota:
            where = f'teams[{i}].quota["{key}"]' if "." in key else f"teams[{i}].quota.{key}"
            if key == "gpu" and len(resources) > 1:
                yield finding("GF430", where, value=key, allowed=resources)
            elif key != "gpu" and key not in resources:
                yield finding("GF431", where, value=key, allowed=("gpu", *resources))
        if len(resources) == 1 and "gpu" in team.quota and resources[0] in team.quota:
            why = f"`gpu` means {resources[0]} here; one of the two counts would be lost."
            yield finding("GF108", f'teams[{i}].quota["{resources[0]}"]', value=resources[0], why=why)
        where = f"teams[{i}].namespace"
        if _kubernetes(team.namespace):
            yield finding("GF432", where, value=team.namespace, whose="Kubernetes")
        elif team.namespace == fleet.stack.stack.namespace:
            yield finding("GF432", where, value=team.namespace, whose="this stack's GPU software")
        for j, name in enumerate(team.pools):
            if name in fleet.by_name and not fleet.by_name[name].served:
                yield finding("GF433", f"teams[{i}].pools[{j}]", value=name)


def check_namespace(fleet: Fleet) -> Iterator[Finding]:
    """The software's own namespace must not be one of Kubernetes': it would go with the stack."""
    name = fleet.stack.stack.namespace
    if _kubernetes(name):
        yield finding("GF432", "stack.namespace", value=name, whose="Kubernetes")


def _kubernetes(namespace: str) -> bool:
    return namespace in _TAKEN or namespace.startswith("kube-")


def check_workload_tolerations(fleet: Fleet) -> Iterator[Finding]:
    """AKS tolerates a GPU taint only for the resource of that very name (Azure/AKS#1449; case AZ-19)."""
    for pool in fleet.served:
        resources = pool.method.resources
        repelling = [taint for taint in pool.taints if taint.key == "nvidia.com/gpu"]
        if resources == ("nvidia.com/gpu",) or not repelling:
            continue
        value, names = ", ".join(map(str, repelling)), " or ".join(resources)
        add = [t.as_dict() for t in tolerations(repelling)]
        yield finding("GF440", f"{pool.path}.taints", value=value, resource=names, add=add)
