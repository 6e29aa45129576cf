"""`gpufleet status`: exit codes, waiting, words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gpufleet.cli import status as command
from gpufleet.cli.main import main
from gpufleet.status import observe
from gpufleet.status.observe import ObservationError, Observed

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
    """A stack file in the working directory, and a cluster that gives the readings one after the other."""
    (tmp_path / "stack.yaml").write_text(stack_text(sections("existing-plugin", SHARED)))
    (tmp_path / "idc.conf").write_text("clusters: []\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUFLEET_KUBECONFIG", raising=False)
    now = [0.0]

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return now[0]

        @staticmethod
        def sleep(seconds: float) -> None:
            now[0] += seconds

    def give(*readings: Observed | ObservationError) -> list[float]:
        left = list(readings)

        class Fake:
            def __init__(self, data: dict[str, Any], context: str | None) -> None:
                assert (data, context) == ({"clusters": []}, None)

            def observe(self) -> Observed:
                answer = left.pop(0) if len(left) > 1 else left[0]
                if isinstance(answer, ObservationError):
                    raise answer
                return answer

        monkeypatch.setattr(observe, "Cluster", Fake)
        monkeypatch.setattr(command, "time", Clock)
        return now

    return give


def run(*words: str) -> int:
    try:
        return main(["status", "-f", "stack.yaml", *words])
    except SystemExit as stop:
        assert isinstance(stop.code, int)
        return stop.code


@pytest.mark.parametrize(
    ("readings", "wait", "code", "waited"),
    [
        ([RIGHT], "0", 0, 0),
        ([WRONG], "0", 1, 0),
        ([WRONG, WRONG, RIGHT], "10", 0, 1),
        ([WRONG], "2", 1, 2),
        ([ObservationError("gone")], "0", 2, 0),
        ([ObservationError("gone"), RIGHT], "5", 0, 0.5),
        ([ObservationError("gone")], "1", 2, 1),
        ([WRONG, ObservationError("gone")], "1", 2, 1),
    ],
)
def test_exit_code_says_whether_they_agree(
    cluster: Callable[..., list[float]], readings: Readings, wait: str, code: int, waited: float
) -> None:
    now = cluster(*readings)
    assert run("--wait", wait) == code
    assert now[0] == waited


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
