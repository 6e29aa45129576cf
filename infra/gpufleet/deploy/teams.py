"""Team namespaces with their quota and role binding."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from gpufleet.deploy.namespace import namespace
from gpufleet.parts.names import MANAGED_BY
from gpufleet.places.options import InCluster
from gpufleet.teams.teams import TeamPlan

TEAM_LABEL = "gpufleet.dev/team"


class Team(pulumi.ComponentResource):
    """What one team owns in the cluster."""

    def __init__(
        self, name: str, plan: TeamPlan, cluster: InCluster, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("gpufleet:teams:Team", name, {}, opts)
        labels = {**MANAGED_BY, TEAM_LABEL: plan.name}
        self.namespace = namespace(
            f"team-{plan.name}", plan.namespace, {TEAM_LABEL: plan.name}, self, cluster
        )
        inside = cluster.options(self, depends_on=[self.namespace])
        if plan.quota:
            k8s.core.v1.ResourceQuota(
                f"team-{plan.name}-gpus",
                metadata={"name": "gpus", "namespace": plan.namespace, "labels": labels},
                spec={"hard": plan.quota},
                opts=inside,
            )
        if plan.group:
            k8s.rbac.v1.RoleBinding(
                f"team-{plan.name}-members",
                metadata={"name": "members", "namespace": plan.namespace, "labels": labels},
                role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": plan.role},
                subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": plan.group}],
                opts=inside,
            )
        self.register_outputs({"namespace": plan.namespace})
