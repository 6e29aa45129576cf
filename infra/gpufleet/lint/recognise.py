"""Recognises the kind of a document by its content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from gpufleet.device_plugin import golang, options
from gpufleet.device_plugin.yaml11 import Item, YamlError, read
from gpufleet.findings.finding import closest_match
from gpufleet.lint.document import Document, Kind, get, pairs, text_at
from gpufleet.lint.recognise_values import values_kind
from gpufleet.lint.tables import table

#: Kubernetes kinds that carry a pod, with the path to its spec.
POD_PATHS: dict[str, tuple[str, ...]] = {
    "Pod": ("spec",),
    "Deployment": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
    "ReplicaSet": ("spec", "template", "spec"),
    "ReplicationController": ("spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "PodTemplate": ("template", "spec"),
}
_KINDS = {
    "ConfigMap": Kind.CONFIG_MAP,
    "ClusterPolicy": Kind.CLUSTER_POLICY,
    "DaemonSet": Kind.DAEMON_SET,
    "Node": Kind.NODE,
    "Service": Kind.SELECTOR,
    "PodDisruptionBudget": Kind.SELECTOR,
    "PodMonitor": Kind.SELECTOR,
    "NetworkPolicy": Kind.SELECTOR,
    "ResourceQuota": Kind.QUOTA,
    **dict.fromkeys(("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ComputeDomain"), Kind.CLAIM),
    **dict.fromkeys(("ResourceFlavor", "ClusterQueue", "LocalQueue", "Cohort", "Queue"), Kind.QUEUE),
    "NVIDIADriver": Kind.DRIVER,
}
#: Names under which --as forces a kind.
FORCED = {
    "config": Kind.CONFIG,
    "operator-values": Kind.OPERATOR_VALUES,
    "chart-values": Kind.CHART_VALUES,
    "nfd-values": Kind.NFD_VALUES,
    "hami-values": Kind.HAMI_VALUES,
    "dra-values": Kind.DRA_VALUES,
}
#: API groups of the kinds above; other groups have kinds of the same names (Kyverno's ClusterPolicy, Volcano's Job).
_GROUPS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"), ("apps", "extensions")),
    **dict.fromkeys(("Job", "CronJob"), ("batch",)),
    "ClusterPolicy": ("nvidia.com",),
    "PodDisruptionBudget": ("policy",),
    "PodMonitor": ("monitoring.coreos.com",),
    "NetworkPolicy": ("networking.k8s.io", "extensions"),
    **dict.fromkeys(("ResourceClaim", "ResourceClaimTemplate", "DeviceClass"), ("resource.k8s.io",)),
    "ComputeDomain": ("resource.nvidia.com",),
    **dict.fromkeys(("ResourceFlavor", "ClusterQueue", "LocalQueue", "Cohort"), ("kueue.x-k8s.io",)),
    "Queue": ("scheduling.volcano.sh",),
    "NVIDIADriver": ("nvidia.com",),
}
_SHARING_WORDS = re.compile(r"(?i)\b(time_?-?slicing|replicas|renameByDefault|migStrategy)\b")


def kind_of(root: Item) -> Kind:
    """The kind of one document."""
    keys = pairs(root)
    kind, group = text_at(root, "kind"), text_at(root, "apiVersion").rpartition("/")[0]
    if kind and text_at(root, "apiVersion"):
        if group and group not in _GROUPS.get(kind, ()):
            return Kind.OTHER
        return _KINDS.get(kind) or (Kind.WORKLOAD if kind in POD_PATHS else Kind.OTHER)
    if "mig-configs" in keys:
        return Kind.LAYOUTS
    if looks_like_config(root):
        return Kind.CONFIG
    if set(keys) == {"spec"} and len(set(pairs(root, "spec")) & set(table("operator_values")["mark"])) >= 1:
        return Kind.CLUSTER_POLICY  # a patch for one, as `kubectl patch --patch-file` takes it
    return values_kind(root, text_is_config)


def looks_like_config(root: Item) -> bool:
    """Whether it is a plugin configuration; keys may be mistyped."""
    keys = {k: v for k, v in pairs(root).items() if k not in ("apiVersion", "kind", "metadata")}
    if not keys or len(keys) != len(pairs(root)) or "mig-configs" in keys:  # the last is a MIG layout file
        return False
    if "$schema" in keys:  # a JSON Schema; its definitions may be called like our keys
        return False
    folded = {golang.fold(k) for k in keys}
    if folded & {"SHARING", "FLAGS", "IMEX"}:
        return True
    for key, value in keys.items():
        inner = {golang.fold(k).replace("_", "") for k in pairs(value)}
        if closest_match(key, ("sharing", "flags")) and inner & {"TIMESLICING", "MPS", "MIGSTRATEGY", "PLUGIN", "GFD"}:
            return True
        if inner & {"TIMESLICING"} or (golang.fold(key).replace("_", "") == "TIMESLICING" and "RESOURCES" in inner):
            return True
    # Many other files have a `version`, so the other keys must at least resemble those of the plugin.
    rest = [key for key in keys if golang.fold(key) != "VERSION"]
    return len(rest) < len(keys) and (not rest or any(_resembles_option(key) for key in rest))


def _resembles_option(key: str) -> bool:
    """A key of any level in some spelling, or a slip of the pen in one of those that matter."""
    return _plain(key) in _option_keys() or closest_match(key, ("sharing", "flags", "timeSlicing")) is not None


@cache
def _option_keys() -> frozenset[str]:
    """Every key that the plugin's configuration has at some level but those of list entries, which are too common."""
    below = [part for path in options.by_path() for part in path.split(".")]
    return frozenset(_plain(key) for key in (*options.TOP, *options.SHARING, *options.REPLICATED, *below))


def _plain(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def text_is_config(text: str) -> bool:
    """A text under a key of a ConfigMap that is meant for the device plugin, also where it cannot be parsed."""
    try:
        root = read(text).root
    except YamlError:
        return _SHARING_WORDS.search(text) is not None
    return root is not None and (looks_like_config(root) or is_wrapped(root) is not None)


def is_wrapped(root: Item | None) -> str | None:
    """The kind of a Kubernetes object that stands where a plugin configuration belongs, or None."""
    kind = text_at(root, "kind")
    if not kind or not text_at(root, "apiVersion"):
        return None
    inner = [v.value for v in pairs(root, "data").values() if isinstance(v.value, str)]
    return kind if any(text_is_config(text) for text in inner) else None


def recognise(documents: list[Document], forced: Kind | None) -> Iterator[Document]:
    """The documents with their kinds; lists as `kubectl get -o yaml` prints them become their items."""
    for document in documents:
        items = get(document.root, "items")
        if text_at(document.root, "kind").endswith("List") and items is not None and isinstance(items.value, list):
            for i, item in enumerate(items.value):
                yield replace(document, root=item, kind=kind_of(item), prefix=("items", i))
        else:
            yield replace(document, kind=forced or kind_of(document.root), named=forced is not None)
