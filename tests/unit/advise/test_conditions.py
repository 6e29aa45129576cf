"""Figures are given for the kind of work that was measured, and for no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gpufleet.cli.main import main
from gpufleet.measure.conditions import FAR, memory_gib
from gpufleet.measure.measurements import measurements

H200 = ("--gpu", "H200", "--users", "4")


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    """The advice as a document and as text."""
    assert main(["advise", *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert main(["advise", *words]) == 0
    return document, capsys.readouterr().out


def lines(path: Path, *points: tuple[int, float], memory: float | None = 2000.0, **more: Any) -> Path:
    """A bench of the user's own command on an H200."""
    base = {"workload": "command", "backend": "command", "method": "timeSlicing"}
    rows: list[dict[str, Any]] = [
        {"kind": "conditions", "date": "2026-12-03", "cpus": 8,
         "gpu_state": {"name": "NVIDIA H200", "driver_version": "580.1"}},
        {"kind": "group", **base, "processes": 1, "device": {}, "sizes": {}, "memory_mib_per_process": memory},
    ]  # fmt: skip
    rows += [
        {"kind": "point", **base, "unit": "steps/s", "n": n, "total": total, "per_process": [total / n] * n,
         "p50_ms": 5.0, "p99_ms": 6.0, "samples": 9, **(more if n == 1 else {})}
        for n, total in points
    ]  # fmt: skip
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


BUSY = {"activity": {"gpu": 0.54, "sm": 0.41, "dram": 0.42}}


def test_rp_69_a_model_of_30_gib_gets_no_figures_of_a_small_encoder(capsys: pytest.CaptureFixture[str]) -> None:
    found, text = ask(capsys, *H200, "--workload", "inference", "--memory", "30")
    assert found["expected"] is None
    assert "inference was measured with 0.9 GiB per process (BERT-base-size" in found["unmeasured"]
    assert "30 GiB is another kind of work" in found["unmeasured"]
    assert found["measure"][0].startswith(
        "gpufleet bench --processes 1 --window 15 --repetitions 4 --output mine.jsonl"
    )
    assert found["measure"][1] == "gpufleet advise --profile mine.jsonl --gpu H200 --memory 30 --users 4"
    first, *rest = text.splitlines()
    assert first.startswith("not measured: inference was measured with") and "until then:" in rest
    for word in ("of a GPU of its own", "p99", "steps/s"):
        assert word not in text


