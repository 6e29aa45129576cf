"""Claims of devices (DRA): claims, templates and classes, and the pods that name them.

Forms: Kubernetes API resource.k8s.io/v1, v1beta2 and v1beta1. NVIDIA's classes and parameters:
kubernetes-sigs/dra-driver-nvidia-gpu v0.5.0 (`gpufleet.lint.claim_parameters`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.findings.path import PathParts
from gpufleet.lint.claim_parameters import check_parameters
from gpufleet.lint.document import Document, Kind, entries, get, pairs, text_at
from gpufleet.lint.gather import Gathered
from gpufleet.lint.names import slip
from gpufleet.lint.pods import containers, pod_path, pod_spec
from gpufleet.lint.quantity import count
from gpufleet.lint.tables import table

_CLAIM, _TEMPLATE, _CLASS, _DOMAIN = "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ComputeDomain"
#: Kinds that make one pod more for each replica.
_REPLICAS = {"Deployment": "replicas", "StatefulSet": "replicas", "ReplicaSet": "replicas", "Job": "parallelism"}


@dataclass(frozen=True)
class Request:
    """One request of a claim. `part_of` is the request that offers it as one of several (firstAvailable)."""

    name: str
    device_class: str
    path: PathParts
    item: Item
    part_of: str = ""

    @property
    def full_name(self) -> str:
        """The name by which constraints and parameters call it."""
        return f"{self.part_of}/{self.name}" if self.part_of else self.name


@dataclass(frozen=True)
class Claim:
    """A claim, or a template of claims, with its requests."""

    document: Document
    path: PathParts
    requests: tuple[Request, ...]

    @property
    def devices(self) -> Item | None:
        """`spec.devices` of the claim."""
        return get(self.document.root, *self.path)

    @property
    def names(self) -> list[str]:
        """What constraints and parameters may call: requests and their parts."""
        whole = [r.part_of for r in self.requests if r.part_of]
        return list(dict.fromkeys([*whole, *(r.full_name for r in self.requests)]))

    @property
    def wants_gpus(self) -> bool:
        """Whether a request names a class of NVIDIA's."""
        return any(r.device_class in table("claims")["classes"] for r in self.requests)


def check_claims(run: Gathered, stack: bool) -> Iterator[Finding]:
    """Everything about claims. No `stack` installs a driver for them."""
    documents = run.of(Kind.CLAIM)
    claims = [_claim(d) for d in documents if d.api_kind in (_CLAIM, _TEMPLATE)]
    classes = [d.name for d in documents if d.api_kind == _CLASS]
    gates = _gates(run) if claims else frozenset()
    for document in documents:
        yield from _version(document)
    for claim in claims:
        found = list(_form(claim.document))
        yield from found
        if found:
            continue
        yield from _classes(claim, classes)
        yield from _calls(claim)
        yield from check_parameters(claim.document, claim.path, claim.devices, _device_classes(claim), gates)
        if stack and not _has_driver(run):
            yield from _without_driver(claim)
    for document in run.of(Kind.WORKLOAD, Kind.DAEMON_SET):
        yield from _pod(document, claims, documents)


def _gates(run: Gathered) -> frozenset[str]:
    """Feature gates that the values of the driver's chart, or of the operator's, switch on."""
    places = (("featureGates",), ("draDriver", "featureGates"), ("spec", "draDriver", "featureGates"))
    given = (pairs(document.root, *place) for document in run.documents for place in places)
    return frozenset(gate for gates in given for gate, item in gates.items() if item.value is True)


def _spec_path(document: Document) -> PathParts:
    return ("spec", "spec", "devices") if document.api_kind == _TEMPLATE else ("spec", "devices")


