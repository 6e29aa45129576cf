"""The plugin's own answers, reproduced exactly."""

from typing import Any

import pytest
from gpufleet.device_plugin import NodeLayout, parse_mig, predict
from gpufleet.device_plugin.evaluate import _disable_renaming
from gpufleet.device_plugin.loader import load

from tests.unit.device_plugin.cases import rows

ANSWERS = ("outcome", "capacity", "strategy", "fail_gt1", "labels", "labels_lost", "ignored_fields_warned")


def test_all_64_are_here() -> None:
    assert len(rows("vectors.jsonl")) == 64


@pytest.mark.parametrize("row", rows("vectors.jsonl"), ids=lambda r: r["name"])
def test_vector(row: dict[str, Any]) -> None:
    found = predict(row["config"], NodeLayout(row["gpus"], mig=parse_mig(row["mig"])), env=row["env"])
    assert {k: getattr(found, k) for k in ANSWERS} == {k: row[k] for k in ANSWERS}


@pytest.mark.parametrize("row", rows("loader_cases.jsonl"), ids=lambda r: repr(r["config"])[-60:])
def test_loader_case(row: dict[str, Any]) -> None:
    """What Go's libraries load from a text: outcome, strategy, rows, flags in effect, warning."""
    env = row.get("env", {})
    found = predict(row["config"], NodeLayout(2), env=env)
    assert found.outcome == row["outcome"], found.reason
    if row["outcome"] != "accept":
        assert found.reason and found.faults and found.capacity is None and found.labels is None
        return
    config = load(row["config"]).config
    warned = _disable_renaming(config)
    assert found.strategy == row["strategy"]
    assert found.fail_gt1 == row["fail_gt1"]
    assert warned == row["warned"]
    assert found.settings["flags.migStrategy"] == row["mig_strategy"]
    assert [[r.name, r.rename, str(r.replicas)] for r in config.active.rows] == row["rows"]
