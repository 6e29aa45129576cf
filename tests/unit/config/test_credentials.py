"""Credentials in clear: no diagnostic and no plan shows them, wherever they stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gpufleet.findings.credentials import credentials, redacted
from gpufleet.findings.finding import show

from tests.unit.config.samples import compile_base, told

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("base", "changes"),
    [
        ("aks-operator", {"stack.values": {"toolkit": {"env": [{"name": "PASSWORD", "value": SECRET}]}}}),
        ("aks-operator", {"stack.values": {"dcgmExporter": {"env": [{"name": "API_KEY", "value": SECRET}]}}}),
        ("aks-operator", {"stack.values": {"driver": {"version": f"https://u:{SECRET}@h/x"}}}),
        ("aks-operator", {"stack.values": {"driver": {"repository": f"u:{SECRET}@h/x"}}}),
        ("aks-operator", {"stack.chart": {"repository": f"https://u:{SECRET}@h/charts"}}),
        ("aks-plugin", {"stack.hamiChart": {"repository": f"oci://u:{SECRET}@h/charts"}}),
        ("aks-plugin", {"stack.images": {"registry": f"u:{SECRET}@h/x"}}),
        ("aks-plugin", {"stack": f"plugin https://u:{SECRET}@h/x"}),
        ("existing-plugin", {"cluster.kubeconfig": {"users": [{"user": {"token": SECRET}}]}}),
        ("existing-plugin", {"cluster.kubeconfig": {"path": {"token": SECRET}}}),
        ("aks-plugin", {"pools[0].count": [{"password": SECRET}]}),
    ],
)
def test_nothing_shows_it(base: str, changes: dict[str, Any]) -> None:
    compiled = compile_base(base, changes)
    assert told(compiled), "it is an error wherever it stands"
    assert SECRET not in json.dumps([d.as_dict() for d in compiled.found])
    assert compiled.plan is None


@pytest.mark.parametrize(
    "text",
    [
        "nvidia/cuda:12.8.1@sha256:" + "0" * 64,
        "h:5000/nvidia/cuda@sha256:" + "0" * 64,
        "user@example.com",
        "sku=gpu:NoSchedule",
        "https://h:8443/charts",
    ],
)
def test_what_is_no_credential_is_shown_as_it_is(text: str) -> None:
    assert show(text) == text
    assert list(credentials({"image": text})) == []


def test_names_of_secrets_and_flags_are_no_credentials() -> None:
    values = {"imagePullSecrets": ["a"], "secretName": "b", "automountServiceAccountToken": True, "token": ""}
    assert redacted(values) == values
    assert list(credentials(values)) == []