def _claim(document: Document) -> Claim:
    path = _spec_path(document)
    found: list[Request] = []
    for i, item in enumerate(entries(document.root, *path, "requests")):
        where, name = (*path, "requests", i), text_at(item, "name")
        parts = entries(item, "firstAvailable")
        if parts:
            for j, part in enumerate(parts):
                place = (*where, "firstAvailable", j)
                found.append(Request(text_at(part, "name"), text_at(part, "deviceClassName"), place, part, name))
            continue
        exact = get(item, "exactly")
        inside, place = (item, where) if exact is None else (exact, (*where, "exactly"))
        found.append(Request(name, text_at(inside, "deviceClassName"), place, inside))
    return Claim(document, path, tuple(found))


def _device_classes(claim: Claim) -> dict[str, str]:
    """Request -> its class; of a request with several alternatives only where all have the same."""
    found: dict[str, str] = {}
    for request in claim.requests:
        found[request.full_name] = request.device_class
        if request.part_of:
            same = found.setdefault(request.part_of, request.device_class) == request.device_class
            found[request.part_of] = request.device_class if same else ""
    return found


def _version(document: Document) -> Iterator[Finding]:
    version = text_at(document.root, "apiVersion").rpartition("/")[2]
    served = table("claims")["versions"]
    if document.api_kind != _DOMAIN and version in table("claims")["gone"]:
        item = get(document.root, "apiVersion")
        yield document.found("GF657", ("apiVersion",), item, value=version, kind=document.api_kind, allowed=served)


def _form(document: Document) -> Iterator[Finding]:
    """v1 and v1beta2 have `exactly` around a request, v1beta1 has not."""
    version, path = text_at(document.root, "apiVersion").rpartition("/")[2], _spec_path(document)
    wrapped = version in ("v1", "v1beta2")
    if not wrapped and version != "v1beta1":
        return
    for i, item in enumerate(entries(document.root, *path, "requests")):
        bare, exact = get(item, "deviceClassName"), get(item, "exactly")
        if wrapped and bare is not None:
            why = f"In {version} what a request asks for stands below `exactly`."
            yield document.found("GF658", (*path, "requests", i, "deviceClassName"), bare, because=why, value=version)
        elif not wrapped and exact is not None:
            why = "In v1beta1 what a request asks for stands beside its name; there is no `exactly`."
            yield document.found("GF658", (*path, "requests", i, "exactly"), exact, because=why, value=version)


def _classes(claim: Claim, declared: Sequence[str]) -> Iterator[Finding]:
    known = [*table("claims")["classes"], *declared]
    for request in claim.requests:
        if not request.device_class or request.device_class in known:
            continue
        near = slip(request.device_class, known)
        if near:
            path, item = (*request.path, "deviceClassName"), get(request.item, "deviceClassName")
            yield claim.document.found("GF659", path, item, value=request.device_class, allowed=known, closest=near)


def _calls(claim: Claim) -> Iterator[Finding]:
    """Requests that constraints and parameters name."""
    names = claim.names
    for part in ("constraints", "config"):
        for i, row in enumerate(entries(claim.devices, part)):
            for j, item in enumerate(entries(row, "requests")):
                if isinstance(item.value, str) and item.value not in names:
                    path = (*claim.path, part, i, "requests", j)
                    yield claim.document.found("GF660", path, item, value=item.value, allowed=names)


def _has_driver(run: Gathered) -> bool:
    """Whether NVIDIA's driver for claims is among what was given."""
    workloads = run.of(Kind.WORKLOAD, Kind.DAEMON_SET)
    return any(part in c.image for d in workloads for c in containers(d) for part in table("claims")["images"])


def _without_driver(claim: Claim) -> Iterator[Finding]:
    for request in claim.requests:
        if request.device_class in table("claims")["classes"]:
            path, item = (*request.path, "deviceClassName"), get(request.item, "deviceClassName")
            yield claim.document.found("GF661", path, item, value=request.device_class)


