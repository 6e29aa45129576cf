"""Values of the GPU Operator's chart and of the plugin's chart, and ClusterPolicies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpufleet.catalog import DriverVersion, driver_version
from gpufleet.device_plugin import NodeLayout, predict
from gpufleet.device_plugin.options import by_path
from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import Finding
from gpufleet.lint.config import Checked
from gpufleet.lint.document import Document, Kind, entries, get, pairs, text_at, texts, truth
from gpufleet.lint.gather import Gathered, chart_env, operator_env, plugin_enabled
from gpufleet.lint.pods import told_virtual_gpus
from gpufleet.lint.tables import table

_CONFIG = ("devicePlugin", "config")


def check_values(document: Document, run: Gathered, checked: list[Checked]) -> Iterator[Finding]:
    """Everything about one values file or ClusterPolicy that its own text decides."""
    mine = [c for c in checked if c.config.document is document]
    if document.kind is Kind.OPERATOR_VALUES:
        yield from _no_op(document)
        yield from _operator(document, document.root, ())
        yield from _created_config(document)
        yield from _switched_off(document, document.root, (), mine)
        yield from _exporter(document, run, checked)
        yield from _refused(document, document.root, (), operator_env(document.root), mine)
    elif document.kind is Kind.CLUSTER_POLICY:
        spec = get(document.root, "spec")
        yield from _operator(document, spec, ("spec",))
        yield from _refused(document, spec, ("spec",), operator_env(spec), mine)
    elif document.kind is Kind.CHART_VALUES:
        yield from _chart_config(document)
        yield from _switched_off(document, document.root, (), mine)
        yield from _chart_features(document, mine)
        yield from _refused(document, document.root, (), chart_env(document.root), mine)


def _refused(
    document: Document, root: Item | None, prefix: tuple[str, ...], env: Mapping[str, str], mine: list[Checked]
) -> Iterator[Finding]:
    """Values that the plugin refuses as options, whatever it reads; with a configuration here they are told there."""
    if mine or not plugin_enabled(root):
        return
    for fault in predict("", NodeLayout(1), env=env).faults:
        value = _value_of(document, fault.path)
        path = (*prefix, *value.split(".")) if value else prefix
        yield document.found(
            "GF511", path, value=fault.value, fault=fault.reason, allowed=_allowed(fault.path), closest=fault.closest
        )


def _value_of(document: Document, option: str) -> str:
    """The value of the chart that sets an option of the plugin."""
    if document.kind is not Kind.CHART_VALUES:
        return next((v for v, o in table("operator_values")["options"].items() if o == option), "")
    known = by_path()[option].env if option in by_path() else ()
    return next((v for v, variable in table("chart_values")["env"].items() if variable in known), "")


def _allowed(option: str) -> tuple[str, ...]:
    return by_path()[option].allowed if option in by_path() else ()


def _no_op(document: Document) -> Iterator[Finding]:
    for dotted, why in table("operator_values")["no_op"].items():
        path = tuple(dotted.split("."))
        item = get(document.root, *path)
        if item is not None:
            yield document.found("GF551", path, item, key=dotted, because=f"{why}.")


def _rendered_null(root: Item | None, where: tuple[str, ...], item: Item | None) -> bool:
    """Values that are not null, and that the chart's template turns into null (NVIDIA/gpu-operator#1993, its
    templates/clusterpolicy.yaml): without a name the template leaves the whole config out."""
    if item is None:
        return False
    if where == (*_CONFIG, "default"):
        return item.value == "" and bool(text_at(root, *_CONFIG, "name"))
    return where[0] == "validator" and bool(pairs(item)) and not entries(item, "env")


def _operator(document: Document, root: Item | None, prefix: tuple[str, ...]) -> Iterator[Finding]:
    """Rules that hold for values and for the ClusterPolicy that is made from them."""
    name, default = get(root, *_CONFIG, "name"), get(root, *_CONFIG, "default")
    path = (*prefix, *_CONFIG)
    if default is not None and default.value and not text_at(root, *_CONFIG, "name"):
        yield document.found("GF534", (*path, "default"), default, value=default.text)
    elif text_at(root, *_CONFIG, "name") and not text_at(root, *_CONFIG, "default") and plugin_enabled(root):
        yield document.found("GF533", path, default or name)
    yield from _tolerations(document, root, prefix)
    for dotted in table("operator_values")["rendered_empty"]:
        where = tuple(dotted.split("."))
        item = get(root, *where)
        null = item is not None and item.value is None
        if not null and (prefix or not _rendered_null(root, where, item)):
            continue
        remedy = "Remove the key."
        if where[-1] == "default" and text_at(root, *_CONFIG, "name"):
            remedy = "Name a key of the ConfigMap; one without sharing will do."
        elif where[0] == "validator" and item is not None and item.value:
            remedy = 'Give it an entry: env: [{name: WITH_WORKLOAD, value: "false"}]'
        yield document.found("GF552", (*prefix, *where), item, key=dotted, remedy_text=remedy)


def _tolerations(document: Document, root: Item | None, prefix: tuple[str, ...]) -> Iterator[Finding]:
    """NV-17: operands that tolerate what the ClusterPolicy passes on, no more. Values have the chart's default."""
    where = ("daemonsets", "tolerations")
    given = get(root, *where)
    if (given is None and not prefix) or entries(root, *where):
        return
    release = _release(document)
    for row in table("operator_values")["without_toleration"]:
        own = release is not None and release >= driver_version(row["own_from"])
        if truth(root, *row["when"].split(".")) is True and not own:
            path, item = (*prefix, *where), given or get(root, *row["when"].split(".")[:-1])
            yield document.found("GF566", path, item, value=row["operand"], own_from=row["own_from"])


