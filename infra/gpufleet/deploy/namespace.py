"""Namespaces of the stack's own software, and what has to be in them first."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from gpufleet.parts.artifact import Artifact
from gpufleet.parts.names import MANAGED_BY
from gpufleet.places.options import InCluster


def privileged_namespace(name: str, parent: pulumi.Resource, cluster: InCluster) -> k8s.core.v1.Namespace:
    """A namespace whose pods may be privileged, as those of GPU software must be."""
    return k8s.core.v1.Namespace(
        f"namespace-{name}",
        metadata={"name": name, "labels": {**MANAGED_BY, "pod-security.kubernetes.io/enforce": "privileged"}},
        opts=cluster.options(parent, protect=True),
    )


def pull_secret(
    plan: Artifact, namespace: k8s.core.v1.Namespace, parent: pulumi.Resource, cluster: InCluster
) -> list[pulumi.Resource]:
    """The Secret with the registry's login, from the stack's secret `gpufleet:pullSecret`; none where none is made."""
    if plan.pull_secret is None:
        return []
    return [
        k8s.core.v1.Secret(
            f"pull-secret-{plan.namespace}",
            metadata={"name": plan.pull_secret, "namespace": plan.namespace, "labels": MANAGED_BY},
            type="kubernetes.io/dockerconfigjson",
            string_data={".dockerconfigjson": pulumi.Config("gpufleet").require_secret("pullSecret")},
            opts=cluster.options(parent, depends_on=[namespace]),
        )
    ]
