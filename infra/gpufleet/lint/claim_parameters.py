"""Parameters that a claim gives NVIDIA's driver: read strictly, and only when the pod is already on its node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding, closest_match
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import Document, entries, get, pairs, text_at
from gpufleet.lint.tables import table


def check_parameters(
    document: Document, path: PathParts, devices: Item | None, classes: Mapping[str, str], gates: frozenset[str]
) -> Iterator[Finding]:
    """The opaque parameters of a claim. `classes`: request -> its class, empty where there are several. `gates` are
    those that are known to be on."""
    for i, row in enumerate(entries(devices, "config")):
        driver = text_at(row, "opaque", "driver")
        item = get(row, "opaque", "parameters")
        if driver not in table("claims")["drivers"] or item is None or not isinstance(item.value, dict):
            continue
        where = (*path, "config", i, "opaque", "parameters")
        faults = list(_faults(document, where, item, driver))
        yield from faults
        if faults:
            continue
        yield from _devices(document, where, item, row, classes)
        strategy = text_at(item, "sharing", "strategy")
        gate = table("claims")["gates"].get(strategy)
        if gate and gate not in gates:
            place, value = (*where, "sharing", "strategy"), get(item, "sharing", "strategy")
            yield document.found("GF668", place, value, value=strategy, gate=gate)


def _faults(document: Document, path: PathParts, item: Item, driver: str) -> Iterator[Finding]:
    known = table("claims")
    version, kind = text_at(item, "apiVersion"), text_at(item, "kind")
    kinds = known["drivers"][driver]
    if version != known["parameters_version"]:
        allowed = [known["parameters_version"]]
        fault = f"apiVersion is {allowed[0]}"
        yield document.found(
            "GF667", (*path, "apiVersion"), get(item, "apiVersion"), value=version, fault=fault, allowed=allowed
        )
    elif kind not in kinds:
        fault = f"{driver} has no kind {kind or '(none)'}"
        yield document.found("GF667", (*path, "kind"), get(item, "kind"), value=kind, fault=fault, allowed=kinds)
    else:
        inside = {k: v for k, v in pairs(item).items() if k not in ("apiVersion", "kind", "metadata")}
        yield from _fields(document, path, inside, known["kinds"][kind])


def _fields(
    document: Document, path: PathParts, inside: Mapping[str, Item], form: Mapping[str, object]
) -> Iterator[Finding]:
    """A map against its form: key -> a list of what it takes, `any`, or the form of the map below it."""
    for key, item in inside.items():
        where = (*path, key)
        if key not in form:
            near = closest_match(key, form)
            fault = f"there is no key {key}"
            yield document.found("GF667", where, item, value=key, fault=fault, allowed=list(form), closest=near)
            continue
        wanted = form[key]
        if isinstance(wanted, dict) and isinstance(item.value, dict):
            yield from _fields(document, where, item.value, wanted)
        elif isinstance(wanted, dict) and item.value is not None:
            yield document.found("GF667", where, item, value=item.text, fault=f"{key} is a map")
        elif isinstance(wanted, list) and item.value not in wanted:
            fault = f"{key} takes {', '.join(str(w) for w in wanted)}"
            yield document.found("GF667", where, item, value=item.text, fault=fault, allowed=wanted)
        elif wanted == "percentage" and not (isinstance(item.value, int) and 0 <= item.value <= 100):
            yield document.found("GF667", where, item, value=item.text, fault=f"{key} is a whole number of 0 to 100")
    strategy = inside.get("strategy")
    if strategy is None and "strategy" in form:
        yield document.found("GF667", path, value="no strategy", fault="the key strategy is missing")
    other = {"TimeSlicing": "mpsConfig", "MPS": "timeSlicingConfig"}.get(str(getattr(strategy, "value", "")), "")
    if other in inside and other in form and not (other == "mpsConfig" and "timeSlicingConfig" not in form):
        fault = f"{other} does not go with the strategy {strategy.value if strategy else ''}"
        yield document.found("GF667", (*path, other), inside[other], value=other, fault=fault)


def _devices(
    document: Document, path: PathParts, item: Item, row: Item, classes: Mapping[str, str]
) -> Iterator[Finding]:
    """Parameters of one kind of device on requests of another."""
    kind = text_at(item, "kind")
    wanted = table("claims")["kind_of_class"]
    for name in entries(row, "requests"):
        device_class = classes.get(str(name.value), "")
        if wanted.get(device_class, kind) != kind:
            fault = f"{kind} cannot be given to a device of the class {device_class}"
            yield document.found(
                "GF667", (*path, "kind"), get(item, "kind"), value=kind, fault=fault, allowed=[wanted[device_class]]
            )
