"""What a running cluster forbids: a method that changes under running pods, a second route, foreign namespaces.

A read of the cluster before anything is registered: on existing clusters nodes stay, so the change that makes a new
generation of an AKS pool would here happen in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from gpufleet.findings.finding import Finding
from gpufleet.findings.registry import finding
from gpufleet.parts.names import MANAGED_BY, METHOD_LABEL, ROUTE_LABEL
from gpufleet.places.credentials import LoginError, Say, with_credentials
from gpufleet.places.existing.held import check_held, login_finding
from gpufleet.places.existing.plan import ExistingClusterPlan

if TYPE_CHECKING:
    from gpufleet.plan.model import Plan, PoolPlan

#: To connect, and to answer.
REQUEST_SECONDS = (3, 20)
#: AKS puts this label on each of its nodes (AKS documentation: use-labels).
AKS_LABEL = "kubernetes.azure.com/cluster"
AKS = "aks"
_ENDED = ("Succeeded", "Failed")


def methods_that_change(plan: Plan, nodes: dict[str, dict[str, str]]) -> dict[str, tuple[PoolPlan, str, str]]:
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


def refusals(plan: Plan, nodes: dict[str, dict[str, str]], pods: dict[str, list[str]]) -> list[Finding]:
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


def strangers(plan: Plan, namespaces: dict[str, dict[str, str]]) -> list[Finding]:
    """Namespaces that the stack would take over. `namespaces` maps names to labels."""
    wanted = {team.namespace: f"teams[{i}].namespace" for i, team in enumerate(plan.teams)}
    if plan.software:
        wanted[plan.software[0].namespace] = "stack.namespace"
    return [
        finding("GF451", where, value=name)
        for name, where in wanted.items()
        if name in namespaces and not MANAGED_BY.items() <= namespaces[name].items()
    ]


def other_route(plan: Plan, config_maps: dict[str, dict[str, str]]) -> list[Finding]:
    """Whether the other route is deployed. `config_maps` maps the names of our ConfigMaps to their labels."""
    routes = {labels[ROUTE_LABEL] for labels in config_maps.values() if ROUTE_LABEL in labels}
    return [finding("GF452", "stack.kind", value=plan.route, now=r) for r in sorted(routes - {plan.route})]


def another_distribution(plan: Plan, aks_nodes: list[str]) -> list[Finding]:
    """Whether the cluster is one of AKS and the stack file says otherwise. `aks_nodes` are names of such nodes."""
    cluster = plan.cluster
    if not aks_nodes or not isinstance(cluster, ExistingClusterPlan) or cluster.distribution == AKS:
        return []
    return [finding("GF481", "cluster.distribution", value=cluster.distribution, node=aks_nodes[0])]


def check_in_use(plan: Plan, kubeconfig: str, context: str | None, say: Say = print) -> list[Finding]:
    """Looks at an existing cluster before anything is registered; one that does not answer is left to the engine.

    `say` is told what is waited for.
    """
    from kubernetes import client, config
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        data = with_credentials(yaml.safe_load(kubeconfig), context, say)
    except LoginError as error:
        return [login_finding(error)]
    try:
        settings = client.Configuration()
        settings.retries = False
        config.load_kube_config_from_dict(data, context=context, client_configuration=settings)
        api = client.CoreV1Api(client.ApiClient(settings))
        limit = {"_request_timeout": REQUEST_SECONDS}
        seen = api.list_node(label_selector=METHOD_LABEL, **limit).items
        nodes = {n.metadata.name: dict(n.metadata.labels or {}) for n in seen}
        aks = [n.metadata.name for n in api.list_node(label_selector=AKS_LABEL, limit=1, **limit).items]
        pods: dict[str, list[str]] = {}
        for node in methods_that_change(plan, nodes):
            there = api.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={node}", **limit).items
            pods[node] = [f"{p.metadata.namespace}/{p.metadata.name}" for p in there if _holds_gpu(p)]
        ours = ",".join(f"{k}={v}" for k, v in MANAGED_BY.items())
        maps = api.list_config_map_for_all_namespaces(label_selector=ours, **limit).items
        named = {m.metadata.name: dict(m.metadata.labels or {}) for m in maps}
        namespaces = {n.metadata.name: dict(n.metadata.labels or {}) for n in api.list_namespace(**limit).items}
    except (ApiException, HTTPError, OSError, config.ConfigException):
        return []
    forbidden = [*another_distribution(plan, aks), *refusals(plan, nodes, pods)]
    forbidden += [*other_route(plan, named), *strangers(plan, namespaces)]
    return [*forbidden, *check_held(plan, data, context, say)]


def _holds_gpu(pod: Any) -> bool:
    limits = [c.resources.limits or {} for c in pod.spec.containers if c.resources]
    return pod.status.phase not in _ENDED and any(k.startswith("nvidia.com/") for each in limits for k in each)
