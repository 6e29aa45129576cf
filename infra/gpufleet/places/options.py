"""Resource options in one place. Paths are camelCase: the engine matches no other spelling (case AZ-13)."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

#: The autoscaler changes the count behind the program.
IGNORE_POOL_COUNT = ("count",)
#: Only the count of the one inline pool, never the list (case AZ-11).
IGNORE_SYSTEM_POOL_COUNT = ("agentPoolProfiles[0].count",)
#: Scarce sizes take long; the provider's default of 30 minutes breaks off while Azure still works.
POOL_TIMEOUTS = pulumi.CustomTimeouts(create="90m", update="90m", delete="60m")
CLUSTER_TIMEOUTS = pulumi.CustomTimeouts(create="60m", update="90m", delete="60m")


@dataclass(frozen=True)
class InCluster:
    """What every Kubernetes object of a stack has in common.

    `cluster` is set where the stack makes the cluster itself: in-cluster objects then go with it, so that a destroy
    after the cluster is gone does not hang (case AZ-35). `existing_namespaces` belong to somebody else.
    """

    provider: pulumi.ProviderResource
    cluster: pulumi.Resource | None
    protect: bool
    existing_namespaces: tuple[str, ...] = ()

    def options(
        self,
        parent: pulumi.Resource,
        *,
        depends_on: list[pulumi.Resource] | None = None,
        protect: bool = False,
    ) -> pulumi.ResourceOptions:
        """Explicit provider always; `protect` takes effect only where the stack protects its cluster."""
        return pulumi.ResourceOptions(
            parent=parent,
            provider=self.provider,
            deleted_with=self.cluster,
            depends_on=depends_on,
            protect=True if protect and self.protect else None,
        )
