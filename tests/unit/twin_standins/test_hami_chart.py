"""The stand-in of HAMi's chart: a strict schema over the names that a program sets."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tests.unit.twin_standins.charts import Chart

CHART = Chart("hami")
# objects whose content is Kubernetes' own
FREE = {"limits", "requests", "securityContext", "extraEnvs"}


def accepts(values: dict[str, Any]) -> bool:
    return jsonschema.Draft7Validator(CHART.schema).is_valid(values)


def test_every_level_is_closed_and_knows_the_defaults() -> None:
    assert CHART.open_names() <= FREE
    assert CHART.missing() == []
    jsonschema.validate(CHART.values, CHART.schema)


@pytest.mark.parametrize("values", [
    {"devicePlugin": {"deviceSplitCount": 4, "deviceMemoryScaling": 1.5, "runtimeClassName": "nvidia"}},
    {"devicePlugin": {"nvidiaNodeSelector": {"gpu": "on"}, "tolerations": [{"key": "sku", "operator": "Exists"}]}},
    {"scheduler": {"admissionWebhook": {"manageNamespaceSelector": False, "whitelistNamespaces": ["kube-system"]}}},
    {"scheduler": {"kubeScheduler": {"image": {"registry": "mirror.example", "tag": "v1.36.3"}}}},
    {"scheduler": {"defaultSchedulerPolicy": {"nodeSchedulerPolicy": "spread", "gpuSchedulerPolicy": "binpack"}}},
    {"scheduler": {"service": {"type": "ClusterIP"}, "patch": {"tolerations": [{"operator": "Exists"}]}}},
    {"global": {"imageRegistry": "mirror.example", "imagePullSecrets": ["pull"]}, "fullnameOverride": "hami"},
])
def test_what_a_program_sets_is_known(values: dict[str, Any]) -> None:
    assert accepts(values)


@pytest.mark.parametrize("values", [
    {"devicePlugin": {"nvidianodeSelector": {"gpu": "on"}}}, {"devicePlugin": {"nodeSelector": {"gpu": "on"}}},
    {"devicePlugin": {"deviceSplitCount": "10"}}, {"devicePlugin": {"deviceSplitCount": 0}},
    {"devices": {"nvidia": {"deviceSplitCount": 10}}},  # its place from 2.11 on
    {"devicePlugin": {"nvidiaNodeSelector": {"gpu": True}}},  # `on` without quotes
    {"scheduler": {"kubeScheduler": {"imageTag": "v1.36.3"}}}, {"admissionWebhook": {"enabled": False}},
    {"devicePlugin": {"disablecorelimit": True}}, {"tolerations": []},
])
def test_what_the_real_chart_would_take_no_notice_of_is_refused(values: dict[str, Any]) -> None:
    assert not accepts(values)


def test_defaults_that_the_reference_names() -> None:
    plugin, scheduler = CHART.values["devicePlugin"], CHART.values["scheduler"]
    assert (plugin["deviceSplitCount"], plugin["deviceMemoryScaling"]) == (10, 1)
    assert plugin["nvidiaNodeSelector"] == {"gpu": "on"}
    assert (scheduler["service"]["schedulerPort"], scheduler["service"]["monitorPort"]) == (31998, 31993)
    assert scheduler["admissionWebhook"]["manageNamespaceSelector"] is True
    assert CHART.values["resourceName"] == "nvidia.com/gpu"
