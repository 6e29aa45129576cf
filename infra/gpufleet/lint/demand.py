"""What a pod asks of a node in all: per resource, as the scheduler counts it."""

from __future__ import annotations

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.lint.document import Document, get, pairs, text_at
from gpufleet.lint.offers import PREFIX
from gpufleet.lint.pods import Container, containers
from gpufleet.lint.quantity import count


def requests(container: Container) -> dict[str, Item]:
    """GPU resources of a container; limits count before requests, and 0 of a resource is no request."""
    found: dict[str, Item] = {}
    for part in ("requests", "limits"):
        found |= {k: v for k, v in pairs(container.item, "resources", part).items() if k.startswith(PREFIX)}
    return {k: v for k, v in found.items() if count(v) != 0}


def numbers(container: Container) -> dict[str, int]:
    """The same as numbers; what is no whole number is left out."""
    return {name: number for name, item in requests(container).items() if (number := count(item)) is not None}


def is_sidecar(container: Container) -> bool:
    """An init container that runs beside the others until the pod ends."""
    return container.init and text_at(container.item, "restartPolicy") == "Always"


def of_pod(document: Document) -> dict[str, int]:
    """All containers together. Init containers run one after the other, beside the sidecars that came before them
    (Kubernetes documentation, init-containers and sidecar-containers)."""
    every = list(containers(document))
    together: dict[str, int] = {}
    alone: dict[str, int] = {}
    for one in every:
        if not one.init:
            continue
        if is_sidecar(one):
            _add(together, numbers(one))
            continue
        for name, number in numbers(one).items():
            alone[name] = max(alone.get(name, 0), number + together.get(name, 0))
    for one in every:
        if not one.init:
            _add(together, numbers(one))
    return {name: max(together.get(name, 0), alone.get(name, 0)) for name in dict.fromkeys([*together, *alone])}


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, number in more.items():
        total[name] = total.get(name, 0) + number


def place_of(container: Container, resource: str) -> tuple[str | int, ...]:
    """The path of a request: under limits, where it is set there."""
    inside = get(container.item, "resources", "limits", resource) is not None
    return (*container.path, "resources", "limits" if inside else "requests", resource)
