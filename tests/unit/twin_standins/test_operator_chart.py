"""The stand-in of the operator's chart: a strict schema, and selectors that keep the operands apart."""

from __future__ import annotations

import re

import pytest
from gpufleet.catalog.charts import GPU_OPERATOR, HAMI, chart_tables

from tests.unit.twin_standins.charts import Chart

CHART = Chart("gpu-operator")
VALUES = CHART.values
# objects whose content is Kubernetes' or another program's own
FREE = {"affinity", "startupProbe", "livenessProbe", "readinessProbe", "valueFrom", "relabelings[]", "extraObjects[]",
        "limits", "requests", "featureGates", "gpus", "computeDomains", "config"}


def test_every_level_is_closed() -> None:
    assert CHART.open_names() <= FREE
    closed_configs = {path for path, _ in CHART.objects() if path.endswith(".config")} - CHART.open_levels()
    assert closed_configs >= {".devicePlugin.config", ".migManager.config", ".dcgmExporter.config"}


@pytest.mark.parametrize(("stand_in", "chart"), [("gpu-operator", GPU_OPERATOR), ("hami", HAMI)])
def test_a_stand_in_has_no_value_that_the_real_chart_lacks(stand_in: str, chart: str) -> None:
    """Else a mistake that the product and its stand-in share would stay green."""
    known = chart_tables(chart)[0]
    ours = {path.lstrip(".") for path in Chart(stand_in).names() if "[]" not in path}
    assert {path for path in ours if not known.has(path) and path not in known.subcharts} == set()


def test_defaults_are_in_the_schema() -> None:
    assert CHART.missing() == []


def test_defaults_that_the_reference_names() -> None:
    assert VALUES["driver"]["version"] == "595.91.07"
    assert VALUES["mig"]["strategy"] == "single"
    assert (VALUES["operator"]["upgradeCRD"], VALUES["operator"]["cleanupCRD"]) == (True, False)
    assert VALUES["operator"]["runtimeClass"] == "nvidia"
    assert (VALUES["toolkit"]["version"], VALUES["devicePlugin"]["version"]) == ("v1.20.0", "v0.20.0")
    assert VALUES["daemonsets"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_operands_have_names_of_their_own() -> None:
    """Name is selector is pod label in the shared head, so distinct names keep the selectors distinct."""
    text = "".join(path.read_text() for path in sorted((CHART.folder / "templates").glob("*.yaml")))
    names = re.findall(r'"name" "((?:nvidia|gpu)-[a-z-]+)"', text)
    daemonsets = [name for name in names if not name.startswith("gpu-operator")]
    assert len(daemonsets) == len(set(daemonsets)) == 9
    head = (CHART.folder / "templates" / "_helpers.tpl").read_text()
    assert "matchLabels: {app: {{ .name }}}" in head
