"""`gpufleet status`: exit codes, waiting, words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gpufleet.cli import status as command
from gpufleet.cli.main import main
from gpufleet.status import observe
from gpufleet.status.observe import ObservationError
from gpufleet.status.observed import Observed

from tests.unit.config.samples import compile_base, sections, stack_text
from tests.unit.config.test_together import TEN_AKS
from tests.unit.status.test_compare import SHARED, arrived, node

PLAN = compile_base("existing-plugin", SHARED).plan
assert PLAN is not None
RIGHT = arrived(PLAN)
WRONG = node(RIGHT, allocatable={})

Readings = list[Observed | ObservationError]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """A stack file in the working directory, and a cluster that gives the readings; how long it was asked to wait."""
    (tmp_path / "stack.yaml").write_text(stack_text(sections("existing-plugin", SHARED)))
    (tmp_path / "idc.conf").write_text("clusters: []\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUFLEET_KUBECONFIG", raising=False)

    def give(*readings: Observed | ObservationError) -> list[float]:
        waited: list[float] = []

        class Fake:
            def __init__(self, data: dict[str, Any], context: str | None, say: Callable[[str], None]) -> None:
                assert (data, context, say) == ({"clusters": []}, None, command.say)

            def readings(self, seconds: float) -> Iterator[Observed | ObservationError]:
                waited.append(seconds)
                yield from readings

        monkeypatch.setattr(observe, "Cluster", Fake)
        return waited

    return give


def run(*words: str) -> int:
    try:
        return main(["status", "-f", "stack.yaml", *words])
    except SystemExit as stop:
        assert isinstance(stop.code, int)
        return stop.code


@pytest.mark.parametrize(
    ("readings", "code"),
    [
        ([RIGHT], 0),
        ([WRONG], 1),
        ([WRONG, WRONG, RIGHT], 0),
        ([RIGHT, WRONG], 0),
        ([ObservationError("gone")], 2),
        ([ObservationError("gone"), RIGHT], 0),
        ([WRONG, ObservationError("gone")], 2),
        ([ObservationError("gone"), WRONG], 1),
    ],
)
def test_exit_code_says_whether_they_agree(cluster: Callable[..., list[float]], readings: Readings, code: int) -> None:
    """The first reading that agrees ends the wait; without one the last reading counts."""
    waited = cluster(*readings)
    assert run("--wait", "10") == code
    assert waited == [10]


def test_in_words(cluster: Callable[..., list[float]], capsys: pytest.CaptureFixture[str]) -> None:
    cluster(WRONG)
    run()
    out = capsys.readouterr()
    assert "n1: offers nvidia.com/gpu: 0 instead of 2" in out.out
    assert out.err == ""


def test_as_json(cluster: Callable[..., list[float]], capsys: pytest.CaptureFixture[str]) -> None:
    cluster(WRONG)
    assert run("--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["agrees"], document["nodes"][0]["node"]) == (False, "n1")


def test_a_cluster_that_cannot_be_read(cluster: Callable[..., list[float]], capsys: pytest.CaptureFixture[str]) -> None:
    cluster(ObservationError("the API server does not answer: ConnectionRefusedError"))
    assert run() == 2
    out = capsys.readouterr()
    assert (out.out, out.err) == ("", "gpufleet: the API server does not answer: ConnectionRefusedError\n")


def test_without_kubeconfig(cluster: Callable[..., list[float]], capsys: pytest.CaptureFixture[str]) -> None:
    cluster(RIGHT)
    Path("idc.conf").unlink()
    assert run() == 2
    assert "idc.conf cannot be read: No such file or directory" in capsys.readouterr().err
    assert run("--kubeconfig", "nowhere") == 2
    assert "nowhere cannot be read" in capsys.readouterr().err


def test_a_stack_file_with_errors(cluster: Callable[..., list[float]], capsys: pytest.CaptureFixture[str]) -> None:
    cluster(RIGHT)
    Path("stack.yaml").write_text(TEN_AKS)
    assert run() == 2
    assert "the stack file has errors" in capsys.readouterr().err


WRONG_USES = [("--wait", "x"), ("--wait",), ("--wait=-1",), ("--wait=nan",), ("--wait=inf",), ("--nope",)]


@pytest.mark.parametrize("words", WRONG_USES)
def test_wrong_usage(cluster: Callable[..., list[float]], words: tuple[str, ...]) -> None:
    cluster(RIGHT)
    assert run(*words) == 2
