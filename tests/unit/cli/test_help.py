"""Every command's help: what it does, and examples that its parser takes."""

from __future__ import annotations

import shlex

import pytest
from gpufleet.cli.main import COMMANDS, _parser
from gpufleet.cli.main import main as gpufleet


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as done:
        gpufleet([*words, "--help"])
    assert done.value.code == 0
    return capsys.readouterr().out


def commands(line: str) -> list[list[str]]:
    """The calls of gpufleet in one example, without what is piped into them or taken from them."""
    parts = [shlex.split(part.split(">")[0].split("<")[0]) for part in line.split(" | ")]
    return [words[1:] for words in parts if words[:1] == ["gpufleet"]]


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_accepted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    help_text = shown(capsys, name)
    examples = [line.strip() for line in help_text.splitlines() if line.startswith("    ") and "gpufleet " in line]
    calls = [call for line in examples for call in commands(line) if call[0] == name]
    assert calls
    for call in calls:
        _parser(name).parse_args(call)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, name).splitlines()
    bare = [
        line.strip()
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("  -") and "  " not in line.strip() and not below.startswith("        ")
    ]
    assert bare == []
