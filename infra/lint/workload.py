"""Pods that use GPUs: what they ask for, and what else in them decides which GPU they really get."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from infra.config.diagnostics import Diagnostic, closest_match
from infra.lint.document import Document, entries, get, pairs, text_at
from infra.lint.offers import HAMI, PREFIX, Offers, name_is_possible
from infra.lint.pods import Container, containers, pod_path, pod_spec, program
from infra.plan.device_plugin.yaml11 import Item


class Taint(Protocol):
    """A taint of a node."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


_WHOLE = re.compile(r"\d+")
GPU = _TAINT = "nvidia.com/gpu"


def requests(container: Container) -> dict[str, Item]:
    """GPU resources of a container; limits count before requests."""
    found: dict[str, Item] = {}
    for part in ("requests", "limits"):
        found |= {k: v for k, v in pairs(container.item, "resources", part).items() if k.startswith(PREFIX)}
    return found


def gpu_requests(document: Document) -> dict[str, Item]:
    """GPU resources of all containers of a pod."""
    found: dict[str, Item] = {}
    for container in containers(document):
        found |= {k: v for k, v in requests(container).items() if k not in HAMI}
    return found


def count(item: Item) -> int | None:
    """A quantity as a whole number, or None where it is none."""
    value = item.value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        return int(value) if value == int(value) else None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) and len(value) < 10 else None


def check_workload(document: Document, offers: Offers) -> Iterator[Diagnostic]:
    """Everything about one pod-carrying object but sharing of memory and spread."""
    if any(program(c) for c in containers(document)):
        return  # the plugin's own pods see every GPU on purpose
    for container in containers(document):
        asked = requests(container)
        yield from _container(document, container, asked, offers)
        yield from _visible(document, container, asked)
    spec, path = pod_spec(document), pod_path(document) or ()
    asked = gpu_requests(document)
    if asked:
        users = get(spec, "hostUsers")
        if users is not None and users.value is False:
            yield document.found("GF611", (*path, "hostUsers"), users)
        yield from _toleration(document, asked)
        yield from _product(document, offers)


def _container(
    document: Document, container: Container, asked: dict[str, Item], offers: Offers
) -> Iterator[Diagnostic]:
    limits = pairs(container.item, "resources", "limits")
    for resource, item in asked.items():
        part = "limits" if resource in limits else "requests"
        path = (*container.path, "resources", part, resource)
        number = count(item)
        if number is None:
            yield document.found("GF604", path, item, key=resource, value=item.text or "nothing")
        if resource in HAMI:
            continue
        wanted = pairs(container.item, "resources", "requests").get(resource)
        if resource not in limits or (wanted is not None and count(wanted) != number):
            yield document.found("GF605", path, wanted or item, key=resource)
        yield from _name(document, path, item, resource, offers)
        if number is not None and number > 1:
            yield from _several(document, path, item, resource, number, offers)
    mig = sorted(r for r in asked if r.startswith(PREFIX + "mig-"))
    total = sum(count(asked[r]) or 0 for r in mig)
    if len(mig) > 1 or total > 1:
        value = ", ".join(f"{count(asked[r]) or '?'} x {r}" for r in mig)
        yield document.found("GF606", (*container.path, "resources"), asked[mig[0]], value=value)


def _name(
    document: Document, path: tuple[str | int, ...], item: Item, resource: str, offers: Offers
) -> Iterator[Diagnostic]:
    known = list(offers.capacity) or ["nvidia.com/gpu"]
    if not name_is_possible(resource):
        near = _closest(resource, known)
        yield document.found("GF602", path, item, value=resource, allowed=known if offers.certain else (), closest=near)
    elif offers.certain and resource not in offers.capacity and resource == resource.lower():
        offered = ", ".join(f"{k}: {v}" for k, v in sorted(offers.capacity.items())) or "nothing"
        near = _closest(resource, known)
        yield document.found("GF603", path, item, value=resource, allowed=known, closest=near, offered=offered)


