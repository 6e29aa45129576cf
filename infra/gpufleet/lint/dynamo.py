"""Services of NVIDIA Dynamo as pods: they write GPUs as `gpu`, beside the container.

The name of the resource is gpuType, else nvidia.com/gpu (ai-dynamo/dynamo, operator, controller_common/resource.go;
API nvidia.com/v1alpha1). In v1beta1 the services hold pod templates, which lint finds by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import Document, Kind, get, pairs, text_at

_GPU = "nvidia.com/gpu"
_PARTS = ("limits", "requests")


def dynamo_pods(document: Document) -> Iterator[Document]:
    """Each service that asks for GPUs, as a pod. Places and lines are those of the text."""
    if text_at(document.root, "apiVersion") != "nvidia.com/v1alpha1":
        return
    if document.api_kind == "DynamoComponentDeployment":
        yield from _pod(document, ("spec",))
    elif document.api_kind == "DynamoGraphDeployment":
        for name in pairs(document.root, "spec", "services"):
            yield from _pod(document, ("spec", "services", name))


def _pod(document: Document, path: PathParts) -> Iterator[Document]:
    service = get(document.root, *path)
    resources = get(service, "resources")
    if service is None or resources is None or not any(get(resources, part, "gpu") for part in _PARTS):
        return
    places: list[tuple[PathParts, PathParts]] = []
    asked: dict[str, Item] = {}
    here: PathParts = ("spec", "containers", 0)
    for part in _PARTS:
        given = get(resources, part)
        gpus, name = get(given, "gpu"), text_at(given, "gpuType") or _GPU
        if given is not None and gpus is not None:
            asked[part] = replace(given, value={name: gpus})
            places.append(((*here, "resources", part, name), (*path, "resources", part, "gpu")))
    around = get(service, "extraPodSpec")
    main = get(around, "mainContainer") or Item({}, service.line)
    container = replace(main, value={**pairs(main), "resources": replace(resources, value=asked)})
    fields = {k: v for k, v in pairs(around).items() if k not in ("mainContainer", "containers")}
    spec = Item({**fields, "containers": Item([container], main.line)}, service.line)
    head = {"apiVersion": Item("v1", service.line), "kind": Item("Pod", service.line), "spec": spec}
    places += [
        ((*here, "resources"), (*path, "resources")),
        (here, (*path, "extraPodSpec", "mainContainer")),
        (("spec",), (*path, "extraPodSpec")),
    ]
    root = replace(document.root, value={**pairs(document.root), **head})
    yield replace(document, root=root, kind=Kind.WORKLOAD, places=tuple(places))
