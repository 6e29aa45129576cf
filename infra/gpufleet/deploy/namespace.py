"""Namespaces, made by the stack or there already, and what has to be in them first."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_kubernetes as k8s

from gpufleet.parts.artifact import Artifact
from gpufleet.parts.names import MANAGED_BY
from gpufleet.places.options import InCluster


def privileged_namespace(name: str, parent: pulumi.Resource, cluster: InCluster) -> pulumi.Resource:
    """A namespace whose pods may be privileged, as those of GPU software must be."""
    return namespace(f"namespace-{name}", name, {"pod-security.kubernetes.io/enforce": "privileged"}, parent, cluster)


def namespace(
    resource: str, name: str, labels: Mapping[str, str], parent: pulumi.Resource, cluster: InCluster
) -> pulumi.Resource:
    """A namespace with these labels. One that the stack file calls existing gets the labels and is never deleted."""
    made: pulumi.Resource
    if name in cluster.existing_namespaces:
        made = k8s.core.v1.NamespacePatch(
            f"labels-of-{resource}",  # another name than a namespace of our own has: neither can follow the other
            metadata={"name": name, "labels": {**labels}, "annotations": {"pulumi.com/patchForce": "true"}},
            opts=cluster.options(parent),
        )
    else:
        made = k8s.core.v1.Namespace(
            resource,
            metadata={"name": name, "labels": {**MANAGED_BY, **labels}},
            opts=cluster.options(parent, protect=True),
        )
    return made


def pull_secret(
    plan: Artifact, space: pulumi.Resource, parent: pulumi.Resource, cluster: InCluster
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
            opts=cluster.options(parent, depends_on=[space]),
        )
    ]
