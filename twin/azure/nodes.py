"""Simulated nodes of a pool, in the API server that stands for the cluster.

Labels: exactly those sent, and those which AKS adds (AKS docs, use-labels and use-system-pools; the
accelerator label comes from the VM size, not from the driver). Taints: exactly those of the pool. A node offers
cpu, memory and pods; GPUs appear only when a device plugin runs there (see twin/advertiser).

Annotations: `twin.gpufleet.dev/gpus`, `twin.gpufleet.dev/gpu-model` from the size; `twin.gpufleet.dev/driver` is the
version of the driver that AKS installed, or "none"; `twin.gpufleet.dev/gpu-instance-profile` as sent.
"""

from __future__ import annotations

import hashlib
from typing import Any

from twin.advertiser.kube import MERGE, Kube, KubeError

from . import pools

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def node_name(cluster_id: str, pool: str, index: int) -> str:
    """aks-<pool>-<8 digits of the cluster>-vmss<index in base 36, six places>; stable over updates."""
    digits = int(hashlib.sha256(cluster_id.encode()).hexdigest(), 16) % 10**8
    text = ""
    for _ in range(6):
        index, place = divmod(index, 36)
        text = DIGITS[place] + text
    return f"aks-{pool}-{digits:08d}-vmss{text}"


def service_labels(pool: dict[str, Any], cluster: dict[str, Any]) -> dict[str, str]:
    row = pools.size(pool["vmSize"]) or {}
    sku = {"Ubuntu": "Ubuntu", "AzureLinux": "AzureLinux"}.get(pool["osSKU"], pool["osSKU"])
    labels = {
        "agentpool": pool["name"], "kubernetes.azure.com/agentpool": pool["name"],
        "kubernetes.azure.com/cluster": cluster.get("nodeResourceGroup", "")[:63],
        "kubernetes.azure.com/mode": pool["mode"].lower(), "kubernetes.azure.com/role": "agent",
        "kubernetes.azure.com/os-sku": sku,
        "kubernetes.azure.com/priority": "spot" if pools.is_spot(pool) else "regular",
        "kubernetes.io/os": pool["osType"].lower(), "kubernetes.io/arch": row.get("arch", "amd64"),
        "node.kubernetes.io/instance-type": pool["vmSize"],
        "topology.kubernetes.io/region": cluster.get("location", ""),
    }
    if row.get("gpus"):
        labels |= {"kubernetes.azure.com/accelerator": "nvidia", "accelerator": "nvidia"}
    return labels


def node_annotations(pool: dict[str, Any]) -> dict[str, str]:
    row = pools.size(pool["vmSize"]) or {}
    out = {"kwok.x-k8s.io/node": "fake"}
    if row.get("gpus"):
        out |= {"twin.gpufleet.dev/gpus": str(row["gpus"]), "twin.gpufleet.dev/gpu-model": row["model"]}
        installed = pools.table()["driver_versions"].get(row.get("driver"))
        by_aks = pool["gpuProfile"]["driver"] == "Install"
        out["twin.gpufleet.dev/driver"] = installed if installed and by_aks else "none"
        if pool.get("gpuInstanceProfile"):
            out["twin.gpufleet.dev/gpu-instance-profile"] = pool["gpuInstanceProfile"]
    return out


def taints(pool: dict[str, Any]) -> list[dict[str, str]]:
    out = []
    for text in pool.get("nodeTaints") or []:
        match = pools.TAINT.match(text)
        if match:
            taint = {"key": match["key"], "effect": match["effect"]}
            out.append(taint | ({"value": match["value"]} if match["value"] else {}))
    return out


def manifest(cluster_id: str, cluster: dict[str, Any], pool: dict[str, Any], index: int) -> dict[str, Any]:
    row = pools.size(pool["vmSize"]) or {}
    name = node_name(cluster_id, pool["name"], index)
    zones = pool.get("availabilityZones") or []
    zone = f"{cluster.get('location', '')}-{zones[index % len(zones)]}" if zones else str(index % 3)
    room = {"cpu": str(row["vcpu"]), "memory": f"{row['memory_gib']}Gi", "pods": str(pool["maxPods"]),
            "ephemeral-storage": f"{pool['osDiskSizeGB']}Gi"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "annotations": node_annotations(pool),
                     "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone,
                                **service_labels(pool, cluster), **(pool.get("nodeLabels") or {})}},
        "spec": {"taints": taints(pool), "providerID": f"azure://{cluster_id}/virtualMachines/{name}"},
        "status": {"capacity": room, "allocatable": room},
    }


def sync(kube: Kube, cluster_id: str, cluster: dict[str, Any], before: dict[str, Any] | None,
         after: dict[str, Any]) -> None:
    """Make the nodes of a pool as `after` says; raises KubeError."""
    old, new = (pools.node_count(before) if before else 0), pools.node_count(after)
    for index in range(new):
        wanted = manifest(cluster_id, cluster, after, index)
        try:
            kube.call("POST", "/api/v1/nodes", wanted)
        except KubeError as error:
            if error.code != 409:
                raise
            _update(kube, wanted, before or after)
    remove(kube, [node_name(cluster_id, after["name"], index) for index in range(new, old)])


def _update(kube: Kube, wanted: dict[str, Any], before: dict[str, Any]) -> None:
    """Labels and taints which the pool gave, and no others, follow the pool; what others wrote stays."""
    path = f"/api/v1/nodes/{wanted['metadata']['name']}"
    gone = set(before.get("nodeLabels") or {}) - set(wanted["metadata"]["labels"])
    labels = {**wanted["metadata"]["labels"], **dict.fromkeys(gone)}
    given = {(taint["key"], taint["effect"]) for taint in taints(before) + wanted["spec"]["taints"]}
    for attempt in range(5):
        node = kube.call("GET", path)
        others = [t for t in node["spec"].get("taints", []) if (t["key"], t["effect"]) not in given]
        body = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "labels": labels,
                             "annotations": wanted["metadata"]["annotations"]},
                "spec": {"taints": others + wanted["spec"]["taints"]}}
        try:
            kube.patch(path, body, MERGE)
            return
        except KubeError as error:  # somebody else wrote the node in between
            if error.code != 409 or attempt == 4:
                raise


def remove(kube: Kube, names: list[str]) -> None:
    """Cordon, delete the nodes, then the pods that were bound to them (no kubelet is left to end them)."""
    for name in names:
        if kube.get(f"/api/v1/nodes/{name}"):
            kube.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    for name in names:
        kube.delete(f"/api/v1/nodes/{name}")
        for pod in kube.items("/api/v1/pods", f"fieldSelector=spec.nodeName={name}"):
            kube.delete(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}", 0)
