"""What the engine hands over gives the same model as the file's text, and never a secret in clear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gpufleet.compiled import compile_engine, compile_file
from gpufleet.stackfile.source import SecretText, from_engine, parse

from tests.unit.config.samples import BASES, REMOVE, compile_data, compile_text, sections, stack_text, told
from tests.unit.config.text_cases import GOOD, TEXT_CASES, pool

STACKS = sorted(Path(__file__).parents[3].joinpath("stacks").glob("Pulumi.*.yaml"))


def as_engine(data: dict[str, Any]) -> dict[str, str]:
    """Values as the program gets them: objects as JSON, other scalars as text."""
    return {f"gpufleet:{k}": v if isinstance(v, str) else json.dumps(v) for k, v in data.items()}


@pytest.mark.parametrize("file", STACKS, ids=lambda p: p.stem)
def test_shipped_stacks_give_the_same_model(file: Path) -> None:
    data = dict(parse(file.read_text())[0].data)
    engine = compile_engine("x", as_engine(data), frozenset(), file, f"{file.parent.name}/{file.name}")
    text = compile_file(file, "x", f"{file.parent.name}/{file.name}")
    assert engine.stack == text.stack
    assert engine.plan == text.plan
    assert engine.found == text.found
    assert engine.plan is not None


@pytest.mark.parametrize("base", BASES)
def test_without_a_file(base: str) -> None:
    """`--config` alone, or a program run by the Automation API: no lines, the same model."""
    engine = compile_engine("test", as_engine(sections(base)), frozenset(), None)
    assert engine.plan == compile_text(stack_text(sections(base))).plan
    assert told(compile_engine("test", {}, frozenset(), None)) == [("GF002", "")]


def test_values_of_the_engine_count_and_lines_come_from_the_file(tmp_path: Path) -> None:
    """As with `pulumi up --config gpufleet:...`: the file is not what is deployed."""
    file = tmp_path / "stacks" / "Pulumi.x.yaml"
    file.parent.mkdir()
    file.write_text(pool("count: 1"))
    data = sections("aks-plugin", {"pools[0].count": -1})
    found = compile_engine("x", as_engine(data), frozenset(), file, "stacks/Pulumi.x.yaml").found
    assert [(d.code, d.path, d.value, d.file, d.line) for d in found] == [
        ("GF105", "pools[0].count", "-1", "stacks/Pulumi.x.yaml", 5)
    ]


@pytest.mark.parametrize("case", [c for c in TEXT_CASES if c.code in ("GF003", "GF004", "GF005", "GF006")], ids=str)
def test_what_only_the_text_shows_is_reported_too(case: Any, tmp_path: Path) -> None:
    """The engine has resolved octal numbers, repeated keys and tags before the program sees the values."""
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(case.wrong)
    engine = compile_engine("x", as_engine(dict(parse(GOOD)[0].data)), frozenset(), file)
    assert (case.code, case.path) in told(engine)
    assert engine.plan is None


def test_a_mistyped_prefix_is_reported_once_and_read(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(GOOD.replace("gpufleet:pools", "gpufleeet:pools"))
    engine = as_engine(dict(parse(GOOD)[0].data))
    engine["gpufleeet:pools"] = engine.pop("gpufleet:pools")
    assert told(compile_engine("x", engine, frozenset(), file)) == [("GF003", "")]


def test_other_namespaces_are_not_read() -> None:
    config = {**as_engine(sections("aks-plugin")), "azure-native:location": "eastus", "kubernetes:kubeconfig": "x"}
    assert from_engine(config, frozenset(), None).data == sections("aks-plugin")


def test_text_that_is_no_json_stays_text() -> None:
    assert told(compile_engine("x", {"gpufleet:cluster": "prod"}, frozenset(), None)) == [
        ("GF102", "stack"),
        ("GF104", "cluster"),
        ("GF102", "pools"),
    ]


def test_secrets_stay_out_of_sight(tmp_path: Path) -> None:
    """The engine decrypts secrets for the program; nothing of them may reach a message."""
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(pool("count: {secure: v1:abc}") + "  gpufleet:kubeconfig: {secure: v1:def}\n")
    data = sections("aks-plugin", {"pools[0].count": "s3cr3t"})
    config = {**as_engine(data), "gpufleet:kubeconfig": "s3cr3t"}
    secrets = frozenset({"gpufleet:pools", "gpufleet:kubeconfig"})
    source = from_engine(config, secrets, file)
    assert isinstance(source.data["kubeconfig"], SecretText)
    engine = compile_engine("x", config, secrets, file)
    assert told(engine) == [("GF008", "pools[0].count")]
    assert "s3cr3t" not in repr(source) + repr(engine)


def test_a_secret_section_without_a_file_is_not_shown() -> None:
    config = {**as_engine(sections("aks-plugin")), "gpufleet:stack": '{"kind": "s3cr3t"}'}
    engine = compile_engine("x", config, frozenset({"gpufleet:stack"}), None)
    assert told(engine) == [("GF008", "stack")]
    assert "s3cr3t" not in repr(engine)


def test_a_kubeconfig_that_is_no_secret_is_refused() -> None:
    data = sections("existing-plugin", {"cluster.kubeconfig": {"secret": True}})
    config = {**as_engine(data), "gpufleet:kubeconfig": "apiVersion: v1"}
    refused = compile_engine("x", config, frozenset(), None)
    assert told(refused) == [("GF007", "kubeconfig")]
    assert "apiVersion" not in repr(refused.found)
    accepted = compile_engine("x", config, frozenset({"gpufleet:kubeconfig"}), None)
    assert told(accepted) == []


def test_data_without_text_is_judged_alike() -> None:
    wrong = {"pools[0].vmSize": REMOVE, "stack.kind": "plugins"}
    data = sections("aks-plugin", wrong)
    assert sorted(told(compile_data(data))) == sorted(told(compile_text(stack_text(data))))
