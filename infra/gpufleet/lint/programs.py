"""Containers that run a program for NVIDIA GPUs and ask for none: on a shared node they take what others were given,
or they end because there is no GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpufleet.findings.finding import Finding
from gpufleet.lint.demand import is_sidecar
from gpufleet.lint.document import Document, entries, get, pairs, text_at, truth
from gpufleet.lint.pods import Container, containers, pod_spec, program
from gpufleet.lint.tables import table

#: Resources that every node has; any other name with a domain is a device.
_OF_KUBERNETES = ("kubernetes.io/", "hugepages-")
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def check_programs(document: Document, resource: str) -> Iterator[Finding]:
    """GPU programs in a pod that has no GPU: no resource, no claim, no runtime class of NVIDIA's.
    `resource` is what it could ask for."""
    every = list(containers(document))
    spec = pod_spec(document)
    if any(program(c) or _has_device(c) for c in every) or entries(spec, "resourceClaims"):
        return
    if "nvidia" in text_at(spec, "runtimeClassName") or any(c.env_item(_VISIBLE) is not None for c in every):
        return  # such a container gets its GPUs from the runtime; GF608 is about that
    if not any(get(c.item, "image") for c in every):
        return  # a patch
    for container in every:
        name = _gpu_program(container)
        if name:
            yield document.found("GF638", container.path, container.item, value=name, resource=resource)


def _has_device(container: Container) -> bool:
    names = [name for part in ("limits", "requests") for name in pairs(container.item, "resources", part)]
    devices = [name for name in names if "/" in name and not any(k in name for k in _OF_KUBERNETES)]
    return bool(devices or entries(container.item, "resources", "claims"))


def _gpu_program(container: Container) -> str | None:
    prepares = container.init and not is_sidecar(container)
    if prepares or truth(container.item, "securityContext", "privileged") is True:
        return None  # a privileged container sees every GPU of the host
    known, words = table("gpu_programs"), " ".join(container.words)
    devices = [value for name, value in container.env().items() if name.endswith("_DEVICE")]
    hardware = " ".join([container.image, container.flags().get("--device", ""), *devices]).lower()
    if any(re.search(rf"(?<![a-z]){part}(?![a-z])", hardware) for part in known["elsewhere"]):
        return None
    if any(_word(part, words) for part in known["without_gpu"]):
        return None
    return next((row["name"] for row in known["programs"] if _matches(row, container, words)), None)


def _matches(row: dict[str, Any], container: Container, words: str) -> bool:
    if any(_word(part, words) for part in row["words"]):
        return True
    own = row["own_program"] and not entries(container.item, "command")
    return bool(own and any(part in container.image for part in row["images"]))


def _word(part: str, words: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(part)}(?![\w.-])", words) is not None