@pytest.mark.parametrize("workload", ["training", "inference", "copy"])
@pytest.mark.parametrize("bound", [(), ("--slowdown", "3"), ("--latency", "50")])
def test_rp_69_every_class_keeps_to_the_size_it_was_measured_with(
    workload: str, bound: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    measured = memory_gib(measurements(), "H200", workload)
    assert measured is not None
    for memory in (measured * FAR * 1.05, measured / FAR * 0.95):
        found, _ = ask(capsys, *H200, "--workload", workload, "--memory", f"{memory:.3f}", *bound)
        assert found["expected"] is None and "another kind of work" in found["unmeasured"]
    near, _ = ask(capsys, *H200, "--workload", workload, "--memory", f"{measured * 2:.3f}")
    assert near["unmeasured"] is None


def test_a_notebooks_memory_lies_still(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = ask(capsys, *H200, "--workload", "notebook", "--memory", "20")
    assert found["expected"] is not None and found["unmeasured"] is None


def test_one_process_alone_is_enough_of_a_profile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = lines(tmp_path / "mine.jsonl", (1, 211.0), **BUSY)
    found, text = ask(capsys, "--profile", str(path), "--gpu", "H200", "--memory", "2", "--users", "8")
    assert found["unmeasured"] is None
    e = found["expected"]
    assert not e["measured"] and e["totalLow"] < e["total"] < e["totalHigh"]
    assert "predicted from what one process does alone: a step of 4.74 ms, 2.56 ms of it on the GPU" in found["basis"]
    assert "(fills 78% of the GPU)" in found["basis"]
    assert "between" in text


def test_one_process_alone_without_the_gpus_figures_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = lines(tmp_path / "mine.jsonl", (1, 211.0))
    found, _ = ask(capsys, "--profile", str(path), "--gpu", "H200", "--memory", "2", "--users", "8")
    assert found["expected"] is None and "without how busy it keeps the GPU" in found["unmeasured"]


def test_what_was_measured_with_several_comes_before_what_is_predicted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = lines(tmp_path / "mine.jsonl", (1, 211.0), (2, 290.0), (4, 400.0), **BUSY)
    found, _ = ask(capsys, "--profile", str(path), "--gpu", "H200", "--memory", "2", "--users", "4", "--slowdown", "9")
    assert found["expected"]["measured"] and found["expected"]["total"] == 400.0


def test_a_profile_of_another_size_is_questioned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = lines(tmp_path / "mine.jsonl", (1, 211.0), **BUSY)
    found, _ = ask(capsys, "--profile", str(path), "--gpu", "H200", "--memory", "30", "--users", "4")
    assert any("the measured process had 2.0 GiB, the pods are to have 30 GiB" in note for note in found["notes"])


DCGM = ("--step", "4.74", "--gpu-active", "54")


def test_dcgms_figures_answer_without_a_bench(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*DCGM, "--sm-active", "41", "--dram-active", "42", *H200, "--memory", "30")
    found, _ = ask(capsys, *words)
    assert found["expected"] is not None and found["request"]["alone"]["gpuMs"] == pytest.approx(2.56, abs=0.01)
    assert found["request"]["alone"]["fills"] == pytest.approx(42 / 54)
    late, _ = ask(capsys, *words, "--latency", "20")
    assert late["expected"] is None and "a p99 is not predicted" in late["basis"]
    assert "--method timeSlicing,mps --processes 1,2,4 " in late["measure"][0]


def test_what_ones_own_program_does_comes_before_its_class(capsys: pytest.CaptureFixture[str]) -> None:
    """Two programs of one class need the GPU for different parts of a step, and so gain differently."""
    words = (*H200, "--workload", "inference", "--memory", "2")
    gains = []
    for gpu, sm in (("15", "5"), ("60", "50")):
        found, _ = ask(capsys, *words, "--step", "2.5", "--gpu-active", gpu, "--sm-active", sm)
        assert found["basis"].startswith("predicted from what one process does alone")
        gains.append(found["expected"]["gain"])
    assert gains[0] > 1.2 * gains[1]
    of_class, _ = ask(capsys, *H200, "--workload", "inference", "--memory", "2")
    assert any("figures of one program of its class" in note for note in of_class["notes"])


def test_a_program_of_ones_own_gets_no_neighbours_of_a_class(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*H200, "--workload", "inference", "--memory", "2", "--slowdown", "4")
    assert ask(capsys, *words)[0]["neighbours"]
    assert ask(capsys, *DCGM, *words)[0]["neighbours"] == []


def test_dcgms_figures_on_a_gpu_whose_costs_of_sharing_are_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = ask(capsys, *DCGM, "--gpu", "A100-SXM4-80GB", "--memory", "8", "--users", "4")
    assert found["expected"] is None and "nothing was measured for command" in found["unmeasured"]
    assert "--processes 1,2,4,8" in found["measure"][0]


def test_fewer_users_need_no_further_gpu_by_a_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    for active in ("20", "54", "95"):
        gpus = []
        for users in range(1, 18):
            words = ("--step", "4.74", "--gpu-active", active, "--sm-active", "10", "--gpu", "H200", "--memory", "4")
            found, _ = ask(capsys, *words, "--users", str(users))
            gpus.append(found["gpus"])
        assert gpus == sorted(gpus)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--step", "5"), "--step and --gpu-active belong together"),
        (("--sm-active", "5"), "--step and --gpu-active belong together"),
        (("--step", "0", "--gpu-active", "5"), "--step 0 is not a number above 0"),
        (("--step", "5", "--gpu-active", "0"), "--gpu-active 0 is not a part in percent"),
        (("--step", "5", "--gpu-active", "5", "--dram-active", "101"), "--dram-active 101"),
        (("--step", "nan", "--gpu-active", "5"), "--step nan"),
    ],
)
def test_half_of_what_one_process_does_is_wrong_use(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", *words, *H200, "--memory", "4"]) == 2
    assert why in capsys.readouterr().err


def test_pods_that_do_not_fit_twice_are_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """The reason for a card of 16 GB and pods of 8 GiB is the memory, not what another GPU gained."""
    found, _ = ask(capsys, "--gpu", "T4", "--workload", "inference", "--memory", "8", "--users", "4")
    assert found["basis"] == "two pods of 8 GiB do not fit into the 14.9 GiB of one GPU"
    for method in ("timeSlicing", "mps", "hami"):
        assert found["notOthers"][method] == found["basis"]
    assert found["unmeasured"] is None
    one, _ = ask(capsys, "--gpu", "T4", "--workload", "inference", "--memory", "8", "--users", "1")
    assert one["basis"] == "there is one pod"
