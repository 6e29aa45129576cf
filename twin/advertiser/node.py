"""What one node should look like. Pure: from the watched objects to wanted changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import discovery, hami, mig, mig_manager, mps, offer, pods, registrations, verdicts
from .plugin_config import ConfigError
from .verdicts import ConfigMaps, Trouble, Verdict

GPUS, MODEL, DRIVER = "twin.gpufleet.dev/gpus", "twin.gpufleet.dev/gpu-model", "twin.gpufleet.dev/driver"
MIG, AKS_PROFILE = "twin.gpufleet.dev/mig", "twin.gpufleet.dev/gpu-instance-profile"
SECOND = "twin.gpufleet.dev/second-plugin"  # which plugins run beside each other, and what each of them lost
WROTE = "twin.gpufleet.dev/wrote"  # role -> label keys that the advertiser set, so that it drops no one else's


@dataclass
class Wanted:
    """Changes to make on a node. `resources`: allocatable to show; ones not named there go to 0."""

    resources: dict[str, int] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # role -> labels; an absent role drops its own
    annotations: dict[str, str | None] = field(default_factory=dict)  # None: to be absent
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
    running = pods.started(on_node)
    driver = has_driver(node, on_node)
    layout = _partition(out, node, gpus, running, configmaps, driver)
    gpus = gpus if layout is None else replace(gpus, layout=layout)
    _serve(out, node, gpus, running, configmaps, driver)
    if any("nfd-worker" in pods.roles(pod) for pod in running):
        out.labels["nfd"] = discovery.nfd_labels()
    if operator:
        labels, notes = node["metadata"].get("labels") or {}, node["metadata"].get("annotations") or {}
        preinstalled = notes.get(DRIVER, "") not in ("", "none") and any("driver" in pods.roles(pod) for pod in running)
        capable = bool(offer.product(gpus.model).get("mig"))
        by_default = {pods.environment(one).get(mig_manager.DEFAULT_ENV) for pod in running
                      if (one := pods.find(pod, "mig-manager"))}
        out.labels["operator"] = discovery.operator_labels(
            {**labels, **out.labels.get("nfd", {})}, capable, preinstalled, discovery.MIG_DISABLED in by_default)
    return out


def _partition(out: Wanted, node: dict[str, Any], gpus: offer.Hardware, running: Sequence[pods.Pod],
               configmaps: ConfigMaps, driver: bool) -> mig.Layout | None:
    """What the MIG manager makes of the GPUs; None where there is none on the node, or nothing for it to do."""
    labels = node["metadata"].get("labels") or {}
    name = labels.get(discovery.MIG_CONFIG, "")
    pod = next((one for one in reversed(running) if "mig-manager" in pods.roles(one)), None)
    container = pods.find(pod, "mig-manager") if pod else None
    if pod is None or container is None or not name or not driver:
        return None
    verdict = verdicts.of_mig_manager(pod, container, configmaps, labels, name)
    out.verdicts.append(verdict)
    if verdict.text is None and verdict.trouble and verdict.trouble.reason == "ContainerCreating":
        return None
    try:
        if verdict.trouble:  # it runs, and its tool does not find the file
            verdict.trouble = Trouble("", verdict.trouble.message)
            raise mig_manager.SpecError(verdict.trouble.message)
        content = verdict.text.content if verdict.text else ""
        own = offer.product(gpus.model).get("mig") or {}
        layout = mig_manager.applied(gpus, mig_manager.parse(content) if content else mig_manager.generated(own), name)
    except mig_manager.SpecError as error:
        verdict.trouble = Trouble("", f"error applying MIG configuration {name}: {error}")
        out.labels["mig-manager"] = {mig_manager.STATE: "failed"}
        return None
    out.labels["mig-manager"] = {mig_manager.STATE: "success"}
    out.annotations[MIG] = mig.render(layout)
    return layout


def _serve(out: Wanted, node: dict[str, Any], gpus: offer.Hardware, running: Sequence[pods.Pod],
           configmaps: ConfigMaps, driver: bool) -> None:
    """Judge every plugin, feature discovery and MPS daemon, and sum up what those that serve offer."""
    labels, notes = node["metadata"].get("labels") or {}, node["metadata"].get("annotations") or {}
    found = [(pod, role, container) for role in ("mps", "plugin", "gfd", "hami") for pod in running
             if (container := pods.find(pod, role))]
    daemons: list[Verdict] = []
    offers: list[tuple[pods.Pod, dict[str, int]]] = []
    for pod, role, container in found:
        judge = verdicts.of_hami if role == "hami" else verdicts.of_nvidia
        verdict = judge(pod, container, configmaps, labels, driver)
        out.verdicts.append(verdict)
        try:
            if verdict.hami:
                offers.append((pod, hami.resources(gpus, verdict.hami)))
            elif verdict.config and role == "gfd":
                out.labels["gfd"] = offer.labels(gpus, verdict.config)
            elif verdict.config and role == "mps":
                mps.check_daemon(gpus, verdict.config)
                daemons.append(verdict)
            elif verdict.config:
                resources = offer.resources(gpus, verdict.config)
                if reason := mps.waits(gpus, verdict, container, daemons):
                    verdict.text, verdict.trouble = None, Trouble("", reason)  # it starts again every 30 s
                else:
                    offers.append((pod, resources))
        except ConfigError as error:
            verdict.trouble = Trouble("CrashLoopBackOff", f"error starting plugins: {error}")
    offers.sort(key=lambda one: running.index(one[0]))
    out.resources, out.annotations[SECOND] = registrations.settle(offers, notes.get(SECOND))


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


def node_annotations(node: dict[str, Any], annotations: Mapping[str, str | None]) -> dict[str, Any] | None:
    """Patch of annotations, or None where they are right."""
    there = node["metadata"].get("annotations") or {}
    change = {key: value for key, value in annotations.items() if there.get(key) != value}
    return {"metadata": {"annotations": change}} if change else None
