"""Namespaces of the stack's own software."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from gpufleet.parts.names import MANAGED_BY
from gpufleet.places.options import InCluster


def privileged_namespace(name: str, parent: pulumi.Resource, cluster: InCluster) -> k8s.core.v1.Namespace:
    """A namespace whose pods may be privileged, as those of GPU software must be."""
    return k8s.core.v1.Namespace(
        f"namespace-{name}",
        metadata={"name": name, "labels": {**MANAGED_BY, "pod-security.kubernetes.io/enforce": "privileged"}},
        opts=cluster.options(parent, protect=True),
    )
