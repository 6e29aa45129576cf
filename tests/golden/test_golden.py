"""What commands print for whole stacks, kept as files: each changed line of output is a line of a diff.

`pytest tests/golden --update` writes the files anew; then `git diff tests/golden` is what a reviewer reads.
"""

from __future__ import annotations

import difflib
import json
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from gpufleet.cli.main import COMMANDS, main

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SHIPPED = sorted(path.stem.removeprefix("Pulumi.") for path in ROOT.glob("stacks/Pulumi.*.yaml"))
SMALL = sorted(path.stem for path in HERE.glob("stacks/*.yaml"))
METHODS, ROUTES, PLACES = ("none", "timeslicing", "mps", "mig", "hami"), ("plugin", "operator"), ("aks", "existing")
MIRRORED = ("idc", "existing-operator-mirror", "existing-plugin-hami-mirror", "aks-plugin-timeslicing")
FROM_HOSTS = ("idc", "existing-operator-mirror")


@dataclass(frozen=True)
class Case:
    """One command on one stack, and the file that holds what it prints."""

    stack: str
    command: tuple[str, ...]
    file: str

    @property
    def shipped(self) -> bool:
        """One of the stacks that users get, rather than one of this folder."""
        return self.stack in SHIPPED


CASES = [
    *(Case(stack, ("plan",), f"{stack}.plan.txt") for stack in (*SHIPPED, *SMALL)),
    *(Case(stack, ("plan", "--json"), f"{stack}.plan.json") for stack in (*SHIPPED, *SMALL)),
    *(Case(stack, ("mirror-list",), f"{stack}.mirror-list.txt") for stack in MIRRORED),
    *(Case(stack, ("inventory", "--list"), f"{stack}.inventory.json") for stack in FROM_HOSTS),
]


class Day(date):
    """The day on which golden files are made: which driver branches are still supported depends on it."""

    @classmethod
    def today(cls) -> Day:
        return cls(2026, 12, 1)


def printed(case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints, without this machine's folders; a text ends with the exit status if it is not 0."""
    __import__(COMMANDS[case.command[0]][0])
    for name, module in list(sys.modules.items()):
        if name.startswith("gpufleet") and vars(module).get("date") is date:
            monkeypatch.setattr(module, "date", Day)
    monkeypatch.delenv("GPUFLEET_KUBECONFIG", raising=False)
    monkeypatch.chdir(ROOT if case.shipped else HERE / "stacks")
    option = ("-s", case.stack) if case.shipped else ("-f", f"{case.stack}.yaml")
    status = main([*case.command, *option])
    out, err = (text.replace(str(ROOT), "<checkout>") for text in capsys.readouterr())
    if case.file.endswith(".json"):
        document = json.loads(out)
        assert status == (0 if document.get("ok", True) else 1)
        return out
    return out + (f"--- on stderr\n{err}" if err else "") + (f"--- exit status {status}\n" if status else "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file)
def test_prints_what_it_printed(
    case: Case, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = HERE / "printed" / case.file
    now = printed(case, monkeypatch, capsys)
    if request.config.getoption("--update"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(now, encoding="utf-8")
    was = path.read_text(encoding="utf-8") if path.is_file() else ""
    if now != was:
        diff = difflib.unified_diff(was.splitlines(), now.splitlines(), "before", "now", lineterm="", n=1)
        told = f"tests/golden/printed/{case.file} differs. If that is meant: pytest tests/golden --update"
        pytest.fail("\n".join([told, *diff]), pytrace=False)


def test_each_method_on_each_route_and_place_is_here() -> None:
    wanted = {f"{place}-{route}-{method}" for place in PLACES for route in ROUTES for method in METHODS}
    assert wanted <= set(SMALL)


def test_each_golden_file_has_its_case(request: pytest.FixtureRequest) -> None:
    stale = {path.name for path in (HERE / "printed").iterdir()} - {case.file for case in CASES}
    if request.config.getoption("--update"):
        for name in stale:
            (HERE / "printed" / name).unlink()
    else:
        assert stale == set(), "pytest tests/golden --update removes them"


def test_nothing_that_is_printed_belongs_to_one_machine() -> None:
    for path in (HERE / "printed").iterdir():
        text = path.read_text(encoding="utf-8")
        assert str(ROOT) not in text and str(Path.home()) not in text, path.name
