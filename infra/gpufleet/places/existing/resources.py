"""A cluster that exists: its kubeconfig, and the marks on its nodes as a Pulumi component."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_kubernetes as k8s
import yaml

from gpufleet.findings.finding import Finding, errors
from gpufleet.findings.render import summary
from gpufleet.parts.names import LAST_LABELS
from gpufleet.parts.seen import Seen
from gpufleet.parts.taints import Taint
from gpufleet.places.base import Made
from gpufleet.places.existing import in_use
from gpufleet.places.existing.plan import ExistingClusterPlan, NodeMarks
from gpufleet.places.last_labels import labels_may_move
from gpufleet.places.options import InCluster
from gpufleet.stackfile.cluster import KubeconfigRef
from gpufleet.stackfile.kubeconfig import KUBECONFIG_ENV, kubeconfig_file

if TYPE_CHECKING:
    from gpufleet.plan.model import Plan


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
    """Labels and taints of the nodes that pools list by host name; `marks` holds each node's.

    Patches own their fields only, and give them back when they go. Kubernetes keeps `spec.taints` as one list with
    one owner, so a pool without taints leaves that field alone.
    """

    def __init__(
        self,
        name: str,
        marks: Mapping[str, Marks],
        cluster: InCluster,
        depends_on: list[pulumi.Resource] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gpufleet:existing:Nodes", name, {}, opts)
        self.patches = {mark.resource: self._patch(node, mark, cluster, depends_on) for node, mark in marks.items()}
        self.register_outputs({"nodes": sorted(marks)})

    def _patch(
        self, node: str, mark: Marks, cluster: InCluster, depends_on: list[pulumi.Resource] | None
    ) -> pulumi.Resource:
        taints = [k8s.core.v1.TaintPatchArgs(key=t.key, value=t.value or None, effect=t.effect) for t in mark.taints]
        patch: pulumi.Resource = k8s.core.v1.NodePatch(
            mark.resource,
            metadata=k8s.meta.v1.ObjectMetaPatchArgs(
                name=node, labels=mark.labels, annotations={"pulumi.com/patchForce": "true"}
            ),
            spec=k8s.core.v1.NodeSpecPatchArgs(taints=taints) if taints else None,
            opts=cluster.options(self, depends_on=depends_on),
        )
        return patch


@dataclass(frozen=True)
class Marks:
    """What one patch puts on a node; `resource` is its name in Pulumi's state."""

    resource: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]


def marks_of(plan: Plan) -> tuple[dict[str, Marks], dict[str, Marks]]:
    """Node -> what it gets before the software, and what after it.

    The second patch has the name that the only one has on the plugin route: it takes over what an earlier gpufleet set
    with one patch, so that no label goes away in between.
    """
    first, last = {}, {}
    for pool in plan.pools:
        marks = pool.resource
        if not isinstance(marks, NodeMarks):
            continue
        after = marks.at_last(LAST_LABELS) if plan.labels_last else {}
        for node in marks.nodes:
            if plan.labels_last:
                first[node] = Marks(f"node-{node}-first", marks.at_first(LAST_LABELS), marks.taints)
                if after:
                    last[node] = Marks(f"node-{node}", after, ())
            else:
                first[node] = Marks(f"node-{node}", marks.labels, marks.taints)
    return first, last


def deploy(plan: Plan, root: Path, tell: Callable[[tuple[Finding, ...]], None]) -> Made:
    """Looks at the cluster, then registers the marks on its nodes.

    Raises:
        pulumi.RunError: the kubeconfig cannot be used, or the cluster forbids the change; nothing was registered.
    """
    spec = plan.cluster
    if not isinstance(spec, ExistingClusterPlan):
        raise TypeError("not a cluster that exists")
    seen: Seen | None = None

    def inspect(text: str) -> None:
        nonlocal seen
        seen, found = in_use.check_in_use(plan, text, spec.kubeconfig.context, pulumi.log.info)
        tell(tuple(found))
        if wrong := errors(found):
            raise pulumi.RunError(f"{plan.stack}: {summary(wrong)}. Nothing was changed.")

    text = kubeconfig(spec.kubeconfig, root, inspect)
    provider = k8s.Provider(
        "cluster",
        kubeconfig=text,
        context=spec.kubeconfig.context,
        cluster_identifier=spec.identifier,
        enable_server_side_apply=True,
        enable_config_map_mutable=True,
    )
    inside = InCluster(provider, None, spec.protect, spec.existing_namespaces)
    first, last = marks_of(plan)

    def label(ready: list[pulumi.Resource], read: pulumi.Input[Any]) -> list[pulumi.Resource]:
        wanted = {node: mark.labels for node, mark in last.items()}
        waits = labels_may_move(plan, seen, wanted, text, spec.kubeconfig.context, read)
        return [Nodes("node-labels", last, inside, [*ready, *waits])] if last else []

    return Made(inside, [Nodes("nodes", first, inside)] if first else [], {}, seen, label)
