"""Values of charts, and ClusterPolicies, against the stack: what the plan derives for the release is the yardstick.

A key that a text leaves out has the chart's default. Where values come from other files as well, only what the text
itself says is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpufleet.catalog import distribution, taints
from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.fleet.model import Fleet
from gpufleet.lint.document import Document, Kind, entries, get, text_at, truth
from gpufleet.lint.gather import plugin_enabled
from gpufleet.lint.workload import untolerated
from gpufleet.parts.chart_values import get_value
from gpufleet.parts.taints import Taint, tolerations
from gpufleet.routes.operator import operator_plan
from gpufleet.stackfile.software import OperatorRoute

_OPERATOR = (Kind.OPERATOR_VALUES, Kind.CLUSTER_POLICY)
#: Lists of tolerations, by the kind of text, and the chart whose default stands where the list is left out.
_LISTS = {
    Kind.OPERATOR_VALUES: (("daemonsets", "tolerations"), ("node-feature-discovery", "worker", "tolerations")),
    Kind.CLUSTER_POLICY: (("daemonsets", "tolerations"),),
    Kind.CHART_VALUES: (("tolerations",),),
    Kind.HAMI_VALUES: (("devicePlugin", "tolerations"),),
    Kind.NFD_VALUES: (("worker", "tolerations"),),
}
_CHARTS = {Kind.OPERATOR_VALUES: "gpu-operator", Kind.CHART_VALUES: "k8s-device-plugin-chart"}
_NFD = "node-feature-discovery"
#: Switches that the stack decides, with the chart's default and why another value fails.
_SWITCHES: tuple[tuple[str, bool, str], ...] = (
    ("driver.enabled", True, "The pools state who installs the driver."),
    ("toolkit.enabled", True, "Whether the node image or the host brings NVIDIA's runtime follows from the owner."),
    ("cdi.enabled", True, "How GPUs get into containers, and which runtime class pods need, follows from it."),
    ("devicePlugin.enabled", True, "Two plugins must not register one resource, and one has to."),
)
#: Where a text names further values of the same release.
_MORE = ("valuesFrom", "valueFiles", "valuesFiles")
#: The kind of cluster that the toolkit's own defaults are made for.
_PLAIN = "kubeadm"


@dataclass(frozen=True)
class _Text:
    """A text with values, and the root of the values in it."""

    document: Document
    root: Item | None
    prefix: tuple[str, ...]
    complete: bool

    def get(self, dotted: str) -> Item | None:
        return get(self.root, *dotted.split("."))

    def found(self, code: str, path: Sequence[str], item: Item | None, **details: str) -> Finding:
        return self.document.found(code, (*self.prefix, *path), item, closest=None, line=None, **details)


def check_release(documents: Iterable[Document], fleet: Fleet) -> list[Finding]:
    """Everything in which values contradict the stack."""
    texts = [_text(d) for d in documents if d.kind in _LISTS]
    found = [d for text in texts for d in _second_plugin(text, fleet)]
    for kind in _LISTS:
        same = [text for text in texts if text.document.kind is kind]
        for i, text in enumerate(same):
            others = same[:i] + same[i + 1 :]
            found += _tolerations(text, others, fleet)
            if kind in _OPERATOR and isinstance(fleet.stack.stack, OperatorRoute):
                found += _operator(text, others, fleet, fleet.stack.stack)
            elif kind is Kind.CHART_VALUES:
                found += _plugin_class(text, others, fleet)
    return found


def _text(document: Document) -> _Text:
    if document.kind is Kind.CLUSTER_POLICY:
        return _Text(document, get(document.root, "spec"), ("spec",), complete=False)
    return _Text(document, document.root, (), not any(word in document.text for word in _MORE))


def _said(text: _Text, others: list[_Text], dotted: str) -> bool:
    """Whether a text is to be judged by a key: it has the key, or it stands first and no other text has it."""
    if text.get(dotted) is not None:
        return True
    first = all(text.document is not other.document for other in others) and not any(
        other.get(dotted) is not None for other in others
    )
    return text.complete and first


def _tolerations(text: _Text, others: list[_Text], fleet: Fleet) -> Iterator[Finding]:
    wanted = sorted({taint for pool in fleet.served for taint in pool.taints})
    for where in _LISTS[text.document.kind]:
        if where[0] == _NFD and truth(text.root, "nfd", "enabled") is False:
            continue
        dotted, item = ".".join(where), get(text.root, *where)
        if not _said(text, others, dotted):
            continue
        missing = untolerated(_as_spec(item), wanted) if item is not None else _not_by_default(text, wanted)
        if missing:
            add = [t.as_dict() for t in tolerations(Taint(t.key, t.value, t.effect) for t in missing)]
            lacks = ", ".join(f"{t.key}={t.value}:{t.effect}" if t.value else f"{t.key}:{t.effect}" for t in missing)
            yield text.found("GF590", where, item, value=lacks, key=dotted, add=_flow(add))


def _as_spec(item: Item) -> Item:
    return Item({"tolerations": item}, item.line)


def _not_by_default(text: _Text, wanted: list[Taint]) -> list[Taint]:
    """Taints that the chart's own tolerations do not cover."""
    chart = _CHARTS[text.document.kind]
    own = {row.key for row in taints().values() if chart in row.tolerated_by}
    return [t for t in wanted if t.key not in own and t.effect != "PreferNoSchedule"]


