"""Selectors of pools by labels that feature discovery writes (NVIDIA/k8s-device-plugin, internal/lm/resource.go)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.config.samples import compile_data
from tests.unit.lint.fleets import sections

PRODUCT, COUNT, REPLICAS = "nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.replicas"
CONFIG = {"nvidia.com/device-plugin.config": "s"}
TIMES4: dict[str, Any] = {"strategy": "timeSlicing", "replicas": 4}


@pytest.mark.parametrize("route", ["operator", "plugin"])
@pytest.mark.parametrize(
    ("sharing", "selector", "wrong", "right"),
    [
        (TIMES4, {PRODUCT: "Tesla-T4-SHARED"}, None, None),
        (TIMES4, {PRODUCT: "NVIDIA-A100-SXM4-80GB-SHARED"}, PRODUCT, "Tesla-T4"),
        ({**TIMES4, "renameByDefault": True}, {PRODUCT: "Tesla-T4"}, None, None),
        (TIMES4, {COUNT: "2"}, None, None),
        (TIMES4, {COUNT: "8"}, COUNT, "2"),  # the count stays that of the GPUs
        (TIMES4, {"nvidia.com/gpu.memory": "15109"}, None, None),  # an older driver's number
        (TIMES4, {"rack": "r7"}, None, None),
    ],
)
def test_selectors(route: str, sharing: dict[str, Any], selector: dict[str, str], wrong: str | None,
                   right: str | None) -> None:  # fmt: skip
    found = of(route, sharing, selector)
    if wrong is None:
        assert found == []
        return
    [(_, path, message)] = [one for one in found if one[0] == "GF434"]
    assert path == f'pools[0].nodeSelector["{wrong}"]'
    assert f"{wrong}={right}" in message


@pytest.mark.parametrize(
    ("selector", "right"),
    [({PRODUCT: "Tesla-T4"}, "Tesla-T4-SHARED"), ({REPLICAS: "1"}, "4"), ({PRODUCT: "Our-Name"}, "Tesla-T4-SHARED")],
)
def test_the_operators_feature_discovery_knows_of_sharing(selector: dict[str, str], right: str) -> None:
    [(code, _, message)] = of("operator", TIMES4, selector)
    assert code == "GF434" and message.endswith(f"={right}.")
    assert of("plugin", TIMES4, selector) == []  # whose feature discovery it is, and what it reads, nobody says


def of(route: str, sharing: dict[str, Any], selector: dict[str, str]) -> list[tuple[str, str, str]]:
    pool = {"name": "t4", "nodeSelector": {**selector, **(CONFIG if route == "operator" else {})}, "gpu": "T4",
            "gpusPerNode": 2, "sharing": "s", "driver": "operator" if route == "operator" else "host"}  # fmt: skip
    compiled = compile_data(sections(pool, route=route, sharing={"s": sharing}))
    return [(one.code, one.path, one.message) for one in compiled.found if one.severity.value == "error"]
