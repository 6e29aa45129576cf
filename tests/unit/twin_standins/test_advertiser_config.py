"""The advertiser reads the plugin's configuration as the plugin does: against recorded answers of plugin v0.20.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.advertiser import mig
from twin.advertiser.offer import Hardware, labels, resources
from twin.advertiser.plugin_config import ConfigError, read

RECORDED = Path(__file__).parents[1] / "device_plugin"
MOCK = Hardware(2, "A100-SXM4-40GB")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / name).read_text().splitlines()]


@pytest.mark.parametrize("row", rows("vectors.jsonl"), ids=lambda row: row["name"])
def test_recorded_answers(row: dict[str, Any]) -> None:
    node = Hardware(row["gpus"], "A100-SXM4-40GB", layout=mig.parse(row["mig"]))
    try:
        config = read(row["config"], row["env"])
        offered = resources(node, config)
    except ConfigError as error:
        assert f"reject-{error.stage}" == row["outcome"]
        return
    assert row["outcome"] == "accept"
    assert offered == row["capacity"]
    if row["strategy"]:
        assert config.strategy == row["strategy"]
    if row["labels_lost"]:
        with pytest.raises(ConfigError):
            labels(node, config)
        return
    shown = labels(node, config)
    for key, value in (row["labels"] or {}).items():
        assert shown[f"nvidia.com/{key}"] == value.removeprefix("Mock-"), key


def test_there_are_64_of_them() -> None:
    assert len(rows("vectors.jsonl")) == 64


@pytest.mark.parametrize(("strategy", "layout", "words"), [
    ("single", "0=1g.10gb", "same migEnabled value"), ("single", "0=1g.10gb,2g.20gb;1=1g.10gb", "more than one"),
    ("mixed", "0=1g.10gb;1=", "device 1 has an invalid MIG configuration"), ("mixed", "0=1c.3g.40gb", "patterns")])
def test_layouts_that_the_plugin_refuses(strategy: str, layout: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        mig.devices(2, mig.parse(layout), strategy)
    assert refused.value.stage == "devices"


def test_labels_under_mig() -> None:
    bad = labels(Hardware(2, "A100-SXM4-40GB", layout=mig.parse("0=1g.5gb")), read("flags: {migStrategy: single}"))
    assert bad["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB-MIG-INVALID"
    shared = read("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}")
    off = labels(Hardware(1, "A100-SXM4-40GB", layout=mig.parse("0=1g.5gb")), shared)
    assert (off["nvidia.com/gpu.replicas"], off["nvidia.com/gpu.product"]) == ("0", "NVIDIA-A100-SXM4-40GB")
    assert bad["nvidia.com/gpu.memory"] == "0"
    parents = labels(Hardware(1, "A100-SXM4-40GB", layout=mig.parse("0=1g.5gb+me,1g.5gb")),
                     read("flags: {migStrategy: mixed}"))
    assert {key: parents[f"nvidia.com/{key}"] for key in ("gpu.count", "gpu.replicas", "gpu.product")} == {
        "gpu.count": "1", "gpu.replicas": "0", "gpu.product": "NVIDIA-A100-SXM4-40GB"}
    assert parents["nvidia.com/mig-1g.5gb.me.product"] == "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me"
    single = labels(Hardware(1, "A100-SXM4-40GB", layout=mig.parse("0=1g.5gb")), read("flags: {migStrategy: single}"))
    assert (single["nvidia.com/gpu.replicas"], "nvidia.com/gpu.memory" in single) == ("1", False)
    media = read("flags: {migStrategy: mixed}\n"
                 "sharing: {timeSlicing: {resources: [{name: mig-1g.5gb.me, replicas: 2}]}}")
    assert resources(Hardware(1, "A100-SXM4-40GB", layout=mig.parse("0=1g.5gb+me")), media) == {
        "nvidia.com/mig-1g.5gb.me": 2}


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
