"""What one node and the plugin pods on it should look like. Pure: from the watched objects to wanted changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import discovery, mig, offer, pods
from .plugin_config import Config, ConfigError, read

GPUS, MODEL, DRIVER = "twin.gpufleet/gpus", "twin.gpufleet/gpu-model", "twin.gpufleet/driver"
MIG, AKS_PROFILE = "twin.gpufleet/mig", "twin.gpufleet/gpu-instance-profile"
WROTE = "twin.gpufleet/wrote"  # role -> label keys that the advertiser set, so that it drops no one else's
READ = "twin.gpufleet/read"  # on a pod: what its plugin read when it started

ConfigMaps = Mapping[tuple[str, str], dict[str, Any]]


@dataclass(frozen=True)
class Trouble:
    """Why a plugin does not serve: a reason as the kubelet shows it, and the message."""

    reason: str  # CrashLoopBackOff | ContainerCreating | PodInitializing | "" (runs, serves nothing)
    message: str


@dataclass
class Verdict:
    """One container of ours in one pod: serves with a configuration, or does not."""

    pod: dict[str, Any]
    container: str
    text: pods.Text | None = None
    config: Config | None = None
    trouble: Trouble | None = None


@dataclass
class Wanted:
    """Changes to make on a node. `resources`: allocatable to show; ones not named there go to 0."""

    resources: dict[str, int] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # role -> labels; an absent role drops its own
    verdicts: list[Verdict] = field(default_factory=list)


def hardware(node: dict[str, Any]) -> offer.Hardware | None:
    """The node's GPUs, or None where it has none."""
    notes = node["metadata"].get("annotations") or {}
    if not notes.get(GPUS, "").isdigit() or int(notes[GPUS]) == 0:
        return None
    driver, model, count = notes.get(DRIVER, ""), notes.get(MODEL, "unknown"), int(notes[GPUS])
    layout = mig.parse(notes[MIG]) if MIG in notes else mig.of_aks(
        notes.get(AKS_PROFILE, ""), count, offer.product(model).get("mig") or {})
    return offer.Hardware(count, model, "" if driver == "none" else driver, layout)


def has_driver(node: dict[str, Any], on_node: Sequence[pods.Pod]) -> bool:
    """A node has a driver unless its annotation says "none"; then a ready driver pod brings one."""
    notes = node["metadata"].get("annotations") or {}
    return notes.get(DRIVER) != "none" or any("driver" in pods.roles(pod) and pods.is_ready(pod) for pod in on_node)


def wanted(node: dict[str, Any], on_node: Sequence[pods.Pod], configmaps: ConfigMaps, operator: bool) -> Wanted:
    """What should be on the node, given its pods, the ConfigMaps and whether an operator runs in the cluster."""
    out = Wanted()
    gpus = hardware(node)
    if gpus is None:
        return out
    labels = node["metadata"].get("labels") or {}
    running = pods.started(on_node)
    driver = has_driver(node, on_node)
    mps_daemon = any("mps" in pods.roles(pod) and pods.is_ready(pod) for pod in running)
    for pod in running:
        for part in ("plugin", "gfd"):
            container = pods.find(pod, part)
            if container is None:
                continue
            verdict = judge(pod, container, configmaps, labels, driver)
            out.verdicts.append(verdict)
            if verdict.config is None:
                continue
            try:
                if part == "gfd":
                    out.labels["gfd"] = offer.labels(gpus, verdict.config)
                elif verdict.config.strategy != "mps" or mps_daemon:
                    out.resources |= offer.resources(gpus, verdict.config)
            except ConfigError as error:
                verdict.trouble = Trouble("CrashLoopBackOff", f"error starting plugins: {error}")
    if any("nfd-worker" in pods.roles(pod) for pod in running):
        out.labels["nfd"] = discovery.nfd_labels()
    if operator:
        there = (node["metadata"].get("annotations") or {}).get(DRIVER, "") not in ("", "none")
        preinstalled = there and any("driver" in pods.roles(pod) for pod in running)
        capable = bool(offer.product(gpus.model).get("mig"))
        out.labels["operator"] = discovery.operator_labels(
            {**labels, **out.labels.get("nfd", {})}, capable, preinstalled)
    return out