def _release(document: Document) -> DriverVersion | None:
    """The operator's version by the labels that its chart puts on a ClusterPolicy."""
    labels = pairs(document.root, "metadata", "labels")
    for key in ("app.kubernetes.io/version", "helm.sh/chart"):
        text = str(getattr(labels.get(key), "value", "")).removeprefix("gpu-operator-")
        try:
            return driver_version(text)
        except ValueError:
            continue
    return None


def _created_config(document: Document) -> Iterator[Finding]:
    """NV-08, NV-02: a ConfigMap that the chart creates needs a name and data; its default is the name of a key."""
    create = get(document.root, *_CONFIG, "create")
    if create is not None and create.value:  # a template takes any text for true, "false" too
        missing = [k for k in ("name", "data") if not getattr(get(document.root, *_CONFIG, k), "value", None)]
        if missing:
            yield document.found("GF535", (*_CONFIG, "create"), create, what=" and ".join(missing))
    elif pairs(document.root, *_CONFIG, "data"):
        yield document.found("GF559", (*_CONFIG, "data"))


def _switched_off(
    document: Document, root: Item | None, prefix: tuple[str, ...], mine: list[Checked]
) -> Iterator[Finding]:
    if mine and not plugin_enabled(root):
        path = (*prefix, "devicePlugin", "enabled")
        yield document.found("GF548", path, get(document.root, *path))


def _exporter(document: Document, run: Gathered, checked: list[Checked]) -> Iterator[Finding]:
    """NV-48 and NV-49: the exporter follows sharing, and its labels stay as they are."""
    shared = any(c.prediction.strategy in ("time-slicing", "mps") for c in checked)
    if shared and truth(document.root, "dcgmExporter", "enabled") is not False:
        words = texts(get(document.root, "dcgmExporter", "args"))
        if not told_virtual_gpus(entries(document.root, "dcgmExporter", "env"), words):
            yield document.found("GF556", ("dcgmExporter", "env"), get(document.root, "dcgmExporter"))
    honor = get(document.root, "dcgmExporter", "serviceMonitor", "honorLabels")
    if honor is not None and honor.value is False:
        yield document.found("GF557", ("dcgmExporter", "serviceMonitor", "honorLabels"), honor)


def _chart_config(document: Document) -> Iterator[Finding]:
    """The rules of the chart's own templates, and the one that they lack: the default must be a key."""
    root = document.root
    maps = pairs(root, "config", "map")
    if text_at(root, "config", "name") and maps:
        yield document.found("GF536", ("config", "map"), get(root, "config", "map"))
    listed = get(root, "config", "fallbackStrategies")
    fallbacks = [e.value for e in entries(root, "config", "fallbackStrategies")]
    fallbacks = fallbacks if listed is not None else table("chart_values")["fallbacks"]
    chosen = text_at(root, "config", "default") or ("named" in fallbacks and "default" in maps) or "empty" in fallbacks
    if len(maps) > 1 and not chosen:
        yield document.found("GF537", ("config", "map"), get(root, "config", "map"), allowed=list(maps))


def _chart_features(document: Document, mine: list[Checked]) -> Iterator[Finding]:
    root = document.root
    gfd = truth(root, "gfd", "enabled") is True
    if not gfd and any(c.prediction.strategy == "mps" for c in mine):
        yield document.found("GF549", ("gfd", "enabled"), get(root, "gfd", "enabled") or get(root, "gfd") or root)
    own_nodes = get(root, "affinity") is not None or bool(pairs(root, "nodeSelector"))
    if not gfd and not own_nodes and truth(root, "nfd", "enabled") is not True and plugin_enabled(root):
        yield document.found("GF554", ("gfd", "enabled"), get(root, "gfd", "enabled") or get(root, "gfd") or root)
