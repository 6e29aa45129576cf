"""Answers that were derived from the reference by hand, before the module was asked for them.

Two rows, an empty MIG GPU under `mixed` and a compute slice of an instance, follow the plugin's source
(NVIDIA/k8s-device-plugin internal/rm/device_map.go: assertAllMigDevicesAreValid, buildMigDeviceMap).
"""

from typing import Any

import pytest
from gpufleet.device_plugin import NodeLayout, parse_mig, predict

from tests.unit.device_plugin.cases import rows


@pytest.mark.parametrize("row", rows("reference_cases.jsonl"), ids=lambda r: r["name"])
def test_what_the_reference_says(row: dict[str, Any]) -> None:
    product = {"product": row["product"]} if "product" in row else {}
    node = NodeLayout(row["gpus"], mig=parse_mig(row.get("mig", "")), **product)
    found = predict(row["config"], node, env=row.get("env", {}))
    assert {key: getattr(found, key) for key in row["want"]} == row["want"]
