"""Does a container of ours serve, and with which configuration; what the kubelet then shows of its pod. Pure.

A program reads its file when it starts. So what it read then is kept (in an annotation of the pod) for as long as it
runs, whatever happens to the ConfigMap; a config-manager that chooses another key makes it read again, and a program
that ended with an error reads again when it is restarted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import hami, pods
from .plugin_config import Config, ConfigError, read

READ = "twin.gpufleet.dev/read"  # on a pod: what its programs read when they started

ConfigMaps = Mapping[tuple[str, str], dict[str, Any]]


@dataclass(frozen=True)
class Trouble:
    """Why a program does not serve: a reason as the kubelet shows it, and the message."""

    reason: str  # CrashLoopBackOff | ContainerCreating | PodInitializing | "" (runs, serves nothing)
    message: str


@dataclass
class Verdict:
    """One container of ours in one pod: serves with a configuration, or does not."""

    pod: dict[str, Any]
    container: str
    text: pods.Text | None = None
    served: bool = False  # it has read this very text before and gone into service with it
    config: Config | None = None
    hami: hami.Config | None = None
    trouble: Trouble | None = None


def of_nvidia(pod: pods.Pod, container: dict[str, Any], configmaps: ConfigMaps, labels: Mapping[str, str],
              driver: bool) -> Verdict:
    """NVIDIA's plugin, GPU feature discovery or the MPS control daemon: one file, one image."""
    role, env, args = pods.role(container), pods.environment(container), pods.words(container)
    verdict = _with_file(pod, container, lambda: pods.config_file(pod, container, configmaps, labels))
    if verdict.text is None:
        return verdict
    try:
        config = read(verdict.text.content, env, args, validate=role != "mps")
    except ConfigError as error:
        return _fails(verdict, str(error))
    ends = role == "mps" or (role == "plugin" and config.fail_on_init_error)
    if driver:
        verdict.config = config
        return verdict
    return _without_driver(verdict, ends)


def of_hami(pod: pods.Pod, container: dict[str, Any], configmaps: ConfigMaps, labels: Mapping[str, str],
            driver: bool) -> Verdict:
    """HAMi's plugin: two files, read as one."""
    def both() -> pods.Text:
        device = pods.config_file(pod, container, configmaps, labels)
        try:
            nodes = pods.file(pod, container, hami.NODE_FILE, configmaps, labels)
        except pods.NoFileError as error:
            if not error.starts:
                raise
            nodes = pods.Text("", "")
        return pods.Text(f"{device.source}+{nodes.source}", json.dumps([device.content, nodes.content]))

    verdict = _with_file(pod, container, both)
    if verdict.text is None:
        return verdict
    device, nodes = json.loads(verdict.text.content)
    try:
        config = hami.read(device, nodes, pod["spec"]["nodeName"], pods.environment(container), pods.words(container))
    except ConfigError as error:
        return _fails(verdict, str(error))
    if driver:
        verdict.hami = config
        return verdict
    return _without_driver(verdict, config.fail_on_init_error)


def of_mig_manager(pod: pods.Pod, container: dict[str, Any], configmaps: ConfigMaps, labels: Mapping[str, str],
                   selected: str) -> Verdict:
    """The MIG manager, which reads its file again whenever the node's label selects another configuration."""
    def file() -> pods.Text:
        found = pods.config_file(pod, container, configmaps, labels)
        return pods.Text(f"{found.source}#{selected}", found.content)

    return _with_file(pod, container, file)


def _with_file(pod: pods.Pod, container: dict[str, Any], file: Callable[[], pods.Text]) -> Verdict:
    verdict, kept = Verdict(pod, container["name"]), _kept(pod, container["name"])
    try:
        now = file()
    except pods.NoFileError as error:
        if kept is None:
            verdict.trouble = Trouble("CrashLoopBackOff" if error.starts else "ContainerCreating", str(error))
            return verdict
        now = kept  # the ConfigMap went away under a running program, which does not notice
    verdict.served = kept is not None and kept.source == now.source
    verdict.text = kept if verdict.served else now
    return verdict


def _fails(verdict: Verdict, message: str) -> Verdict:
    verdict.text, verdict.trouble = None, Trouble("CrashLoopBackOff", f"error starting plugins: {message}")
    return verdict


def _without_driver(verdict: Verdict, ends: bool) -> Verdict:
    verdict.text = None
    if pods.waits_for_validation(verdict.pod):
        verdict.trouble = Trouble("PodInitializing", "waiting for the driver to be ready on this node")
    elif ends:
        return _fails(verdict, "failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND (no driver on this node)")
    else:
        verdict.trouble = Trouble("", "no driver on this node: waiting indefinitely")
    return verdict


def _kept(pod: pods.Pod, container: str) -> pods.Text | None:
    note = (pod["metadata"].get("annotations") or {}).get(READ)
    found = json.loads(note).get(container) if note else None
    return pods.Text(found["source"], found["content"]) if found else None


def pod_annotation(pod: pods.Pod, verdicts: Sequence[Verdict]) -> str | None:
    """New value of the pod's `READ` annotation, or None where it is right."""
    note = (pod["metadata"].get("annotations") or {}).get(READ)
    kept = json.loads(note) if note else {}
    new = {one.container: {"source": one.text.source, "content": one.text.content} for one in verdicts if one.text}
    return json.dumps({**kept, **new}, sort_keys=True) if {**kept, **new} != kept else None


def pod_status(pod: pods.Pod, verdicts: Sequence[Verdict], now: str) -> dict[str, Any] | None:
    """The pod's status as the kubelet would show it, or None where it is right. `now`: RFC 3339."""
    troubles = {one.container: one.trouble for one in verdicts if one.trouble and one.trouble.reason}
    statuses, changed = [], False
    for old in pod.get("status", {}).get("containerStatuses") or []:
        trouble = troubles.get(old["name"])
        waiting = (old.get("state") or {}).get("waiting") or {}
        if trouble and (waiting.get("reason"), waiting.get("message")) != (trouble.reason, trouble.message):
            new = {**old, "ready": False, "started": False,
                   "state": {"waiting": {"reason": trouble.reason, "message": trouble.message}}}
            if trouble.reason == "CrashLoopBackOff":
                new["restartCount"] = old.get("restartCount", 0) + 1
                new["lastState"] = {"terminated": {"exitCode": 1, "reason": "Error", "message": trouble.message,
                                                   "startedAt": now, "finishedAt": now}}
        elif not trouble and waiting:
            new = {**old, "ready": True, "started": True, "state": {"running": {"startedAt": now}}}
        else:
            new = old
        changed |= new is not old
        statuses.append(new)
    if not changed:
        return None
    ready = "False" if troubles else "True"
    follow = {"status": ready, "lastTransitionTime": now}
    conditions = [{**one, **follow} if one["type"] in ("Ready", "ContainersReady") else one
                  for one in pod["status"].get("conditions") or []]
    return {"containerStatuses": statuses, "conditions": conditions}
