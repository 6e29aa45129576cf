"""Recognises values files: the chart that they are for, by keys that it alone has."""

from __future__ import annotations

from collections.abc import Callable, Collection

from gpufleet.catalog.charts import DEVICE_PLUGIN, GPU_OPERATOR, ChartValue, chart_tables
from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.finding import closest_match
from gpufleet.lint.document import Kind, get, pairs, text_at
from gpufleet.lint.tables import table


def values_kind(root: Item, is_config: Callable[[str], bool]) -> Kind:
    """The kind of values; unknown where no chart's own keys are among them.

    `is_config` says whether a text is a configuration of the device plugin.
    """
    for name, kind in (("dra", Kind.DRA_VALUES), ("hami", Kind.HAMI_VALUES), ("nfd", Kind.NFD_VALUES)):
        if _marked(root, name):
            return kind
    keys = pairs(root)
    operator, chart = table("operator_values"), table("chart_values")
    if get(root, "devicePlugin", "config") is not None or len(set(keys) & set(operator["mark"])) >= 2:
        return Kind.OPERATOR_VALUES
    marks = set(keys) & set(chart["mark"])
    if _is_plugin_config(root, is_config) or len(marks) >= 2 or marks - {"gfd", "config", "mps"}:
        return Kind.CHART_VALUES
    marks = set(keys) & {*operator["mark"], "mig"}
    if marks - set(operator["common"]) or (marks and _all_known(root, top_keys(GPU_OPERATOR))):
        return Kind.OPERATOR_VALUES
    return Kind.CHART_VALUES if "gfd" in keys else Kind.UNKNOWN


def _marked(root: Item, chart: str) -> bool:
    marks = table("chart_marks")[chart]

    def there(dotted: str) -> bool:
        return get(root, *dotted.split(".")) is not None

    return any(map(there, marks["any"])) or any(all(map(there, group)) for group in marks["together"])


def top_keys(chart: str) -> tuple[str, ...]:
    """The keys that a chart has at the top of its values."""
    newest = chart_tables(chart)[0]
    return tuple(dict.fromkeys((*newest.parts, *newest.subcharts)))


def _all_known(root: Item, known: Collection[str]) -> bool:
    """Whether every key is a key of the chart, or a mistyped one."""
    return all(closest_match(key, known) for key in pairs(root))


def _is_plugin_config(root: Item, is_config: Callable[[str], bool]) -> bool:
    """Whether `config` looks as in the plugin's chart; other charts have a `config.name` too."""
    config = pairs(root, "config")
    if "fallbackStrategies" in config:
        return True
    if any(isinstance(v.value, str) and is_config(v.value) for v in pairs(root, "config", "map").values()):
        return True
    image = text_at(root, "image", "repository")
    known = chart_tables(DEVICE_PLUGIN)[0].part("config")
    return (
        bool(config)
        and known is not None
        and not isinstance(known, ChartValue)
        and set(config) <= set(known)
        and not pairs(root, "config", "map")
        and _all_known(root, top_keys(DEVICE_PLUGIN))
        and (not image or "k8s-device-plugin" in image)
    )
