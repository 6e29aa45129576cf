"""From text to values: one meaning per text, the line of every value, secrets out of sight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpufleet.compiled import compile_file, stack_name
from gpufleet.findings.path import join_path, split_path
from gpufleet.stackfile.source import SecretText, parse, read_file

from tests.unit.config.samples import compile_text, the_one, told
from tests.unit.config.text_cases import (
    CLUSTER,
    EXISTING,
    GOOD,
    NODES,
    POOLS,
    STACK,
    TEXT_CASES,
    TextCase,
    label,
    pool,
)


@pytest.mark.parametrize("case", TEXT_CASES, ids=str)
def test_the_wrong_text_says_this_and_nothing_else(case: TextCase) -> None:
    compiled = compile_text(case.wrong)
    assert told(compiled) == [(case.code, case.path)]
    found = the_one(compiled, case.code)
    assert found.line == case.line
    assert found.file == "stacks/Pulumi.test.yaml"
    if case.value is not None:
        assert found.value == case.value
    assert case.says in found.message + found.reason
    assert compiled.plan is None


@pytest.mark.parametrize("case", [c for c in TEXT_CASES if c.right], ids=str)
def test_the_nearest_right_text_plans(case: TextCase) -> None:
    compiled = compile_text(case.right or "")
    assert told(compiled) == []
    assert compiled.plan is not None


def _value(text: str) -> Any:
    source, read = parse(f"config: {{gpufleet:stack: {{a: {text}}}}}")
    assert read == []
    return source.data["stack"]["a"]


# What Pulumi 3.274.1 makes of the same plain scalars (`pulumi config --json`).
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("-5", -5),
        ("+5", 5),
        ("-0", 0),
        ("4.0", 4),
        ("1.", 1),
        (".5", 0.5),
        ("+1.5", 1.5),
        ("1.36", 1.36),
        ("1.30", 1.3),
        ("580.95", 580.95),
        ("580.95.05", "580.95.05"),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("~", None),
        ("Null", None),
        ("", None),
        ("=", "="),
        ('"4"', "4"),
        ("'yes'", "yes"),
        ("tRue", "tRue"),
        ("1.2.3.4", "1.2.3.4"),
    ],
)
def test_values_are_those_that_pulumi_sees(text: str, value: Any) -> None:
    got = _value(text)
    assert got == value
    assert type(got) is type(value)


def test_numbers_of_any_length_are_read() -> None:
    assert _value("9" * 18) == int("9" * 18)
    assert isinstance(_value("9" * 5000), float)


def test_lines_are_those_of_the_text() -> None:
    text = (
        "# first\n\nconfig:\n  azure-native:location: eastus\n  gpufleet:pools:\n    - name: a\n      labels:\n"
        "        x.io/y: z\n    - name: b\n      taints:\n        - a:NoSchedule\n"
    )
    lines = parse(text)[0].lines
    assert lines == {
        (): 3,
        ("pools",): 5,
        ("pools", 0): 6,
        ("pools", 0, "name"): 6,
        ("pools", 0, "labels"): 7,
        ("pools", 0, "labels", "x.io/y"): 8,
        ("pools", 1): 9,
        ("pools", 1, "name"): 9,
        ("pools", 1, "taints"): 10,
        ("pools", 1, "taints", 0): 11,
    }


def test_an_anchor_is_read_where_it_is_used() -> None:
    compiled = compile_text(
        "config:\n" + CLUSTER + STACK + "  gpufleet:pools:\n"
        "    - {name: a, vmSize: Standard_NC4as_T4_v3, labels: &team {team: vision}}\n"
        "    - {name: b, vmSize: Standard_NC4as_T4_v3, labels: *team}\n"
    )
    assert told(compiled) == []
    assert compiled.stack is not None
    assert [dict(p.labels) for p in compiled.stack.pools] == [{"team": "vision"}] * 2


def test_names_without_prefix_are_the_projects_own_as_for_pulumi() -> None:
    bare = GOOD.replace("gpufleet:", "")
    old = GOOD.replace("gpufleet:", "gpufleet:config:")
    assert told(compile_text(bare)) == told(compile_text(old)) == []
    assert compile_text(bare).stack == compile_text(old).stack == compile_text(GOOD).stack


def test_keys_of_other_namespaces_are_left_alone() -> None:
    text = GOOD + "  azure-native:location: eastus\n  kubernetes:clusterIdentifier: x\n  aws:region: 010\n"
    assert told(compile_text(text)) == []


def test_what_pulumi_keeps_beside_the_configuration_is_left_alone() -> None:
    before = "secretsprovider: passphrase\nencryptionsalt: v1:abc:v1:def\nenvironment:\n  - dev\n"
    assert told(compile_text(before + GOOD)) == []
    assert told(compile_text(GOOD + before)) == []


def test_a_misspelt_section_beside_the_right_one_is_not_read() -> None:
    text = GOOD + "  gpufleet:pool: [{name: other, vmSize: x}]\n"
    assert told(compile_text(text)) == [("GF101", "pool")]


def test_a_misspelt_section_is_still_checked() -> None:
    """The rest of the file is judged as if the key were right, so nothing is reported that only follows from it."""
    text = GOOD.replace("gpufleet:pools", "gpufleet:pool").replace("count: 1", "count: -1")
    assert told(compile_text(text)) == [("GF101", "pool"), ("GF105", "pools[0].count")]
    assert the_one(compile_text(text), "GF101").closest == "pools"
    assert the_one(compile_text(text), "GF105").line == 3
    text = GOOD.replace("gpufleet:pools", "gpuflet:pools").replace("count: 1", "count: -1")
    assert told(compile_text(text)) == [("GF003", ""), ("GF105", "pools[0].count")]


def test_a_secret_kubeconfig_is_a_marker() -> None:
    source, read = parse("config:\n  gpufleet:kubeconfig:\n    secure: v1:AAAA:BBBB\n")
    assert read == []
    assert isinstance(source.data["kubeconfig"], SecretText)
    assert "AAAA" not in repr(source)


@pytest.mark.parametrize("text", [t.wrong for t in TEXT_CASES if t.code in ("GF007", "GF008")])
def test_no_part_of_a_secret_is_shown(text: str) -> None:
    secret = text.replace("v1:abc", "s3cr3t").replace("token: x", "token: s3cr3t").replace("v1", "s3cr3t")
    assert "s3cr3t" not in repr([d.as_dict() for d in compile_text(secret).found])


def test_an_unknown_section_may_be_a_secret_and_stays_one() -> None:
    compiled = compile_text(GOOD + "  gpufleet:registryToken: {secure: v1:AAAA}\n")
    assert told(compiled) == [("GF101", "registryToken")]
    assert "AAAA" not in repr(compiled)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert told(compile_file(file)) == []


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_bytes(GOOD.encode("utf-16"))
    compiled = compile_file(file)
    assert told(compiled) == [("GF001", "")]
    assert "not UTF-8" in the_one(compiled, "GF001").reason
    assert the_one(compiled, "GF001").file == str(file)


def test_crlf_lines(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_bytes(pool("count: 010").replace("\n", "\r\n").encode())
    assert [(d.code, d.line) for d in compile_file(file).found] == [("GF004", 5)]


def test_no_file_raises_for_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "parts",
    [("pools", 1, "labels", "a.b/c"), ("a",), (), ("x", 0, 12, "y"), ("l", 'q"uo\\te'), ("é", "-"), ("a b", "c[0]")],
)
def test_paths_survive_being_written(parts: tuple[str | int, ...]) -> None:
    assert split_path(join_path(parts)) == parts


@pytest.mark.parametrize(
    ("file", "name"),
    [("Pulumi.aks-dev.yaml", "aks-dev"), ("Pulumi.a.b.yml", "a.b"), ("mine.yaml", "mine"), ("noext", "noext")],
)
def test_stack_names(file: str, name: str) -> None:
    assert stack_name(Path("stacks") / file) == name


def test_values_that_only_look_odd_are_fine() -> None:
    for text in ("a-b", "1.2.3", "0", "nvidia.com", "on-call", "year", "'2026-11-30'", "0.5x"):
        assert told(compile_text(label(text if text != "0" else '"0"'))) == []


def test_existing_cluster_with_secret_kubeconfig() -> None:
    text = "config:\n" + EXISTING + NODES + STACK + "  gpufleet:kubeconfig: {secure: v1:abc}\n"
    compiled = compile_text(text)
    assert compiled.plan is not None
    assert "secure" not in compiled.plan.as_json()


def test_order_of_sections_does_not_matter() -> None:
    assert compile_text("config:\n" + STACK + POOLS + CLUSTER).plan == compile_text(GOOD).plan
