"""A deleted cluster takes its objects with it: the API server that stands for it is emptied of what users made."""

from __future__ import annotations

import time

from twin.advertiser.kube import Kube

KEPT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
BUILT_IN = "kubernetes.io/bootstrapping"
WAIT_SECONDS = 30
#: cluster-scoped kinds that programs make, dependents first
CLUSTER_SCOPED = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/node.k8s.io/v1/runtimeclasses",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
)


def wipe(kube: Kube) -> None:
    """Remove namespaces other than Kubernetes' own, pods of `default`, and cluster-scoped objects; wait until gone.

    Raises KubeError.
    """
    for pod in kube.items("/api/v1/namespaces/default/pods"):
        kube.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}", 0)
    for path in CLUSTER_SCOPED:
        for item in kube.items(path):
            meta = item["metadata"]
            if BUILT_IN not in meta.get("labels", {}) and not meta["name"].startswith(("system:", "kubeadm:")):
                kube.delete(f"{path}/{meta['name']}")
    for name in _others(kube):
        kube.delete(f"/api/v1/namespaces/{name}")
    end = time.monotonic() + WAIT_SECONDS
    while _others(kube) and time.monotonic() < end:
        time.sleep(0.2)


def _others(kube: Kube) -> list[str]:
    names = [n["metadata"]["name"] for n in kube.items("/api/v1/namespaces")]
    return [n for n in names if n not in KEPT_NAMESPACES]
