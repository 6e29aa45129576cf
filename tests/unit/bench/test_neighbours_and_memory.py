"""One process beside neighbours of another class, and the memory probe, against the stand-in for the driver."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.bench.test_bench_run import FAST, bench

MIB = 1 << 20


@pytest.fixture
def shared(fake_gpu: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fake GPU's memory, 8 GiB, is that of all its processes together; a context takes 500 MiB."""
    (fake_gpu / "held").mkdir()
    monkeypatch.setenv("FAKE_GPU_SHARED", str(fake_gpu / "held"))
    monkeypatch.setenv("FAKE_GPU_MEMORY", str(8192 * MIB))
    monkeypatch.setenv("FAKE_GPU_CONTEXT", str(500 * MIB))
    return fake_gpu


def test_a_process_is_measured_alone_and_beside_neighbours(fake_gpu: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, _ = bench(
        *FAST, "--window", "1", "--workload", "inference", "--neighbour", "training,copy", "--processes", "2,3",
        "--repetitions", "2", "--output", file,
    )  # fmt: skip
    assert code == 0
    lines = [row for row in rows if row["kind"] == "beside"]
    assert [(r["neighbour"], r["n"], r["repetition"]) for r in lines] == [
        (other, n, repetition) for other in ("training", "copy") for repetition in (0, 1) for n in (2, 3)
    ]
    for row in lines:
        assert len(row["neighbours_beside"]) == len(row["neighbours_without"]) == row["n"] - 1
        assert row["beside"]["rate"] > 0
        # The fake GPU serves one at a time, a training step of 20 ms and a copy of a few ms.
        assert row["neighbour"] == "copy" or row["beside"]["rate"] < row["alone"]["rate"] / 2
        assert 0 < row["beside"]["p50_ms"] <= row["beside"]["p99_ms"]
        assert row["neighbours_unit"] == {"training": "steps/s", "copy": "copies/s"}[row["neighbour"]]
    assert [row for row in rows if row["kind"] == "point"] == []


def test_mps_limits_follow_the_number_of_processes(fake_gpu: Path, fake_smi: Path, fake_mps: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, _ = bench(
        *FAST, "--workload", "inference", "--neighbour", "notebook", "--method", "mps", "--processes", "1-3",
        "--repetitions", "1", "--output", file,
    )  # fmt: skip
    assert code == 0
    limits = [line for line in fake_mps.read_text().splitlines() if "pinned_mem" in line]
    assert limits == [f"set_default_device_pinned_mem_limit 0 {80000 // n}M" for n in (2, 3)]
    assert [row["n"] for row in rows if row["kind"] == "beside"] == [2, 3]


def memory_lines(folder: Path, *more: str) -> list[dict[str, object]]:
    code, rows, _ = bench("--window", "0.2", "--workload", "memory", *more, "--output", str(folder / "out.jsonl"))
    assert code == 0, rows[-1]
    return [row for row in rows if row["kind"] == "memory"]


def test_without_limits_one_process_takes_it_all_and_the_others_go_on(shared: Path) -> None:
    (row,) = memory_lines(shared, "--processes", "3")
    contexts = 3 * 500 + 1  # and the kernels' small results
    assert row["total_mib"] == [8192] * 3
    first, *others = row["taken_mib"]
    assert others == [256, 256]
    assert 8192 - contexts - 2 * 256 - 2 <= first <= 8192 - contexts - 2 * 256 + 2
    assert all("out of memory" in text for text in row["refused"])
    assert all(steps > 0 for steps in row["steps"])
    assert row["one_more"]["started"] is False and "out of memory" in row["one_more"]["reason"]
    assert row["again_mib"] == 1024 and row["again_refused"] is None
    assert "asking_more" not in row


def test_under_mps_limits_each_gets_its_part(shared: Path, fake_smi: Path, fake_mps: Path) -> None:
    (fake_smi / "used").write_text("0")
    (fake_smi / "total").write_text("8192")
    (row,) = memory_lines(shared, "--processes", "2", "--method", "mps")
    assert row["limit_mib"] == 4096
    assert row["total_mib"] == [8192, 8192]
    assert all(4096 - 504 <= taken <= 4096 - 500 for taken in row["taken_mib"])
    assert row["asking_more"]["asked_mib"] == 8192
    assert 4096 - 504 <= row["asking_more"]["taken_mib"] <= 4096 - 500


def test_memory_in_use_by_somebody_is_left_alone(shared: Path, fake_smi: Path) -> None:
    (fake_smi / "used").write_text("5000")
    code, rows, _ = bench("--workload", "memory", "--processes", "2", "--output", str(shared / "out.jsonl"))
    assert code == 1
    assert "5000 MiB of the GPU are in use" in rows[-1]["reason"]


def test_where_neighbours_have_no_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = ("--output", str(tmp_path / "o"))
    for words, said in (
        (("--workload", "memory", "--neighbour", "copy"), "no place beside workload 'memory'"),
        (("--neighbour", "command"), "neighbour 'command' is unknown; known: training"),
        (("--neighbour", "copy", "--processes", "1"), "numbers of processes above 1"),
        (("--neighbour", "copy", "--workload", "command"), "no place beside workload 'command'"),
    ):
        code, rows, _ = bench(*words, *file, "--", sys.executable) if "command" in words[-1:] else bench(*words, *file)
        assert (code, rows) == (2, [])
        assert said in capsys.readouterr().err