def _flow(tolerated: list[dict[str, str]]) -> str:
    return ", ".join("{" + ", ".join(f"{key}: {value}" for key, value in one.items()) + "}" for one in tolerated)


def _operator(text: _Text, others: list[_Text], fleet: Fleet, route: OperatorRoute) -> Iterator[Finding]:
    planned = operator_plan(fleet, route).values
    for dotted, default, why in _SWITCHES:
        item, want = text.get(dotted), get_value(planned, dotted)
        have = default if item is None else item.value
        if isinstance(want, bool) and isinstance(have, bool) and have != want and _said(text, others, dotted):
            path, said = dotted.split("."), str(have).lower()
            yield text.found("GF591", path, item, value=said, key=dotted, planned=str(want).lower(), because=why)
    yield from _class(text, others, str(get_value(planned, "operator.runtimeClass") or ""))
    if fleet.release is not None and fleet.release.mig_strategy != "none":
        item, want = text.get("mig.strategy"), fleet.release.mig_strategy
        have = text_at(text.root, "mig", "strategy") or "single"
        if have != want and _said(text, others, "mig.strategy"):
            why = "The plugin takes the strategy of the release, and the pools' resources have other names under it."
            details = {"value": have, "key": "mig.strategy", "planned": want, "because": why}
            yield text.found("GF592", ["mig", "strategy"], item, **details)
    if get_value(planned, "toolkit.enabled") and truth(text.root, "cdi", "nriPluginEnabled") is not True:
        yield from _toolkit_env(text, others, fleet, get_value(planned, "toolkit.env") or [])


def _class(text: _Text, others: list[_Text], want: str) -> Iterator[Finding]:
    dotted = "operator.runtimeClass"
    item, have = text.get(dotted), text_at(text.root, "operator", "runtimeClass") or "nvidia"
    if want and have != want and _said(text, others, dotted):
        why = "Operands run with this class; under another name the nodes' runtime does not know it."
        yield text.found("GF592", dotted.split("."), item, value=have, key=dotted, planned=want, because=why)


def _toolkit_env(text: _Text, others: list[_Text], fleet: Fleet, planned: list[dict[str, str]]) -> Iterator[Finding]:
    """Paths of the cluster's containerd. What the toolkit does by itself on a plain cluster may be left out."""
    plain = distribution(_PLAIN)
    by_default = dict(plain.operator_toolkit_env) if plain else {}
    listed = entries(text.root, "toolkit", "env")
    own = {text_at(entry, "name"): entry for entry in listed if text_at(entry, "name")}
    for variable in planned:
        name, want = variable["name"], variable["value"]
        entry = own.get(name)
        if entry is not None:
            have = text_at(entry, "value")
            wrong = bool(have) and have != want
        else:
            have, wrong = "not set", by_default.get(name) != want and _said(text, others, "toolkit.env")
        if wrong:
            why = f"On {fleet.distribution} the toolkit has to find the cluster's own containerd."
            yield text.found(
                "GF592", ["toolkit", "env"], entry, value=have, key=f"toolkit.env, {name}", planned=want, because=why
            )


def _plugin_class(text: _Text, others: list[_Text], fleet: Fleet) -> Iterator[Finding]:
    wanted = sorted({pool.runtime_class for pool in fleet.served if pool.runtime_class})
    item, have = text.get("runtimeClassName"), text_at(text.root, "runtimeClassName")
    if fleet.release is None and wanted and have not in wanted and _said(text, others, "runtimeClassName"):
        why = "NVIDIA's runtime is not the default one on the nodes; without the class the plugin finds no GPU."
        yield text.found(
            "GF592",
            ["runtimeClassName"],
            item,
            value=have or "not set",
            key="runtimeClassName",
            planned=wanted[0],
            because=why,
        )


def _second_plugin(text: _Text, fleet: Fleet) -> Iterator[Finding]:
    """The stack serves the GPUs by itself: its own DaemonSets, its operator, or HAMi."""
    operator = text.document.kind in _OPERATOR
    if not fleet.served or (operator and (fleet.release is not None or not plugin_enabled(text.root))):
        return
    by = "the GPU Operator" if fleet.release is not None else "its own device plugin"
    path = ["devicePlugin", "enabled"] if operator else []
    yield text.found("GF593", path, text.root, value=by)
