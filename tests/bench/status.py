"""`gpufleet status` of a large cluster against a raw read of the same lists: time and memory.

`python -m tests.bench.status serve | raw URL | status URL` are its parts, each a process of its own.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

from tests.bench.measure import ROOT, Row

NODES, PODS, ROUNDS = 1000, 3000, 5
LISTS = ("/api/v1/nodes", "/api/v1/pods", "/api/v1/configmaps", "/apis/nvidia.com/v1/clusterpolicies")
STACK = {
    "pools[0]": {"name": "t4", "nodeSelector": {"rack": "r7"}, "gpu": "T4", "gpusPerNode": 1, "sharing": "s"},
    "sharing": {"s": {"strategy": "timeSlicing", "replicas": 4}},
}


def _managed(manager: str) -> list[dict[str, Any]]:
    """What API servers add to each object: who owns which field."""
    fields: dict[str, Any] = {f"f:key-{i}": {".": {}, "f:value": {}, "f:name": {}} for i in range(12)}
    return [
        {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
         "time": "2026-12-01T00:00:00Z", "fieldsV1": {"f:metadata": fields, "f:spec": fields}}
    ] * 2  # fmt: skip


def node(i: int) -> dict[str, Any]:
    """A GPU node as kubelet and feature discovery leave it."""
    labels = {f"feature.node.kubernetes.io/cpu-feature-{n}": "true" for n in range(60)}
    labels |= {"rack": "r7", "gpufleet.dev/pool": "t4", "gpufleet.dev/method": "timeSlicing"}
    resources = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "4"}
    conditions = [
        {"type": kind, "status": "True" if kind == "Ready" else "False", "reason": f"{kind}Reason",
         "message": "kubelet says how it is", "lastHeartbeatTime": "2026-12-01T00:00:00Z",
         "lastTransitionTime": "2026-12-01T00:00:00Z"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "GPUMissing", "XIDErrors", "Ready")
    ]  # fmt: skip
    images = [{"names": [f"registry.example/team/image-{n}@sha256:{n:064x}"], "sizeBytes": n} for n in range(50)]
    return {
        "metadata": {"name": f"gpu-{i}", "uid": f"{i:032x}", "labels": labels, "managedFields": _managed("kubelet")},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {"capacity": resources, "allocatable": resources, "conditions": conditions, "images": images},
    }


def pod(i: int, config_map: str) -> dict[str, Any]:
    """Every third one the plugin's of a node, the others users' pods that hold a device."""
    plugin = i % 3 == 0
    mounts = [{"name": f"volume-{n}", "mountPath": f"/mnt/{n}", "readOnly": True} for n in range(6)]
    container = {
        "name": "nvidia-device-plugin" if plugin else "main", "image": "registry.example/team/image:1",
        "env": [{"name": f"VARIABLE_{n}", "value": f"value-{n}"} for n in range(15)], "volumeMounts": mounts,
        "resources": {} if plugin else {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
    }  # fmt: skip
    volumes = [{"name": f"volume-{n}", "emptyDir": {}} for n in range(6)]
    own = [{"name": "c", "configMap": {"name": config_map, "defaultMode": 420}}] if plugin else []
    return {
        "metadata": {
            "name": f"pod-{i}", "namespace": "gpu-plugin" if plugin else f"team-{i % 20}", "uid": f"{i:032x}",
            "labels": {f"label-{n}": "value" for n in range(8)}, "managedFields": _managed("kubelet"),
        },
        "spec": {"nodeName": f"gpu-{i // 3 % NODES}", "containers": [container], "volumes": [*volumes, *own]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": "2026-12-01T00:00:00Z"}
                           for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")],
            "containerStatuses": [{"name": container["name"], "ready": True, "started": True, "restartCount": 0,
                                   "state": {"running": {"startedAt": "2026-12-01T00:00:00Z"}}}],
        },
    }  # fmt: skip


def _plan() -> Any:
    from tests.unit.config.samples import REMOVE, compile_base

    plan = compile_base("existing-plugin", {"pools[0].hosts": REMOVE, **STACK}).plan
    assert plan is not None
    return plan


def serve() -> None:
    """Serves the cluster until its input ends; the first line of its output is the address."""
    from tests.api_standin import serving

    config = _plan().plugin.daemon_sets[0].config_map
    labels = {"gpufleet.dev/route": "plugin"}
    maps = [{"metadata": {"name": config.name, "namespace": "gpu-plugin", "labels": labels}, "data": config.data}]
    pods = [pod(i, config.name) for i in range(PODS)]
    with serving(nodes=[node(i) for i in range(NODES)], pods=pods, configmaps=maps) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def raw(url: str) -> None:
    """The same pages, each parsed and let go."""
    import urllib3

    pool = urllib3.PoolManager()
    before, start = _peak(), time.perf_counter()
    for path in LISTS:
        query = {"limit": "500"}
        while True:
            page = json.loads(pool.request("GET", url + path, fields=query).data)
            if not page["metadata"].get("continue"):
                break
            query["continue"] = page["metadata"]["continue"]
    _report(time.perf_counter() - start, before)


def status(url: str) -> None:
    """What the command does between stack file and output."""
    from gpufleet.status.compare import compare
    from gpufleet.status.observe import Cluster
    from gpufleet.status.render import render

    plan = _plan()
    users = [{"name": "u", "user": {"token": "t"}}]
    contexts = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
    config = {"clusters": [{"name": "c", "cluster": {"server": url}}], "contexts": contexts, "users": users}
    cluster = Cluster({**config, "current-context": "c"}, None, print)
    before, start = _peak(), time.perf_counter()
    found = compare(plan, cluster.observe())
    lines = render(found).splitlines()
    taken = time.perf_counter() - start
    assert found.agrees, lines[-3:]
    assert len(lines) > NODES
    _report(taken, before)


def _report(seconds: float, before: int) -> None:
    print(json.dumps({"seconds": seconds, "peak": _peak(), "grown": _peak() - before}))


def _child(*words: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.status", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run() -> list[Row]:
    """Time and memory of both, in turns."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.status", "serve"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        both: dict[str, list[dict[str, float]]] = {"raw": [], "status": []}
        for _ in range(ROUNDS):
            for name, found in both.items():
                found.append(_child(name, url))
    finally:
        server.communicate()
    middle = {
        (name, key): statistics.median(one[key] for one in found)
        for name, found in both.items()
        for key in ("seconds", "grown", "peak")
    }
    what = f"`gpufleet status` of {PODS:,} pods and {NODES:,} nodes"
    rows = [
        Row(
            f"{what}: read and compare",
            f"{middle['status', 'seconds'] * 1000:.0f} ms",
            f"raw read of the same pages {middle['raw', 'seconds'] * 1000:.0f} ms",
            f"{middle['status', 'seconds'] / middle['raw', 'seconds']:.2f}",
            "3",
        )
    ]
    for key, words in (("grown", "memory for it"), ("peak", "whole process")):
        ours, theirs = middle["status", key] / 1024, middle["raw", key] / 1024
        aim = "3"
        rows.append(
            Row(f"{what}: {words}", f"{ours:.0f} MiB", f"raw read {theirs:.0f} MiB", f"{ours / theirs:.2f}", aim)
        )
    return rows


if __name__ == "__main__":
    part, *address = sys.argv[1:]
    if part == "serve":
        serve()
    else:
        (raw if part == "raw" else status)(address[0])
