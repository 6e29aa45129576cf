"""The operator route in the cluster: one Helm release and the sharing ConfigMap that it reads."""

from __future__ import annotations

import os

import pulumi
import pulumi_kubernetes as k8s

from infra.deploy.namespace import privileged_namespace
from infra.deploy.options import InCluster
from infra.plan.names import MANAGED_BY
from infra.plan.operator_values import OperatorPlan

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
            metadata={"name": plan.config_map.name, "namespace": plan.namespace, "labels": MANAGED_BY},
            data=plan.config_map.data,
            immutable=True,
            opts=cluster.options(self, depends_on=[namespace]),
        )
        local = os.environ.get(CHART_ENV)
        chart, repository = (local, None) if local else (plan.chart, plan.repository)
        self.release = k8s.helm.v3.Release(
            plan.release,
            name=plan.release,
            namespace=plan.namespace,
            chart=chart,
            version=plan.version if repository else None,
            repository_opts=k8s.helm.v3.RepositoryOptsArgs(repo=repository) if repository else None,
            values=plan.values,
            atomic=True,
            cleanup_on_fail=True,
            timeout=plan.timeout_seconds,
            opts=cluster.options(self, depends_on=[*depends_on, namespace, config]),
        )
        self.register_outputs({"release": plan.release, "sharing": plan.config_map.name})
