"""A cluster that exists: its kubeconfig, and the marks on its nodes as a Pulumi component."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pulumi
import pulumi_kubernetes as k8s
import yaml

from gpufleet.findings.finding import Finding, errors
from gpufleet.findings.render import summary
from gpufleet.places.base import Made
from gpufleet.places.existing import in_use
from gpufleet.places.existing.plan import ExistingClusterPlan, NodeMarks
from gpufleet.places.options import InCluster
from gpufleet.stackfile.cluster import KubeconfigRef
from gpufleet.stackfile.kubeconfig import KUBECONFIG_ENV, kubeconfig_file

if TYPE_CHECKING:
    from gpufleet.plan.model import Plan, PoolPlan


def kubeconfig(ref: KubeconfigRef, root: Path, inspect: Callable[[str], None]) -> pulumi.Output[str]:
    """The text of the kubeconfig, secret from here on; `inspect` may look at the cluster with it before.

    Raises:
        pulumi.RunError: it cannot be read, or is none; the message names path and context, never the content.
    """
    path = None if ref.secret else kubeconfig_file(ref, root, os.environ)
    if path is None:
        text, where = pulumi.runtime.get_config("gpufleet:kubeconfig") or "", "the secret gpufleet:kubeconfig"
    else:
        text, where = _read(path), str(path)
    problem = kubeconfig_problem(text, ref.context)
    if problem:
        raise pulumi.RunError(f"The kubeconfig of the cluster cannot be used: {where}: {problem}.")
    inspect(text)
    return pulumi.Output.secret(text)


def kubeconfig_problem(text: str, context: str | None) -> str | None:
    """Why a text is no usable kubeconfig, without showing any of it; None when it is one.

    The provider itself takes an unusable one for an unreachable cluster, and previews as if all were well.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError:
        return "it is not YAML"
    if not isinstance(data, dict) or not isinstance(data.get("clusters"), list) or not data["clusters"]:
        return "it names no cluster"
    contexts = [c.get("name") for c in data.get("contexts") or () if isinstance(c, dict)]
    if context is not None and context not in contexts:
        return f"it has no context {context} (there are: {', '.join(map(str, contexts)) or 'none'})"
    if context is None and data.get("current-context") not in contexts:
        return "its current-context is none of its contexts; name one in cluster.kubeconfig.context"
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise pulumi.RunError(
            f"The kubeconfig of the cluster cannot be read: {path}: {reason}. Correct cluster.kubeconfig in the"
            f" stack file, or set {KUBECONFIG_ENV}."
        ) from None


class Nodes(pulumi.ComponentResource):
    """Labels and taints of the nodes that pools list by host name.

    Patches own their fields only, and give them back when they go. Kubernetes keeps `spec.taints` as one list with
    one owner, so a pool without taints leaves that field alone.
    """

    def __init__(
        self,
        name: str,
        pools: tuple[PoolPlan, ...],
        cluster: InCluster,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gpufleet:existing:Nodes", name, {}, opts)
        self.patches: dict[str, pulumi.Resource] = {}
        for pool in pools:
            marks = pool.resource
            if isinstance(marks, NodeMarks):
                self.patches |= {node: self._patch(node, marks, cluster) for node in marks.nodes}
        self.register_outputs({"nodes": sorted(self.patches)})

    def _patch(self, node: str, marks: NodeMarks, cluster: InCluster) -> pulumi.Resource:
        taints = [k8s.core.v1.TaintPatchArgs(key=t.key, value=t.value or None, effect=t.effect) for t in marks.taints]
        patch: pulumi.Resource = k8s.core.v1.NodePatch(
            f"node-{node}",
            metadata=k8s.meta.v1.ObjectMetaPatchArgs(
                name=node, labels=marks.labels, annotations={"pulumi.com/patchForce": "true"}
            ),
            spec=k8s.core.v1.NodeSpecPatchArgs(taints=taints) if taints else None,
            opts=cluster.options(self),
        )
        return patch


def deploy(plan: Plan, root: Path, tell: Callable[[tuple[Finding, ...]], None]) -> Made:
    """Looks at the cluster, then registers the marks on its nodes.

    Raises:
        pulumi.RunError: the kubeconfig cannot be used, or the cluster forbids the change; nothing was registered.
    """
    spec = plan.cluster
    if not isinstance(spec, ExistingClusterPlan):
        raise TypeError("not a cluster that exists")

    def inspect(text: str) -> None:
        found = in_use.check_in_use(plan, text, spec.kubeconfig.context, pulumi.log.info)
        tell(tuple(found))
        if wrong := errors(found):
            raise pulumi.RunError(f"{plan.stack}: {summary(wrong)}. Nothing was changed.")

    provider = k8s.Provider(
        "cluster",
        kubeconfig=kubeconfig(spec.kubeconfig, root, inspect),
        context=spec.kubeconfig.context,
        cluster_identifier=spec.identifier,
        enable_server_side_apply=True,
    )
    inside = InCluster(provider, None, spec.protect)
    marked = any(isinstance(pool.resource, NodeMarks) for pool in plan.pools)
    return Made(inside, [Nodes("nodes", plan.pools, inside)] if marked else [], {})
