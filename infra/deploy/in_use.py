"""Nodes that run GPU pods do not change their method of sharing under them.

A read of the cluster before anything is registered: on existing clusters nodes stay, so the change that makes a new
generation of an AKS pool would here happen in place.
"""

from __future__ import annotations

from typing import Any

import yaml

from infra.config.diagnostics import Diagnostic, diagnostic
from infra.plan.compile import Plan
from infra.plan.names import METHOD_LABEL
from infra.plan.pool_plan import PoolPlan

#: To connect, and to answer.
REQUEST_SECONDS = (3, 20)
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


def refusals(plan: Plan, nodes: dict[str, dict[str, str]], pods: dict[str, list[str]]) -> list[Diagnostic]:
    """One error per node in use. `pods` maps node names to the pods there that hold GPUs."""
    where = {pool.name: i for i, pool in enumerate(plan.pools)}
    return [
        diagnostic(
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


def check_in_use(plan: Plan, kubeconfig: str, context: str | None) -> list[Diagnostic]:
    """Reads nodes, and pods only where a method changes. A cluster that does not answer is left to the engine."""
    if not any(METHOD_LABEL in pool.labels for pool in plan.pools):
        return []
    from kubernetes import client, config
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        settings = client.Configuration()
        settings.retries = False
        config.load_kube_config_from_dict(yaml.safe_load(kubeconfig), context=context, client_configuration=settings)
        api = client.CoreV1Api(client.ApiClient(settings))
        seen = api.list_node(label_selector=METHOD_LABEL, _request_timeout=REQUEST_SECONDS).items
        nodes = {n.metadata.name: dict(n.metadata.labels or {}) for n in seen}
        changing = methods_that_change(plan, nodes)
        pods: dict[str, list[str]] = {}
        for node in changing:
            found = api.list_pod_for_all_namespaces(
                field_selector=f"spec.nodeName={node}", _request_timeout=REQUEST_SECONDS
            )
            pods[node] = [f"{p.metadata.namespace}/{p.metadata.name}" for p in found.items if _holds_gpu(p)]
    except (ApiException, HTTPError, OSError, config.ConfigException):
        return []
    return refusals(plan, nodes, pods)


def _holds_gpu(pod: Any) -> bool:
    limits = [c.resources.limits or {} for c in pod.spec.containers if c.resources]
    return pod.status.phase not in _ENDED and any(k.startswith("nvidia.com/") for each in limits for k in each)
