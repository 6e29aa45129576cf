"""Helm releases, all in the same way: fixed name, pinned version, atomic, hooks run (they upgrade CRDs)."""

from __future__ import annotations

import os

import pulumi
import pulumi_kubernetes as k8s

from gpufleet.deploy.namespace import privileged_namespace, pull_secret
from gpufleet.parts.artifact import HelmRelease, KeepingConfigMap
from gpufleet.parts.names import MANAGED_BY
from gpufleet.places.options import InCluster


class HelmSoftware(pulumi.ComponentResource):
    """A release in its namespace, with the ConfigMaps that it reads.

    The release's variable (`chart_env`) names a folder or archive for runners that cannot reach the chart.
    """

    def __init__(
        self,
        plan: HelmRelease,
        cluster: InCluster,
        depends_on: list[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(plan.component_type, plan.component_name, {}, opts)
        namespace = privileged_namespace(plan.namespace, self, cluster)
        login = pull_secret(plan, namespace, self, cluster)
        config_maps = [
            k8s.core.v1.ConfigMap(
                config_map.name,
                metadata={
                    "name": config_map.name,
                    "namespace": plan.namespace,
                    "labels": {**MANAGED_BY, **labels},
                },
                data=config_map.data,
                # Kept keys go later, from the object that pods mount. The provider would delete an immutable one first.
                immutable=True if isinstance(config_map, KeepingConfigMap) and config_map.frozen else None,
                opts=cluster.options(self, depends_on=[namespace]),
            )
            for config_map, labels in plan.config_maps
        ]
        for config_map, _ in plan.config_maps:
            if isinstance(config_map, KeepingConfigMap) and config_map.kept:
                pulumi.log.info(
                    f"ConfigMap {config_map.name} keeps {', '.join(config_map.kept)}, which labels of nodes still name."
                    " An `up` after these labels have moved removes them."
                )
        local = os.environ.get(plan.chart_env)
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
            opts=cluster.options(self, depends_on=[*depends_on, namespace, *login, *config_maps]),
        )
        outputs = {"release": plan.release, **({"sharing": plan.reads} if plan.reads else {})}
        self.register_outputs(outputs)
