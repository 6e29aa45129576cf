"""Pods that use GPUs: what they ask for, and what else in them decides which GPU they really get."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding, closest_match
from gpufleet.lint.demand import place_of, requests
from gpufleet.lint.document import Document, entries, get, pairs, text_at
from gpufleet.lint.offers import HAMI, PREFIX, Offers, name_is_possible
from gpufleet.lint.place import Taint
from gpufleet.lint.pods import Container, containers, pod_path, pod_spec, program
from gpufleet.lint.quantity import count, is_placeholder
from gpufleet.parts.names import PRODUCT_LABEL

#: `gpu`, `nvidia/gpu`, `nvidia-gpu`, `nvidia.com.gpu`, and the name of Kubernetes 1.6 to 1.10.
_MISTYPED = re.compile(r"(?i)(nvidia[-._/]?)?gpus?|nvidia\.com?[-._]gpus?|alpha\.kubernetes\.io/nvidia-gpu")
GPU = _TAINT = "nvidia.com/gpu"


def gpu_requests(document: Document) -> dict[str, Item]:
    """GPU resources of all containers of a pod."""
    found: dict[str, Item] = {}
    for container in containers(document):
        found |= {k: v for k, v in requests(container).items() if k not in HAMI}
    return found


def check_workload(document: Document, offers: Offers, names: Sequence[str]) -> Iterator[Finding]:
    """Everything about one pod-carrying object but sharing of memory and spread. `names` are resources to ask for."""
    if any(program(c) for c in containers(document)):
        return  # the plugin's own pods see every GPU on purpose
    for container in containers(document):
        asked = requests(container)
        yield from _container(document, container, asked, offers, names)
        yield from _mistyped(document, container)
        yield from _visible(document, container, asked)
    spec, path = pod_spec(document), pod_path(document) or ()
    asked = gpu_requests(document)
    if asked:
        users = get(spec, "hostUsers")
        if users is not None and users.value is False:
            yield document.found("GF611", (*path, "hostUsers"), users)
        if not offers.planned:  # the plan knows taints and labels of the nodes
            yield from _toleration(document, asked)
            yield from _product(document, offers)


def _container(
    document: Document, container: Container, asked: dict[str, Item], offers: Offers, names: Sequence[str]
) -> Iterator[Finding]:
    limits = pairs(container.item, "resources", "limits")
    for resource, item in asked.items():
        path = place_of(container, resource)
        number = count(item)
        if number is None and not is_placeholder(item.value):
            why = "The API server refuses fractions of extended resources."
            if item.value is None:
                why = "The API server takes null for 0: the container gets no GPU."
            yield document.found("GF604", path, item, key=resource, value=item.text or "nothing", because=why)
        if resource in HAMI:
            continue
        wanted = pairs(container.item, "resources", "requests").get(resource)
        if resource not in limits or (wanted is not None and count(wanted) != number):
            yield document.found("GF605", path, wanted or item, key=resource)
        if not name_is_possible(resource):
            allowed = names if offers.certain else ()
            near = closest_resource(resource, list(names))
            yield document.found("GF602", path, item, value=resource, allowed=allowed, closest=near)
        share = offers.share(resource)
        offered = not offers.planned or resource in offers.capacity
        if number is not None and number > 1 and share is not None and offered and not share.refuses_more_than_one:
            yield document.found("GF600", path, item, value=number, key=resource)
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


def closest_resource(resource: str, known: list[str]) -> str | None:
    """The name that was meant."""
    repaired = re.sub(r"/mig(?=\d)", "/mig-", resource)  # a sample in wide use lacks the dash
    return repaired if repaired != resource else closest_match(resource, known)


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


def check_own_taints(document: Document, taints: Sequence[Taint]) -> Iterator[Finding]:
    """Taints that keep the plugin's own pods off the nodes. They request nothing, so no admission helps them."""
    if any(program(c) for c in containers(document)):
        for taint in untolerated(pod_spec(document), taints):
            yield repelled(document, taint)


def repelled(document: Document, taint: Taint) -> Finding:
    """The finding about a taint that a pod does not tolerate."""
    path = (*(pod_path(document) or ()), "tolerations")
    value = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
    return document.found("GF620", path, value=value, key=taint.key, effect=taint.effect)


def untolerated(spec: Item | None, taints: Sequence[Taint]) -> list[Taint]:
    """The taints that keep a pod off."""
    return [taint for taint in taints if taint.effect != "PreferNoSchedule" and not _tolerated(spec, taint)]


def _tolerated(spec: Item | None, taint: Taint) -> bool:
    return tolerates(entries(spec, "tolerations"), taint)


def tolerates(tolerations: Sequence[Item], taint: Taint) -> bool:
    """Whether one of these tolerations is for a taint."""
    for toleration in tolerations:
        key, value = text_at(toleration, "key"), text_at(toleration, "value")
        exists = text_at(toleration, "operator") == "Exists"
        effect = text_at(toleration, "effect")
        if is_placeholder(key) or is_placeholder(value):
            return True
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
    label, spec, path = PRODUCT_LABEL, pod_spec(document), pod_path(document) or ()
    item = pairs(spec, "nodeSelector").get(label)
    if item is not None:
        yield (*path, "nodeSelector", label), [item]
    where = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    terms = entries(spec, *where)
    for i, term in enumerate(terms if len(terms) == 1 else ()):  # of several terms one is enough
        for j, wanted in enumerate(entries(term, "matchExpressions")):
            if text_at(wanted, "key") == label and text_at(wanted, "operator") == "In" and entries(wanted, "values"):
                yield (*path, *where, i, "matchExpressions", j, "values"), entries(wanted, "values")
