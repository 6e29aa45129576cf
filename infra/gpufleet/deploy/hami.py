"""HAMi in the cluster: one Helm release."""

from __future__ import annotations

import pulumi

from gpufleet.deploy.namespace import privileged_namespace
from gpufleet.deploy.options import InCluster
from gpufleet.deploy.release import helm_release
from gpufleet.methods.hami import HamiPlan

CHART_ENV = "GPUFLEET_HAMI_CHART"


class HamiScheduler(pulumi.ComponentResource):
    """HAMi's scheduler, webhook and device plugin."""

    def __init__(
        self,
        name: str,
        plan: HamiPlan,
        cluster: InCluster,
        depends_on: list[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gpufleet:hami:Scheduler", name, {}, opts)
        namespace = privileged_namespace(plan.namespace, self, cluster)
        self.release = helm_release(plan, CHART_ENV, cluster, self, [*depends_on, namespace])
        self.register_outputs({"release": plan.release})