def _pod(document: Document, claims: Sequence[Claim], documents: Sequence[Document]) -> Iterator[Finding]:
    spec, path = pod_spec(document), pod_path(document) or ()
    own: dict[str, Claim | None] = {}
    for i, item in enumerate(entries(spec, "resourceClaims")):
        own[text_at(item, "name")] = claim = _meant(document, item, claims)
        if claim is None:
            yield from _missing(document, (*path, "resourceClaims", i), item, claims, documents)
    used: dict[str, int] = {}
    for container in containers(document):
        for j, item in enumerate(entries(container.item, "resources", "claims")):
            where, name = (*container.path, "resources", "claims", j), text_at(item, "name")
            used[name] = used.get(name, 0) + 1
            if name not in own:
                yield document.found("GF662", (*where, "name"), get(item, "name"), value=name, allowed=list(own))
                continue
            asked, claim = get(item, "request"), own[name]
            if asked is None or claim is None or not isinstance(asked.value, str):
                continue
            names = list(dict.fromkeys(r.part_of or r.name for r in claim.requests))
            if asked.value not in names:
                yield document.found("GF663", (*where, "request"), asked, value=asked.value, allowed=names)
    for i, item in enumerate(entries(spec, "resourceClaims")):
        name = text_at(item, "name")
        known = own.get(name)
        if known is not None and name not in used and known.wants_gpus:
            yield document.found("GF664", (*path, "resourceClaims", i), item, value=name)
        elif known is not None and used.get(name) == 1 and text_at(item, "resourceClaimTemplateName"):
            yield from _nothing_shared(document, (*path, "resourceClaims", i), item, known)


def _named(item: Item) -> tuple[str, str]:
    """The kind and name of what an entry of resourceClaims names."""
    template = text_at(item, "resourceClaimTemplateName")
    return (_TEMPLATE, template) if template else (_CLAIM, text_at(item, "resourceClaimName"))


def _same_namespace(one: Document, other: Document) -> bool:
    return not one.namespace or not other.namespace or one.namespace == other.namespace


def _meant(document: Document, item: Item, claims: Sequence[Claim]) -> Claim | None:
    kind, name = _named(item)
    return next(
        (
            c
            for c in claims
            if c.document.api_kind == kind and c.document.name == name and _same_namespace(document, c.document)
        ),
        None,
    )


def _missing(
    document: Document, path: PathParts, item: Item, claims: Sequence[Claim], documents: Sequence[Document]
) -> Iterator[Finding]:
    """A name that is nearly that of something given, or that stands in another namespace, is a slip. Any other name may
    be that of an object which is not among what was given."""
    kind, name = _named(item)
    if not name:
        return
    key = "resourceClaimTemplateName" if kind == _TEMPLATE else "resourceClaimName"
    made = [d for d in documents if d.api_kind == _DOMAIN and kind == _TEMPLATE]  # their controller makes the template
    templates = {text_at(d.root, "spec", "channel", "resourceClaimTemplate", "name"): d for d in made}
    if name in templates and _same_namespace(document, templates[name]):
        return
    every = {c.document.name: c.document for c in claims if c.document.api_kind == kind} | templates
    if name in every:
        there, here = every[name].namespace, document.namespace
        why = f"It is in the namespace {there}, the pod in {here}."
        yield document.found("GF665", (*path, key), get(item, key), value=name, kind=kind, because=why)
        return
    here_too = [n for n, d in every.items() if _same_namespace(document, d)]
    near = slip(name, here_too)
    if near:
        yield document.found(
            "GF665", (*path, key), get(item, key), value=name, kind=kind, allowed=here_too, closest=near
        )


def _nothing_shared(document: Document, path: PathParts, item: Item, claim: Claim) -> Iterator[Finding]:
    """A template makes a claim, and so a GPU, for each pod; sharing in it is among the containers of one pod."""
    if claim.document.api_kind != _TEMPLATE or any(get(r.item, "capacity") is not None for r in claim.requests):
        return
    key = _REPLICAS.get(document.api_kind, "")
    number = get(document.root, "spec", key) if key else None
    several = number is not None and (count(number) or 0) > 1
    for config in entries(claim.devices, "config"):
        sharing = pairs(config, "opaque", "parameters").get("sharing")
        if several and text_at(sharing, "strategy"):
            yield document.found("GF666", path, item, value=claim.document.name, number=number.text if number else "")
            return
