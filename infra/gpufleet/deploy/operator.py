"""The operator route in the cluster: one Helm release and the sharing ConfigMap that it reads."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from gpufleet.deploy.namespace import privileged_namespace
from gpufleet.deploy.options import InCluster
from gpufleet.deploy.release import helm_release
from gpufleet.plan.names import MANAGED_BY, ROUTE_LABEL
from gpufleet.routes.operator import OperatorPlan

#: A folder or archive that stands in for the chart of the stack file, for runners that cannot reach it.
CHART_ENV = "GPUFLEET_OPERATOR_CHART"


class GpuOperator(pulumi.ComponentResource):
    """NVIDIA's GPU Operator as a real Helm release: its hooks run (they upgrade the CRDs)."""

    def __init__(
        self,
        name: str,
        plan: OperatorPlan,
        cluster: InCluster,
        depends_on: list[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gpufleet:operator:GpuOperator", name, {}, opts)
        namespace = privileged_namespace(plan.namespace, self, cluster)
        config = k8s.core.v1.ConfigMap(
            plan.config_map.name,
            metadata={
                "name": plan.config_map.name,
                "namespace": plan.namespace,
                "labels": {**MANAGED_BY, ROUTE_LABEL: "operator"},
            },
            data=plan.config_map.data,
            immutable=True,
            opts=cluster.options(self, depends_on=[namespace]),
        )
        before = [*depends_on, namespace, config]
        if plan.mig_config:
            before.append(
                k8s.core.v1.ConfigMap(
                    plan.mig_config.name,
                    metadata={"name": plan.mig_config.name, "namespace": plan.namespace, "labels": MANAGED_BY},
                    data=plan.mig_config.data,
                    immutable=True,
                    opts=cluster.options(self, depends_on=[namespace]),
                )
            )
        self.release = helm_release(plan, CHART_ENV, cluster, self, before)
        self.register_outputs({"release": plan.release, "sharing": plan.config_map.name})