def _closest(resource: str, known: list[str]) -> str | None:
    repaired = re.sub(r"/mig(?=\d)", "/mig-", resource)  # a sample in wide use lacks the dash
    return repaired if repaired != resource else closest_match(resource, known)


def _several(
    document: Document, path: tuple[str | int, ...], item: Item, resource: str, number: int, offers: Offers
) -> Iterator[Diagnostic]:
    share = offers.share(resource)
    if share is None:
        return
    if share.refuses_more_than_one:
        yield document.found("GF601", path, item, value=number, key=resource)
    else:
        yield document.found("GF600", path, item, value=number, key=resource)


def _visible(document: Document, container: Container, asked: dict[str, Item]) -> Iterator[Diagnostic]:
    """Variables that choose GPUs past the scheduler."""
    entry = container.env_item("NVIDIA_VISIBLE_DEVICES")
    if entry is not None:
        value = text_at(entry[0], "value") or getattr(get(entry[0], "value"), "text", "")
        if value not in ("", "none", "void"):
            yield document.found("GF607" if asked else "GF608", entry[1], entry[0], value=value)
    entry = container.env_item("CUDA_VISIBLE_DEVICES")
    if entry is not None and asked:
        yield document.found("GF609", entry[1], entry[0])


def _toleration(document: Document, asked: dict[str, Item]) -> Iterator[Diagnostic]:
    """NV-18: clusters add a toleration for the key of the requested resource only."""
    others = sorted(r for r in asked if r != _TAINT)
    if not others or _TAINT in asked:
        return
    for toleration in entries(pod_spec(document), "tolerations"):
        key = text_at(toleration, "key")
        if key == _TAINT or (not key and text_at(toleration, "operator") == "Exists"):
            return
    path = (*(pod_path(document) or ()), "tolerations")
    yield document.found("GF610", path, value=others[0])


def check_taints(document: Document, taints: Sequence[Taint]) -> Iterator[Diagnostic]:
    """Taints of the nodes that neither the pod nor the cluster's admission tolerates.

    Clusters add a toleration for the key of the requested resource (ExtendedResourceToleration); a DaemonSet of the
    plugin requests nothing and gets none.
    """
    asked = gpu_requests(document)
    own = any(program(c) for c in containers(document))
    if not asked and not own:
        return
    spec, path = pod_spec(document), pod_path(document) or ()
    for taint in taints:
        if taint.effect == "PreferNoSchedule" or taint.key in asked or _tolerated(spec, taint):
            continue
        why = "Nothing in the pod tolerates it, and no requested resource has its key as its name."
        value = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        yield document.found("GF620", (*path, "tolerations"), value=value, why=why, key=taint.key, effect=taint.effect)


def _tolerated(spec: Item | None, taint: Taint) -> bool:
    for toleration in entries(spec, "tolerations"):
        key, value = text_at(toleration, "key"), text_at(toleration, "value")
        exists = text_at(toleration, "operator") == "Exists"
        effect = text_at(toleration, "effect")
        if effect in ("", taint.effect) and (
            (exists and key in ("", taint.key)) or (not exists and key == taint.key and value == taint.value)
        ):
            return True
    return False


def _product(document: Document, offers: Offers) -> Iterator[Diagnostic]:
    """A selector on the product label that sharing has changed."""
    label = "nvidia.com/gpu.product"
    item = pairs(pod_spec(document), "nodeSelector").get(label)
    if item is None or not isinstance(item.value, str) or item.value in offers.products:
        return
    product = f"{item.value}-SHARED"
    certain = product in offers.products
    unnamed = not offers.products and GPU in offers.shares and not item.value.endswith("-SHARED")
    if certain or unnamed:
        path = (*(pod_path(document) or ()), "nodeSelector", label)
        yield document.found("GF619", path, item, value=item.value, product=product)
