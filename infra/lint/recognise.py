"""What a document is, told from its content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from infra.config.diagnostics import closest_match
from infra.lint.document import Document, Kind, get, pairs, text_at
from infra.lint.tables import table
from infra.plan.device_plugin import golang, options
from infra.plan.device_plugin.yaml11 import Item, YamlError, read

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
}
#: Names under which --as forces a kind.
FORCED = {
    "config": Kind.CONFIG,
    "operator-values": Kind.OPERATOR_VALUES,
    "chart-values": Kind.CHART_VALUES,
}
_SHARING_WORDS = re.compile(r"(?i)\b(time_?-?slicing|replicas|renameByDefault|migStrategy)\b")


def kind_of(root: Item) -> Kind:
    """The kind of one document."""
    keys = pairs(root)
    if text_at(root, "kind") and text_at(root, "apiVersion"):
        kind = text_at(root, "kind")
        return _KINDS.get(kind) or (Kind.WORKLOAD if kind in POD_PATHS else Kind.OTHER)
    if looks_like_config(root):
        return Kind.CONFIG
    operator, chart = table("operator_values"), table("chart_values")
    if set(keys) == {"spec"} and len(set(pairs(root, "spec")) & set(operator["mark"])) >= 1:
        return Kind.CLUSTER_POLICY  # a patch for one, as `kubectl patch --patch-file` takes it
    if get(root, "devicePlugin", "config") is not None or len(set(keys) & set(operator["mark"])) >= 2:
        return Kind.OPERATOR_VALUES
    marks = set(keys) & set(chart["mark"])
    if _is_chart_config(root) or len(marks) >= 2 or marks - {"gfd", "config", "mps"}:
        return Kind.CHART_VALUES
    if set(keys) & set(operator["mark"]) or "mig" in keys:
        return Kind.OPERATOR_VALUES
    return Kind.CHART_VALUES if "gfd" in marks else Kind.UNKNOWN


def _is_chart_config(root: Item) -> bool:
    return bool(set(pairs(root, "config")) & {"map", "name", "default", "fallbackStrategies"})


def looks_like_config(root: Item) -> bool:
    """A plugin configuration, also one with mistyped keys."""
    keys = {k: v for k, v in pairs(root).items() if k not in ("apiVersion", "kind", "metadata")}
    if not keys or len(keys) != len(pairs(root)) or "mig-configs" in keys:  # the last is a MIG layout file
        return False
    if "$schema" in keys:  # a JSON Schema; its definitions may be called like our keys
        return False
    folded = {golang.fold(k) for k in keys}
    if folded & {"SHARING", "FLAGS", "IMEX"}:
        return True
    if "VERSION" in folded and all(not isinstance(v.value, dict) or k.lower() in options.TOP for k, v in keys.items()):
        return True
    for key, value in keys.items():
        inner = {golang.fold(k).replace("_", "") for k in pairs(value)}
        if closest_match(key, ("sharing", "flags")) and inner & {"TIMESLICING", "MPS", "MIGSTRATEGY", "PLUGIN", "GFD"}:
            return True
        if inner & {"TIMESLICING"} or (golang.fold(key).replace("_", "") == "TIMESLICING" and "RESOURCES" in inner):
            return True
    return text_at(root, "version") == "v1"


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
            yield replace(document, kind=forced or kind_of(document.root))
