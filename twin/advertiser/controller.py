"""The loop: watched objects in, patches out."""

from __future__ import annotations

import json
import logging
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import node as rules
from . import pods, verdicts
from .informer import Informer
from .kube import MERGE, Kube, KubeError

RESYNC_S = 30.0
LINGER_S = 5.0  # labels outlive their writer by this, so that a rolling update does not make them flap
log = logging.getLogger("advertiser")


class Controller:
    """Plays kubelet, device plugin, feature discovery and operator for all simulated nodes of one API server."""

    def __init__(self, kube: Kube, log_file: str | None = None) -> None:
        self.kube = kube
        self.stop = threading.Event()
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._dirty: set[str] = set()
        self._gone: dict[tuple[str, str], float] = {}  # (node, role) -> when its writer was first missed
        self._log_file = log_file
        self._nodes, self._pods, self._configmaps = (
            Informer(kube, f"/api/v1/{kind}", changed, self.stop, self._lock) for kind, changed in (
                ("nodes", self._node_changed), ("pods", self._pod_changed), ("configmaps", self._configmap_changed)))

    # --- events

    def _mark(self, *names: str) -> None:
        with self._wake:
            self._dirty.update(names)
            self._wake.notify()

    def _mark_all(self) -> None:
        with self._lock:
            self._mark(*(name for _, name in self._nodes.objects))

    def _node_changed(self, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        if new:
            self._mark(new["metadata"]["name"])

    def _pod_changed(self, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        for pod in (old, new):
            if pod and (found := pods.roles(pod)):
                if "operator" in found:
                    self._mark_all()
                elif name := pod["spec"].get("nodeName"):
                    self._mark(name)

    def _configmap_changed(self, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        space = (new or old or {})["metadata"]["namespace"]
        with self._lock:
            self._mark(*{pod["spec"]["nodeName"] for (where, _), pod in self._pods.objects.items()
                         if where == space and pod["spec"].get("nodeName") and pods.roles(pod)})

    # --- the loop

    def run(self) -> None:
        """Until `stop` is set. An API server that is away is waited for."""
        informers = (self._nodes, self._pods, self._configmaps)
        for informer in informers:
            informer.start()
        for informer in informers:
            while not informer.synced.wait(0.2) and not self.stop.is_set():
                pass
        next_resync = 0.0
        while not self.stop.is_set():
            if time.monotonic() >= next_resync:
                next_resync = time.monotonic() + RESYNC_S
                self._mark_all()
            with self._wake:
                if not self._dirty:
                    self._wake.wait(timeout=1.0)
                names, self._dirty = self._dirty, set()
                names |= {name for name, _ in self._gone}
            for name in sorted(names):
                try:
                    self.reconcile(name)
                except KubeError as error:
                    if error.code != 404:
                        log.warning("%s: %s", name, error)
                        self.stop.wait(0.2)
                        self._mark(name)
                except Exception:  # one odd object must not end the advertiser for all nodes
                    log.exception("%s", name)

    def reconcile(self, name: str) -> None:
        """Bring one node and the pods on it to what they should be. Raises KubeError."""
        with self._lock:
            node = self._nodes.objects.get(("", name))
            everywhere = list(self._pods.objects.values())
            configmaps = dict(self._configmaps.objects)
        if node is None:
            self._gone = {key: since for key, since in self._gone.items() if key[0] != name}
            return
        if rules.hardware(node) is None:
            return
        on_node = [pod for pod in everywhere if pod["spec"].get("nodeName") == name]
        operator = any(pods.is_running(pod) and "operator" in pods.roles(pod) for pod in everywhere)
        wanted = rules.wanted(node, on_node, configmaps, operator)
        self._write_pods(wanted.verdicts)
        path = f"/api/v1/nodes/{name}"
        if patch := rules.node_status(node, wanted.resources):
            self.kube.patch(f"{path}/status", patch, MERGE)
            self._record(name, wanted)
        if patch := rules.node_labels(node, wanted.labels, self._lingering(node, set(wanted.labels))):
            self.kube.patch(path, patch, MERGE)
        if patch := rules.node_annotations(node, wanted.annotations):
            self.kube.patch(path, patch, MERGE)

    def _lingering(self, node: dict[str, Any], present: set[str]) -> frozenset[str]:
        """Roles that are missed for less than LINGER_S."""
        name = node["metadata"]["name"]
        wrote = json.loads((node["metadata"].get("annotations") or {}).get(rules.WROTE, "{}"))
        for role in present | ({role for one, role in self._gone if one == name} - set(wrote)):
            self._gone.pop((name, role), None)
        keep = set()
        for role in set(wrote) - present:
            since = self._gone.setdefault((name, role), time.monotonic())
            if time.monotonic() - since < LINGER_S:
                keep.add(role)
        return frozenset(keep)

    def _write_pods(self, judged: list[verdicts.Verdict]) -> None:
        by_pod: dict[str, list[verdicts.Verdict]] = {}
        for verdict in judged:
            by_pod.setdefault(verdict.pod["metadata"]["uid"], []).append(verdict)
        for found in by_pod.values():
            pod = found[0].pod
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            uid = {"uid": pod["metadata"]["uid"]}  # a namesake that came in between is another pod
            try:
                if note := verdicts.pod_annotation(pod, found):
                    self.kube.patch(path, {"metadata": {**uid, "annotations": {verdicts.READ: note}}}, MERGE)
                now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                if status := verdicts.pod_status(pod, found, now):
                    self.kube.patch(f"{path}/status", {"metadata": uid, "status": status}, MERGE)
            except KubeError as error:
                if error.code not in (404, 409):
                    raise

    def _record(self, name: str, wanted: rules.Wanted) -> None:
        if not self._log_file:
            return
        entry = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "node": name,
                 "resources": wanted.resources,
                 "pods": [{"pod": one.pod["metadata"]["name"], "container": one.container,
                           "source": one.text.source if one.text else None,
                           "trouble": one.trouble.message if one.trouble else None} for one in wanted.verdicts]}
        with Path(self._log_file).open("a") as file:
            file.write(json.dumps(entry) + "\n")
