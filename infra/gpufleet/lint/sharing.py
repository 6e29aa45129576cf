"""Pods on shared GPUs: memory that nobody bounds, memory that is promised twice, spread over nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.lint.demand import requests
from gpufleet.lint.document import Document, entries, get, text_at
from gpufleet.lint.offers import Offers, Share
from gpufleet.lint.pods import Container, containers, pod_path, pod_spec, program
from gpufleet.lint.quantity import count
from gpufleet.lint.tables import table
from gpufleet.lint.workload import gpu_requests

_HOST = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Reservation:
    """A container that reserves a fraction of the whole GPU at start; `pods` is how many replicas it has."""

    document: Document
    container: Container
    server: str
    fraction: float
    pods: int
    resource: str
    share: Share


def _shared_resource(asked: dict[str, Item], offers: Offers) -> tuple[str, Share] | None:
    for resource in asked:
        share = offers.share(resource)
        if share is not None:
            return resource, share
    return None


def replicas_of(document: Document) -> int:
    """How many pods an object makes at a time."""
    for path in (("spec", "replicas"), ("spec", "parallelism"), ("spec", "jobTemplate", "spec", "parallelism")):
        found = get(document.root, *path)
        number = count(found) if found is not None else None
        if number is not None:
            return number
    return 1


def check_sharing(document: Document, offers: Offers) -> Iterator[Finding]:
    """Memory bounds and spread of one object."""
    if any(program(c) for c in containers(document)):
        return
    for container in containers(document):
        shared = _shared_resource(requests(container), offers)
        bounded = _bounded(container) or _server(container) is not None  # servers take a fraction by default
        if shared is not None and shared[1].strategy != "mps" and not bounded:
            yield document.found("GF612", container.path, container.item)
    if _shared_resource(gpu_requests(document), offers) is not None and replicas_of(document) > 1:
        yield from _spread(document)


def _bounded(container: Container) -> bool:
    known = table("memory_bounds")
    words = " ".join(container.words)
    env = container.env()
    return (
        any(option in words for option in known["options"])
        or any(name in env for name in known["env"])
        or any(resource in requests(container) for resource in known["resources"])
    )


def _spread(document: Document) -> Iterator[Finding]:
    if document.api_kind not in ("Deployment", "StatefulSet", "ReplicaSet"):
        return
    spec, path = pod_spec(document), pod_path(document) or ()
    why = "One pod per node: the other shares of its GPU stay empty, and further pods stay Pending."
    required = entries(spec, "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for term in required:
        if text_at(term, "topologyKey") == _HOST:
            yield document.found("GF613", (*path, "affinity", "podAntiAffinity"), term, because=why)
    constraints = entries(spec, "topologySpreadConstraints")
    for i, constraint in enumerate(constraints):
        hard = text_at(constraint, "whenUnsatisfiable") in ("", "DoNotSchedule")
        if text_at(constraint, "topologyKey") == _HOST and hard:
            reason = "When one node is full or gone, further pods stay Pending although other shares are free."
            yield document.found("GF613", (*path, "topologySpreadConstraints", i), constraint, because=reason)
    preferred = entries(spec, "affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
    if not required and not constraints and not preferred:
        yield document.found("GF614", path, spec)


def _server(container: Container) -> dict[str, Any] | None:
    text = " ".join([container.image, *container.words])
    return next((s for s in table("servers") if any(m in text for m in s["match"])), None)


def _fraction(container: Container, server: dict[str, Any]) -> float:
    """The option's value wherever it stands, also inside the text of a shell command; else the server's default."""
    words = " ".join(container.words).replace("=", " ").split()
    for i, word in enumerate(words[:-1]):
        if word == server["option"]:
            try:
                return float(words[i + 1].strip("\"'"))
            except ValueError:
                break
    return float(server["default"])


def reservations(documents: list[Document], offers: Offers) -> list[Reservation]:
    """All servers that reserve memory of a shared GPU."""
    found = []
    for document in documents:
        for container in containers(document):
            shared = _shared_resource(requests(container), offers)
            server = _server(container)
            if shared is not None and server is not None and not program(container):
                fraction, pods = _fraction(container, server), replicas_of(document)
                found.append(Reservation(document, container, server["name"], fraction, pods, *shared))
    return found


def check_reservations(documents: list[Document], offers: Offers) -> Iterator[Finding]:
    """Pods that may meet on one GPU and reserve more than all of its memory together."""
    every = reservations(documents, offers)
    for resource in dict.fromkeys(r.resource for r in every):
        mine = [r for r in every if r.resource == resource]
        pods = sorted((r.fraction for r in mine for _ in range(min(r.pods, 64))), reverse=True)
        places = mine[0].share.replicas or len(pods)
        together = pods[:places]
        total = sum(together)
        if len(together) < 2 or total <= 1.0 + 1e-9:
            continue
        why = (
            f"Up to {len(together)} of these pods share one GPU ({places} shares each); each reserves its fraction of "
            "the whole GPU at start, and those that come last fail."
        )
        for one in mine:
            each = f"{1 / len(together):.2f}"
            details: dict[str, Any] = {"value": f"{total:.2f} of 1.00", "because": why, "each": each}
            yield one.document.found("GF618", one.container.path, one.container.item, **details)
