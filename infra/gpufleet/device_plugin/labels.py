"""Node labels of GPU Feature Discovery that depend on the layout and on sharing, without the prefix `nvidia.com/`.

Source: NVIDIA/k8s-device-plugin v0.20.0 internal/lm/{resource,mig-strategy,nvml}.go.
"""

from __future__ import annotations

import re

from gpufleet.device_plugin.devices import GPU, mig_resource
from gpufleet.device_plugin.model import Config, NodeLayout, ReplicatedRow

_NOT_A_LABEL = re.compile(r"[^A-Za-z0-9-_. ]")


def sanitise(text: str) -> str:
    """A product name as a label value: other characters dropped, blanks become dashes."""
    return "-".join(_NOT_A_LABEL.sub("", text).split())


def _row(config: Config, resource: str) -> ReplicatedRow | None:
    """The first entry for a resource; the labels use it even where a later, larger one decides the count."""
    return next((row for row in config.active.rows if row.name == resource), None)


def _resource_labels(config: Config | None, resource: str, count: int, parts: tuple[str, ...]) -> dict[str, str]:
    """The four labels of one resource; without a configuration sharing does not apply (MIG-enabled parents)."""
    row = _row(config, resource) if config is not None else None
    replicas = 0 if config is None else row.replicas if row is not None else 1
    product = [sanitise(p) for p in parts]
    if row is not None and not row.rename:
        product.append("SHARED")
    key = resource.removeprefix("nvidia.com/")
    return {
        f"{key}.count": str(count),
        f"{key}.product": "-".join(product),
        f"{key}.replicas": str(replicas),
        f"{key}.sharing-strategy": config.strategy if config is not None and replicas > 1 else "none",
    }


def labels_fail(config: Config, node: NodeLayout) -> bool:
    """Whether GFD stops and writes no labels: MPS on a node with a MIG-enabled GPU."""
    return config.strategy == "mps" and bool(node.mig)


def labels(config: Config, node: NodeLayout, mig_strategy: str) -> dict[str, str]:
    """The labels of a node whose layout the plugin accepts."""
    out: dict[str, str] = {}
    if not node.gpus:
        return out
    plain = node.gpus - len(node.mig)
    out.update(_resource_labels(config if plain else None, GPU, node.gpus, (node.product,)))
    instances = [p for gpu in sorted(node.mig) for p in node.mig[gpu]]
    if mig_strategy == "single" and instances:
        out.update(_resource_labels(config, GPU, len(instances), (node.product, "MIG", instances[0].replace("+", "."))))
    if mig_strategy == "mixed":
        for profile in dict.fromkeys(instances):
            name = profile.replace("+", ".")
            parts = (node.product, "MIG", name)
            out.update(_resource_labels(config, mig_resource(profile), instances.count(profile), parts))
    if node.memory_mib is not None and not (mig_strategy == "single" and instances):
        out["gpu.memory"] = str(node.memory_mib)
    return out


def other_labels(config: Config, mig_strategy: str) -> dict[str, str]:
    """Labels that depend only on the configuration, not on the devices."""
    out = {"mps.capable": "true" if config.strategy == "mps" else "false"}
    if mig_strategy != "none":
        out["mig.strategy"] = mig_strategy
    return out
