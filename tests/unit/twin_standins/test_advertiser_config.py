"""The advertiser reads the plugin's configuration as the plugin does: against recorded answers of plugin v0.20.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.advertiser.offer import Hardware, labels, resources
from twin.advertiser.plugin_config import ConfigError, read

RECORDED = Path(__file__).parents[1] / "device_plugin"
MOCK = Hardware(2, "A100-SXM4-40GB")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / name).read_text().splitlines()]


WITHOUT_MIG = [row for row in rows("vectors.jsonl") if not row["mig"]]


@pytest.mark.parametrize("row", WITHOUT_MIG, ids=lambda row: row["name"])
def test_recorded_answers(row: dict[str, Any]) -> None:
    try:
        config = read(row["config"], row["env"])
    except ConfigError as error:
        assert f"reject-{error.stage}" == row["outcome"]
        return
    assert row["outcome"] == "accept"
    assert resources(MOCK, config) == row["capacity"]
    if row["strategy"]:
        assert config.strategy == row["strategy"]
    shown = labels(MOCK, config)
    for key, value in (row["labels"] or {}).items():
        assert shown[f"nvidia.com/{key}"] == value.removeprefix("Mock-"), key


def test_there_are_54_of_them() -> None:
    assert len(WITHOUT_MIG) == 54


@pytest.mark.parametrize(("replicas", "count"), [
    ("010", 16), ("0x10", 32), ("1_0", 20), ("08", 16), ("0b11", 6), ("0o17", 30), ("1e1", 20), ("4.0", 8)])
def test_yaml_1_1_numbers(replicas: str, count: int) -> None:
    text = f"sharing: {{timeSlicing: {{resources: [{{name: gpu, replicas: {replicas}}}]}}}}"
    assert resources(MOCK, read(text)) == {"nvidia.com/gpu": count}


def test_environment_beats_file_and_command_line_beats_both() -> None:
    text = "flags: {migStrategy: none, failOnInitError: true}"
    assert read(text, {"MIG_STRATEGY": "mixed"}).mig_strategy == "mixed"
    assert read(text, {"MIG_STRATEGY": "mixed"}, ["--mig-strategy=single"]).mig_strategy == "single"
    assert read(text, {}, ["--mig-strategy", "single"]).mig_strategy == "single"
    assert read(text, {"FAIL_ON_INIT_ERROR": "false"}).fail_on_init_error is False


def test_no_text_breaks_the_reader_and_few_are_read_differently() -> None:
    """Rows of the loader's own libraries. The reader is small on purpose: tags, merge keys and tabs differ."""
    differing = []
    for row in rows("loader_cases.jsonl"):
        try:
            read(row["config"], row.get("env") or {})
            outcome = "accept"
        except ConfigError as error:
            outcome = f"reject-{error.stage}"
        if outcome != row["outcome"]:
            differing.append(row["config"])
    assert len(differing) < 40, "\n".join(differing)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_arbitrary_text(text: str) -> None:
    try:
        read(text)
    except ConfigError as error:
        assert error.stage in ("parse", "flags")


def test_labels_of_models() -> None:
    plain = read("")
    assert labels(Hardware(1, "T4"), plain)["nvidia.com/gpu.product"] == "Tesla-T4"
    assert labels(Hardware(1, "H200"), plain)["nvidia.com/gpu.memory"] == "143771"
    assert labels(Hardware(1, "NoSuchGPU"), plain)["nvidia.com/gpu.product"] == "NVIDIA-NoSuchGPU"
    driver = labels(Hardware(1, "T4", "580.126.09"), plain)
    assert driver["nvidia.com/cuda.driver-version.full"] == "580.126.09"
    assert driver["nvidia.com/cuda.driver-version.revision"] == "09"
