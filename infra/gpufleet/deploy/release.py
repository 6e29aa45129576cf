"""Helm releases, all in the same way: fixed name, pinned version, atomic, hooks run."""

from __future__ import annotations

import os
from typing import Any, Protocol

import pulumi
import pulumi_kubernetes as k8s

from gpufleet.deploy.options import InCluster


class ReleasePlan(Protocol):
    """What every release plan says; `repository` None means that `chart` is a path. Timeout in seconds."""

    @property
    def namespace(self) -> str: ...
    @property
    def release(self) -> str: ...
    @property
    def chart(self) -> str: ...
    @property
    def repository(self) -> str | None: ...
    @property
    def version(self) -> str: ...
    @property
    def timeout_seconds(self) -> int: ...
    @property
    def values(self) -> dict[str, Any]: ...


def helm_release(
    plan: ReleasePlan, chart_env: str, cluster: InCluster, parent: pulumi.Resource, before: list[pulumi.Resource]
) -> k8s.helm.v3.Release:
    """The release. The variable `chart_env` names a folder or archive for runners that cannot reach the chart."""
    local = os.environ.get(chart_env)
    chart, repository = (local, None) if local else (plan.chart, plan.repository)
    return k8s.helm.v3.Release(
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
        opts=cluster.options(parent, depends_on=before),
    )
