"""What a running cluster forbids: a method that changes under running pods, a second route, objects of others.

A read of the cluster before anything is registered: on existing clusters nodes stay, so the change that makes a new
generation of an AKS pool would here happen in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import finding
from gpufleet.parts.chart_values import get_value
from gpufleet.parts.names import METHOD_LABEL, ROUTE_LABEL
from gpufleet.parts.seen import Seen, ours
from gpufleet.places.credentials import LoginError, Say
from gpufleet.places.existing.held import check_held, login_finding
from gpufleet.places.existing.plan import ExistingClusterPlan
from gpufleet.places.look import look, unreachable

if TYPE_CHECKING:
    from gpufleet.plan.model import Plan, PoolPlan

#: AKS puts this label on each of its nodes (AKS documentation: use-labels).
AKS_LABEL = "kubernetes.azure.com/cluster"
AKS = "aks"

def methods_that_change(plan: Plan, nodes: Mapping[str, Mapping[str, str]]) -> dict[str, tuple[PoolPlan, str, str]]:
    """Node -> (pool, method now, method planned), for nodes whose labels say that they were set up otherwise.

    `nodes` maps node names to their labels.
    """
    changes = {}
    for pool in plan.pools:
        planned = pool.labels.get(METHOD_LABEL)
        for node in pool.nodes:
            now = nodes.get(node, {}).get(METHOD_LABEL)
            if planned is not None and now is not None and now != planned:
                changes[node] = (pool, now, planned)
    return changes


def refusals(plan: Plan, nodes: Mapping[str, Mapping[str, str]], pods: dict[str, list[str]]) -> list[Finding]:
    """One error per node in use. `pods` maps node names to the pods there that hold GPUs."""
    where = {pool.name: i for i, pool in enumerate(plan.pools)}
    return [
        finding(
            "GF450",
            f"pools[{where[pool.name]}].sharing",
            value=pool.profile,
            node=node,
            now=now,
            planned=planned,
            pods=", ".join(pods[node][:3]) + (f" and {len(pods[node]) - 3} more" if len(pods[node]) > 3 else ""),
        )
        for node, (pool, now, planned) in sorted(methods_that_change(plan, nodes).items())
        if pods.get(node)
    ]


def strangers(plan: Plan, seen: Seen) -> list[Finding]:
    """Namespaces that the stack would take over, or that it expects and that are not as it expects them."""
    existing = existing_namespaces(plan)
    found = []
    for name, where in _wanted_namespaces(plan).items():
        there = seen.namespaces.get(name)
        if name not in existing:
            if there is not None and not ours(there):
                found.append(finding("GF451", where, value=name))
        elif there is None:
            found.append(finding("GF462", "cluster.existingNamespaces", value=name))
        elif ours(there):
            found.append(finding("GF463", "cluster.existingNamespaces", value=name))
    teams = {team.namespace: i for i, team in enumerate(plan.teams) if team.namespace in existing}
    for kind, namespace, name in seen.inside:
        i = teams.get(namespace)
        if i is not None and (plan.teams[i].quota if kind == "ResourceQuota" else plan.teams[i].group):
            found.append(finding("GF466", f"teams[{i}].namespace", value=namespace, kind=kind, name=name))
    return found


def existing_namespaces(plan: Plan) -> tuple[str, ...]:
    """Namespaces that the stack uses and does not own."""
    return plan.cluster.existing_namespaces if isinstance(plan.cluster, ExistingClusterPlan) else ()


def _wanted_namespaces(plan: Plan) -> dict[str, str]:
    """Namespace -> where the stack file asks for it."""
    wanted = {artifact.namespace: "stack" for artifact in plan.software}
    if plan.software:
        wanted[plan.software[0].namespace] = "stack.namespace"
    return wanted | {team.namespace: f"teams[{i}].namespace" for i, team in enumerate(plan.teams)}


def runtime_classes(plan: Plan, seen: Seen) -> list[Finding]:
    """Whether the RuntimeClass of NVIDIA's runtime is as the route needs it."""
    if seen.runtime_classes is None:
        return []
    stated = isinstance(plan.cluster, ExistingClusterPlan) and plan.cluster.runtime_class_stated
    if plan.operator is not None:
        name, expected = str(get_value(plan.operator.values, "operator.runtimeClass")), False
    elif plan.plugin is not None and (plan.plugin.runtime_class or plan.plugin.existing_runtime_class):
        expected = plan.plugin.existing_runtime_class is not None
        name = str(plan.plugin.existing_runtime_class or plan.plugin.runtime_class)
    else:
        return []
    there = seen.runtime_classes.get(name)
    if there is None:
        return [finding("GF461", "cluster.runtimeClass", value=name)] if expected else []
    if there.handler != name and not (stated and expected):
        return [finding("GF460", "cluster.runtimeClass", value=name, handler=there.handler)]
    return []


