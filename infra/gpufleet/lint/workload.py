"""Pods that use GPUs: what they ask for, and what else in them decides which GPU they really get."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Protocol

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding, closest_match
from gpufleet.lint.document import Document, entries, get, pairs, text_at
from gpufleet.lint.offers import HAMI, PREFIX, Offers, name_is_possible
from gpufleet.lint.pods import Container, containers, pod_path, pod_spec, program


class Taint(Protocol):
    """A taint of a node."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(m|k|M|G|Ki|Mi|Gi|[eE][+-]?\d{1,2})?")
#: `${GPUS}` of envsubst, `<number>` of documentation, `{{ gpus }}` of a template, `?*` of a policy's pattern.
_PLACEHOLDER = re.compile(r"[${}<>*?|]")
_FACTORS: dict[str, Fraction | int] = {
    "": 1,
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
#: `gpu`, `nvidia/gpu`, `nvidia-gpu`, `nvidia.com.gpu`, and the name of Kubernetes 1.6 to 1.10.
_MISTYPED = re.compile(r"(?i)(nvidia[-._/]?)?gpus?|nvidia\.com?[-._]gpus?|alpha\.kubernetes\.io/nvidia-gpu")
GPU = _TAINT = "nvidia.com/gpu"


def requests(container: Container) -> dict[str, Item]:
    """GPU resources of a container; limits count before requests, and 0 of a resource is no request."""
    found: dict[str, Item] = {}
    for part in ("requests", "limits"):
        found |= {k: v for k, v in pairs(container.item, "resources", part).items() if k.startswith(PREFIX)}
    return {k: v for k, v in found.items() if count(v) != 0}


def gpu_requests(document: Document) -> dict[str, Item]:
    """GPU resources of all containers of a pod."""
    found: dict[str, Item] = {}
    for container in containers(document):
        found |= {k: v for k, v in requests(container).items() if k not in HAMI}
    return found


def count(item: Item) -> int | None:
    """A quantity (`2`, `"2"`, `2000m`, `1k`) as a whole number, or None where it is none."""
    value = item.value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) and len(value) < 20 else None
    if match is None:
        return None
    unit = match[3] or ""
    factor: Fraction | int = _FACTORS[unit] if unit in _FACTORS else Fraction(10) ** int(unit[1:])
    number = Fraction(f"{match[1]}{match[2]}") * factor
    return int(number) if number.denominator == 1 else None


def check_workload(document: Document, offers: Offers) -> Iterator[Finding]:
    """Everything about one pod-carrying object but sharing of memory and spread."""
    if any(program(c) for c in containers(document)):
        return  # the plugin's own pods see every GPU on purpose
    for container in containers(document):
        asked = requests(container)
        yield from _container(document, container, asked, offers)
        yield from _mistyped(document, container)
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
) -> Iterator[Finding]:
    limits = pairs(container.item, "resources", "limits")
    for resource, item in asked.items():
        part = "limits" if resource in limits else "requests"
        path = (*container.path, "resources", part, resource)
        number = count(item)
        if number is None and not (isinstance(item.value, str) and _PLACEHOLDER.search(item.value)):
            why = "The API server refuses fractions of extended resources."
            if item.value is None:
                why = "The API server takes null for 0: the container gets no GPU."
            yield document.found("GF604", path, item, key=resource, value=item.text or "nothing", because=why)
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


def _mistyped(document: Document, container: Container) -> Iterator[Finding]:
    """Names that mean a GPU and lack NVIDIA's prefix; other vendors' names have prefixes of their own."""
    limits = pairs(container.item, "resources", "limits")
    for part in ("limits", "requests"):
        for resource, item in pairs(container.item, "resources", part).items():
            if _MISTYPED.fullmatch(resource) and (part == "limits" or resource not in limits):
                path = (*container.path, "resources", part, resource)
                yield document.found("GF602", path, item, value=resource, closest=GPU)


def _name(
    document: Document, path: tuple[str | int, ...], item: Item, resource: str, offers: Offers
) -> Iterator[Finding]:
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
) -> Iterator[Finding]:
    share = offers.share(resource)
    if share is None:
        return
    if share.refuses_more_than_one:
        yield document.found("GF601", path, item, value=number, key=resource)
    else:
        yield document.found("GF600", path, item, value=number, key=resource)


def _visible(document: Document, container: Container, asked: dict[str, Item]) -> Iterator[Finding]:
    """Variables that choose GPUs past the scheduler."""
    entry = container.env_item("NVIDIA_VISIBLE_DEVICES")
    if entry is not None:
        value = text_at(entry[0], "value") or getattr(get(entry[0], "value"), "text", "")
        if value not in ("", "none", "void"):
            yield document.found("GF607" if asked else "GF608", entry[1], entry[0], value=value)
    entry = container.env_item("CUDA_VISIBLE_DEVICES")
    if entry is not None and asked:
        yield document.found("GF609", entry[1], entry[0])


def _toleration(document: Document, asked: dict[str, Item]) -> Iterator[Finding]:
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


def check_taints(document: Document, taints: Sequence[Taint]) -> Iterator[Finding]:
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
        value = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        yield document.found("GF620", (*path, "tolerations"), value=value, key=taint.key, effect=taint.effect)


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


def _product(document: Document, offers: Offers) -> Iterator[Finding]:
    """A selector, or a required affinity, on the product label that sharing has changed."""
    for path, items in _products_asked(document):
        values = [item.value for item in items if isinstance(item.value, str)]
        if not values or set(values) & offers.products:
            continue
        meant = [(v, p) for v in values for p in (f"{v}-SHARED", v.removesuffix("-SHARED")) if p in offers.products]
        unnamed = not offers.products and GPU in offers.shares and not any(v.endswith("-SHARED") for v in values)
        if meant or unnamed:
            value, product = meant[0] if meant else (values[0], f"{values[0]}-SHARED")
            yield document.found("GF619", path, items[0], value=value, product=product)


def _products_asked(document: Document) -> Iterator[tuple[tuple[str | int, ...], list[Item]]]:
    """Places of a pod that ask for products, each with the products that will do."""
    label, spec, path = "nvidia.com/gpu.product", pod_spec(document), pod_path(document) or ()
    item = pairs(spec, "nodeSelector").get(label)
    if item is not None:
        yield (*path, "nodeSelector", label), [item]
    where = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    terms = entries(spec, *where)
    for i, term in enumerate(terms if len(terms) == 1 else ()):  # of several terms one is enough
        for j, wanted in enumerate(entries(term, "matchExpressions")):
            if text_at(wanted, "key") == label and text_at(wanted, "operator") == "In" and entries(wanted, "values"):
                yield (*path, *where, i, "matchExpressions", j, "values"), entries(wanted, "values")
