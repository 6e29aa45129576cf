"""A look at a cluster before anything is registered, and the wait for pods to read what is new. I/O alone."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

import yaml

from gpufleet.parts.names import MANAGED_BY
from gpufleet.parts.seen import Seen, SeenClass, SeenConfigMap, ours
from gpufleet.places.cluster_api import ApiError, ClusterApi
from gpufleet.places.credentials import LoginError, Say

_OURS = ",".join(f"{k}={v}" for k, v in MANAGED_BY.items())
_ENDED = ("Succeeded", "Failed")
#: Kind -> (list, name) of what a team gets in its namespace.
_INSIDE = {
    "ResourceQuota": ("/api/v1/resourcequotas", "gpus"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1/rolebindings", "members"),
}
_POLL_SECONDS = 2.0


class Cluster:
    """The API of a cluster, by its kubeconfig. Lists are read as plain JSON, page by page."""

    def __init__(self, kubeconfig: str, context: str | None, say: Say) -> None:
        """Runs the login program of the kubeconfig, if it has one; `say` is told what is waited for.

        Raises:
            LoginError: the login program gives no credentials.
            ApiError: the kubeconfig cannot be used.
        """
        self.api = ClusterApi(yaml.safe_load(kubeconfig), context, say)

    def each(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        """The objects of a list, one by one.

        Raises:
            ApiError: the API server does not answer, or refuses.
        """
        for page, _ in self.api.list(path, **query):
            yield from page

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """The objects of a list.

        Raises:
            ApiError: the API server does not answer, or refuses.
        """
        return list(self.each(path, **query))

    def allowed(self, path: str, **query: str) -> list[dict[str, Any]] | None:
        """The objects of a list; None where the user may not read it, or the cluster has no such kind."""
        try:
            return self.items(path, **query)
        except ApiError as error:
            if error.status in (401, 403, 404):
                return None
            raise

    def pods_with_gpus(self, node: str) -> list[str]:
        """`namespace/name` of the pods on a node that hold GPUs."""
        return [_path(pod) for pod in self.items("/api/v1/pods", fieldSelector=f"spec.nodeName={node}") if _holds(pod)]

    def seen(self) -> Seen:
        """Everything that `Seen` names. Lists that the user may not read stay empty, RuntimeClasses None."""
        maps = self.items("/api/v1/configmaps", labelSelector=_OURS)
        classes = self.allowed("/apis/node.k8s.io/v1/runtimeclasses")
        policies = self.allowed("/apis/nvidia.com/v1/clusterpolicies")
        nfd = self.allowed("/apis/apps/v1/daemonsets", labelSelector="app.kubernetes.io/name=node-feature-discovery")
        return Seen(
            nodes={_name(node): _labels(node) for node in self.items("/api/v1/nodes")},
            namespaces={_name(space): _labels(space) for space in self.items("/api/v1/namespaces")},
            config_maps=tuple(
                SeenConfigMap(
                    one["metadata"]["namespace"], _name(one), _labels(one), one.get("data") or {},
                    bool(one.get("immutable")),
                )
                for one in sorted(maps, key=lambda one: (one["metadata"]["creationTimestamp"], _name(one)))
            ),
            runtime_classes=None
            if classes is None
            else {_name(one): SeenClass(one["handler"], _labels(one)) for one in classes},
            operators=tuple((_name(one), _release(one)) for one in policies or ()),
            nfd=tuple((_path(one), _release(one)) for one in nfd or ()),
            inside=tuple(
                (kind, one["metadata"]["namespace"], _name(one))
                for kind, (path, name) in _INSIDE.items()
                for one in self.allowed(path, fieldSelector=f"metadata.name={name}") or ()
                if not ours(_labels(one))
            ),
        )

    def behind(self, namespace: str, names: Collection[str]) -> list[str]:
        """DaemonSets of a namespace that read an older ConfigMap of ours, or whose pods do not all read theirs yet.

        `names` are the ConfigMaps that are to be read now; older ones differ from them in the hash at the end.
        """
        kinds = tuple(name.rpartition("-")[0] + "-" for name in names)
        found = []
        for one in self.items(f"/apis/apps/v1/namespaces/{namespace}/daemonsets"):
            volumes = one["spec"]["template"]["spec"].get("volumes") or []
            read = {volume["configMap"]["name"] for volume in volumes if "configMap" in volume}
            read = {name for name in read if name.startswith(kinds)}
            status = one.get("status") or {}
            rolled = status.get("observedGeneration") == one["metadata"]["generation"] and (
                status.get("updatedNumberScheduled", 0) >= status.get("desiredNumberScheduled", 0)
            )
            if read - set(names) or (read and not rolled):
                found.append(_name(one))
        return sorted(found)


def look(kubeconfig: str, context: str | None, say: Say) -> tuple[Cluster, Seen] | None:
    """What is in a cluster; None where it does not answer, which is left to the engine.

    Raises:
        LoginError: the login program of the kubeconfig gives no credentials.
    """
    try:
        cluster = Cluster(kubeconfig, context, say)
        return cluster, cluster.seen()
    except unreachable():
        return None


def wait_until_read(
    kubeconfig: str, context: str | None, namespace: str, names: Collection[str], seconds: float
) -> list[str]:
    """Waits until all pods read these ConfigMaps; the DaemonSets that do not after the time, none where all do."""
    end, late = time.monotonic() + seconds, ["the API server does not answer"]
    while True:
        with suppress(ApiError, LoginError):  # it may be back at the next try
            late = Cluster(kubeconfig, context, lambda _: None).behind(namespace, names)
        if not late or time.monotonic() > end:
            return late
        time.sleep(_POLL_SECONDS)


def unreachable() -> tuple[type[Exception], ...]:
    """What a read of a cluster raises that cannot be read."""
    return (ApiError,)


def _name(one: dict[str, Any]) -> str:
    return str(one["metadata"]["name"])


def _path(one: dict[str, Any]) -> str:
    return f"{one['metadata']['namespace']}/{_name(one)}"


def _labels(one: dict[str, Any]) -> dict[str, str]:
    return one["metadata"].get("labels") or {}


def _release(one: dict[str, Any]) -> str:
    """The Helm release that an object belongs to, as namespace/name; nothing where it belongs to none."""
    notes = one["metadata"].get("annotations") or {}
    name, space = notes.get("meta.helm.sh/release-name"), notes.get("meta.helm.sh/release-namespace")
    return f"{space}/{name}" if name and space else ""


def _holds(pod: dict[str, Any]) -> bool:
    limits = [(one.get("resources") or {}).get("limits") or {} for one in pod["spec"]["containers"]]
    ended = (pod.get("status") or {}).get("phase") in _ENDED
    return not ended and any(key.startswith("nvidia.com/") for each in limits for key in each)