def other_software(plan: Plan, seen: Seen) -> list[Finding]:
    """What the operator's release brings and the cluster has from somebody else."""
    operator = plan.operator
    if operator is None:
        return []
    own = f"{operator.namespace}/{operator.release}"
    found = [
        finding("GF464", "stack.kind", value=name, release=f"release {release}" if release else "no Helm release")
        for name, release in seen.operators
        if release != own
    ]
    if get_value(operator.values, "nfd.enabled"):
        found += [finding("GF465", "stack", value=name) for name, release in seen.nfd if release != own][:1]
    return found


def pull_secrets(plan: Plan, there: Callable[[str], bool | None]) -> list[Finding]:
    """Secrets for pulling images that nothing makes and that are not there. `there` answers for a path of the API."""
    return [
        finding("GF467", f"stack.images.pullSecrets[{i}]", value=name, namespace=artifact.namespace)
        for artifact in plan.software
        for i, name in enumerate(artifact.pull_secrets)
        if name != artifact.pull_secret and there(f"/api/v1/namespaces/{artifact.namespace}/secrets/{name}") is False
    ]


def other_route(plan: Plan, config_maps: Iterable[Mapping[str, str]]) -> list[Finding]:
    """Whether the other route is deployed. `config_maps` are the labels of our ConfigMaps."""
    routes = {labels[ROUTE_LABEL] for labels in config_maps if ROUTE_LABEL in labels}
    return [finding("GF452", "stack.kind", value=plan.route, now=r) for r in sorted(routes - {plan.route})]


def another_distribution(plan: Plan, nodes: Mapping[str, Mapping[str, str]]) -> list[Finding]:
    """Whether the cluster is one of AKS and the stack file says otherwise. `nodes` maps node names to their labels."""
    cluster = plan.cluster
    theirs = sorted(name for name, labels in nodes.items() if AKS_LABEL in labels)
    if not theirs or not isinstance(cluster, ExistingClusterPlan) or cluster.distribution == AKS:
        return []
    return [finding("GF481", "cluster.distribution", value=cluster.distribution, node=theirs[0])]


def check_in_use(
    plan: Plan, kubeconfig: str, context: str | None, say: Say = print
) -> tuple[Seen | None, list[Finding]]:
    """Looks at an existing cluster before anything is registered; one that does not answer is left to the engine.

    `say` is told what is waited for.
    """
    try:
        found = look(kubeconfig, context, say)
    except LoginError as error:
        return None, [login_finding(error)]
    if found is None:
        return None, []
    cluster, seen = found
    try:
        pods = {node: cluster.pods_with_gpus(node) for node in methods_that_change(plan, seen.nodes)}
        held = check_held(plan, cluster)
        logins = pull_secrets(plan, cluster.api.exists)
    except unreachable():
        return None, []
    return seen, [
        *another_distribution(plan, seen.nodes),
        *refusals(plan, seen.nodes, pods),
        *other_route(plan, [one.labels for one in seen.config_maps]),
        *strangers(plan, seen),
        *runtime_classes(plan, seen),
        *other_software(plan, seen),
        *logins,
        *held,
    ]