def judge(pod: pods.Pod, container: dict[str, Any], configmaps: ConfigMaps, labels: Mapping[str, str],
          driver: bool) -> Verdict:
    """Whether the container serves, and with which configuration.

    A plugin reads its file when it starts. So what it read then is kept (in an annotation of the pod) for as long as
    it runs, whatever happens to the ConfigMap; a config-manager that chooses another key makes it read again, and a
    plugin that ended with an error reads again when it is restarted.
    """
    verdict = Verdict(pod, container["name"])
    try:
        now = pods.config_file(pod, container, configmaps, labels)
    except pods.NoFileError as error:
        kept = _kept(pod, container["name"])
        if kept is None:
            reason = "CrashLoopBackOff" if error.starts else "ContainerCreating"
            verdict.trouble = Trouble(reason, str(error))
            return verdict
        now = kept  # the ConfigMap went away under a running plugin, which does not notice
    kept = _kept(pod, container["name"])
    text = kept if kept and kept.source == now.source else now
    args = [str(word) for word in (container.get("command") or []) + (container.get("args") or [])]
    try:
        config = read(text.content, pods.environment(container), args)
    except ConfigError as error:
        verdict.trouble = Trouble("CrashLoopBackOff", f"error starting plugins: {error}")
        return verdict
    if not driver:
        if pods.waits_for_validation(pod):
            verdict.trouble = Trouble("PodInitializing", "waiting for the driver to be ready on this node")
        elif config.fail_on_init_error and pods.role(container) == "plugin":
            verdict.trouble = Trouble("CrashLoopBackOff", "error starting plugins: failed to initialize NVML: "
                                                          "ERROR_LIBRARY_NOT_FOUND (no driver on this node)")
        else:
            verdict.trouble = Trouble("", "no driver on this node: waiting indefinitely")
        return verdict
    verdict.text, verdict.config = text, config
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


def node_status(node: dict[str, Any], resources: Mapping[str, int]) -> dict[str, Any] | None:
    """Patch of the node's status, or None where it is right.

    As in the kubelet, a resource whose plugin is gone keeps its capacity and has nothing allocatable.
    """
    status = node.get("status", {})
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    change: dict[str, dict[str, str]] = {"capacity": {}, "allocatable": {}}
    for name, count in resources.items():
        for part, there in (("capacity", capacity), ("allocatable", allocatable)):
            if there.get(name) != str(count):
                change[part][name] = str(count)
    for name, count in allocatable.items():
        if name.startswith("nvidia.com/") and name not in resources and count != "0":
            change["allocatable"][name] = "0"
    return {"status": change} if change["capacity"] or change["allocatable"] else None


def node_labels(node: dict[str, Any], labels: Mapping[str, Mapping[str, str]],
                keep: frozenset[str] = frozenset()) -> dict[str, Any] | None:
    """Patch of labels and of the record of who wrote them, or None where they are right.

    `keep`: roles whose labels stay for now although nobody writes them any more.
    """
    there = node["metadata"].get("labels") or {}
    wrote: dict[str, list[str]] = json.loads((node["metadata"].get("annotations") or {}).get(WROTE, "{}"))
    change: dict[str, str | None] = {}
    record: dict[str, list[str]] = {}
    for role in sorted(set(labels) | set(wrote)):
        mine = set(wrote.get(role, []))
        if role not in labels and role in keep:
            record[role] = sorted(mine)
            continue
        new = labels.get(role, {})
        change |= dict.fromkeys(key for key in mine - set(new) if key in there)
        change |= {key: value for key, value in new.items() if there.get(key) != value}
        own = sorted(key for key in new if key in mine or key not in there)
        if own:
            record[role] = own
    if not change and record == wrote:
        return None
    note = json.dumps(record, sort_keys=True) if record else None
    return {"metadata": {"labels": change, "annotations": {WROTE: note}}}
