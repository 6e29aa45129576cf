"""Rules about teams: namespaces, quotas, pools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet
from gpufleet.places.aks.access import is_object_id
from gpufleet.places.aks.model import aks_stack
from gpufleet.stackfile.rules import GF108
from gpufleet.teams.teams import counted, team_pools, team_resources

GF430 = rule(
    "GF430", Severity.ERROR,
    title="`gpu` is ambiguous in this quota.",
    reason="The team's pools offer several resource names, and a quota limits each by itself.",
    remedy="Name the resources.",
    source="K8S-DOC (resource-quotas)",
    needs=("value", "offers"),
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, renameByDefault: true}}
        gpufleet:pools: [{name: t4, sharing: half}, {name: b, vmSize: Standard_NC4as_T4_v3}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4, b], quota: {gpu: 1}}]
    """,
    right="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, renameByDefault: true}}
        gpufleet:pools: [{name: t4, sharing: half}, {name: b, vmSize: Standard_NC4as_T4_v3}]
        gpufleet:teams:
          - {name: x, namespace: x, pools: [t4, b], quota: {nvidia.com/gpu: 1, nvidia.com/gpu.shared: 2}}
    """,
)

GF431 = rule(
    "GF431", Severity.ERROR,
    title="The quota on {value} would limit nothing.",
    reason="None of the team's pools offers a resource of that name.",
    remedy="Use a resource that they offer.",
    source="K8S-DOC (resource-quotas)",
    needs=("value", "offers"),
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2, renameByDefault: true}}
        gpufleet:pools: [{name: t4, sharing: half}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], quota: {nvidia.com/gpu: 1}}]
    """,
    fix=("nvidia.com/gpu:", "nvidia.com/gpu.shared:"),
)

GF432 = rule(
    "GF432", Severity.ERROR,
    title="The namespace {value} belongs to {whose}.",
    reason="What this stack puts there (quota, role binding, privileged pods) would mix with what is there. When "
    "the stack goes, it would take that along.",
    remedy="Choose a namespace of its own.",
    source="K8S-DOC (namespaces)",
    wrong="gpufleet:teams: [{name: x, namespace: kube-system, pools: [t4]}]",
    right="gpufleet:teams: [{name: x, namespace: kubesystem, pools: [t4]}]",
)

GF433 = rule(
    "GF433", Severity.ERROR,
    title="The pool {value} offers no GPUs.",
    reason="Nothing of this stack's GPU software runs there.",
    remedy="Remove it from the team's pools, or change the pool's driver owner.",
    source="AKS-DOC (aks-managed-gpu-nodes)",
    wrong="""
        gpufleet:pools: [{name: t4}, {name: b, vmSize: Standard_NC4as_T4_v3, driver: none}]
        gpufleet:teams: [{name: x, namespace: x, pools: [t4, b]}]
    """,
    fix=("driver: none", "driver: aks"),
)

GF478 = rule(
    "GF478", Severity.WARNING,
    title="The group {value} gets in nowhere: the cluster has no Entra.",
    reason="AKS knows groups of Entra alone. A certificate of AKS belongs to no group but the administrators'.",
    remedy="Add `entra` to the cluster, and name the group by its object id.",
    source="Azure/AKS#515; AKS-DOC (azure-ad-rbac)",
    wrong="gpufleet:teams: [{name: x, namespace: x, pools: [t4], group: vision-engineers}]",
    right="gpufleet:teams: [{name: x, namespace: x, pools: [t4]}]",
)

GF479 = rule(
    "GF479", Severity.WARNING,
    title="The group {value} is no object id of Entra.",
    reason="AKS compares the object ids of a person's groups with the role binding; a name never matches.",
    remedy="Write the id that `az ad group show --group NAME --query id` prints.",
    source="Azure/AKS#515; AKS-DOC (azure-ad-rbac)",
    wrong="""
        gpufleet:cluster: {entra: {}}
        gpufleet:teams: [{name: x, namespace: x, pools: [t4], group: vision-engineers}]
    """,
    fix=("group: vision-engineers", "group: 6d0c1e2f-0a3b-4c5d-8e9f-112233445566"),
)


_TAKEN = ("default", "kube-system", "kube-public", "kube-node-lease")


@check("stack", GF108, GF430, GF431, GF432, GF433)
def teams(fleet: Fleet) -> Iterator[Finding]:
    """Quota keys that limit nothing, and namespaces that belong to somebody else."""
    for i, team in enumerate(fleet.stack.teams):
        own = team_pools(team, fleet)
        resources = team_resources(own)
        known = (*resources, *counted(own))
        for key in team.quota:
            where = f'teams[{i}].quota["{key}"]' if "." in key else f"teams[{i}].quota.{key}"
            if key == "gpu" and len(resources) > 1:
                yield GF430.at(where, value=key, allowed=resources)
            elif key != "gpu" and key not in known:
                yield _no_resource(GF431.at(where, value=key, allowed=("gpu", *known)), key, known)
        if len(resources) == 1 and "gpu" in team.quota and resources[0] in team.quota:
            because = f"`gpu` means {resources[0]} here; one of the two counts would be lost."
            yield GF108.at(f'teams[{i}].quota["{resources[0]}"]', value=resources[0], because=because)
        where = f"teams[{i}].namespace"
        if _kubernetes(team.namespace):
            yield GF432.at(where, value=team.namespace, whose="Kubernetes")
        elif team.namespace == fleet.stack.stack.namespace:
            yield GF432.at(where, value=team.namespace, whose="this stack's GPU software")
        for j, name in enumerate(team.pools):
            pool = fleet.by_name.get(name)
            if pool is not None and not pool.served and pool.owner in pool.place.owners:  # else GF201 says it
                yield GF433.at(f"teams[{i}].pools[{j}]", value=name)


@check("stack", GF432)
def namespace(fleet: Fleet) -> Iterator[Finding]:
    """The software's own namespace must not be one of Kubernetes': it would go with the stack."""
    name = fleet.stack.stack.namespace
    if _kubernetes(name):
        yield GF432.at("stack.namespace", value=name, whose="Kubernetes")


#: Resources that Kubernetes counts itself.
_COUNTED = re.compile(r"((requests|limits)\.)?(cpu|memory|ephemeral-storage|storage)|pods|services|secrets|count/.+")


def _no_resource(found: Finding, key: str, resources: Sequence[str]) -> Finding:
    """The finding with what is to be done about a key that Kubernetes knows, or that was written as a quota's own."""
    if _COUNTED.fullmatch(key):
        remedy = f"Limit {key} by a ResourceQuota of your own; Kubernetes holds all quotas of a namespace together."
        return replace(found, reason="A team's quota in the stack file counts GPUs alone.", remedy=remedy)
    name = key.partition(".")[2]
    if key.startswith(("requests.", "limits.")) and name in (*resources, "gpu"):
        reason = "The key is the resource alone; the stack makes the quota of it."
        return replace(found, reason=reason, remedy=f"Write {name}.")
    return found


def _kubernetes(namespace: str) -> bool:
    return namespace in _TAKEN or namespace.startswith("kube-")


@check("aks", GF478, GF479)
def groups(fleet: Fleet) -> Iterator[Finding]:
    """Groups of teams that no sign-in to AKS can carry. Whether a cluster that exists has Entra is not known."""
    cluster = aks_stack(fleet).cluster
    for i, team in enumerate(fleet.stack.teams):
        if team.group is None:
            continue
        if cluster.existing is None and cluster.entra is None:
            yield GF478.at(f"teams[{i}].group", value=team.group)
        elif not is_object_id(team.group):
            yield GF479.at(f"teams[{i}].group", value=team.group)
