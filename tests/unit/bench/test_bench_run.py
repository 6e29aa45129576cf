"""The whole bench against a stand-in for the driver library: real processes, real ctypes calls."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from gpufleet.bench import options
from gpufleet.bench.pool import Pool
from gpufleet.bench.worker import setup_message
from gpufleet.measure.workloads import Sizes


def bench(*arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    parser = argparse.ArgumentParser()
    options.add_arguments(parser)
    out = io.StringIO()
    path = Path(arguments[arguments.index("--output") + 1])
    code = options.execute(parser.parse_args(arguments), out)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return code, rows, out.getvalue()


def points(rows: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == "point" and row["n"] == n]


FAST = ("--backend", "driver", "--window", "0.4", "--warm-up", "0.05")


def test_saturating_processes_share_the_gpu(fake_gpu: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, text = bench(
        *FAST, "--workload", "training", "--processes", "1,2", "--repetitions", "2", "--output", file
    )
    assert code == 0
    assert [row["kind"] for row in rows][:2] == ["conditions", "group"]
    assert len(points(rows, 1)) == len(points(rows, 2)) == 2
    for point in points(rows, 1) + points(rows, 2):
        assert len(point["per_process"]) == point["n"]
        assert min(point["per_process"]) > 0
        assert point["total"] == pytest.approx(sum(point["per_process"]), rel=1e-3)
        assert 0 < point["p50_ms"] <= point["p99_ms"]
    group = rows[1]
    assert group["device"]["gpu"] == "Fake GPU"
    assert group["processes"] == 2
    assert "training driver timeSlicing (steps/s" in text


def test_small_kernels_are_sized_by_the_calibration(fake_gpu: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    _, rows, _ = bench(*FAST, "--workload", "inference", "--processes", "2", "--repetitions", "1", "--output", file)
    calibration = rows[1]["device"]["calibration"]
    assert set(calibration) == {"multiprocessors", "full_rounds_per_ms", "small_rounds_per_us"}
    assert min(calibration.values()) > 0
    assert len(points(rows, 2)[0]["per_process"]) == 2


def test_the_copy_is_checked_and_measured(fake_gpu: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, _ = bench(*FAST, "--workload", "copy", "--processes", "1", "--repetitions", "1", "--output", file)
    assert code == 0
    assert points(rows, 1)[0]["total"] > 0
    assert points(rows, 1)[0]["unit"] == "copies/s"


def test_a_graph_is_the_same_request_queued_with_one_call(fake_gpu: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, _ = bench(*FAST, "--workload", "graph", "--processes", "1", "--repetitions", "1", "--output", file)
    assert code == 0 and points(rows, 1)[0]["total"] > 0
    assert points(rows, 1)[0]["unit"] == "requests/s"


def test_the_decoder_reads_a_cache_of_the_size_that_was_asked_for(fake_gpu: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, text = bench(
        *FAST, "--workload", "decoder", "--cache", "0.01", "--processes", "1", "--repetitions", "1", "--output", file
    )
    assert code == 0
    assert rows[1]["sizes"]["cache_gib"] == 0.01 and "read 0.01 GiB together, then 2 ms host time" in text
    assert 0 < points(rows, 1)[0]["total"] < 500  # 2 ms of host time


def test_one_process_alone_has_a_window_of_its_own(fake_gpu: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    _, rows, _ = bench(
        *FAST, "--workload", "training", "--processes", "1,2", "--repetitions", "1", "--alone", "0.2", "--output", file
    )
    assert [p["window_s"] for p in points(rows, 1) + points(rows, 2)] == [0.2, 0.4]


def test_the_gpus_own_figures_are_read_while_one_process_works_alone(fake_gpu: Path, fake_smi: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, text = bench(
        *FAST, "--workload", "training", "--processes", "1,2", "--repetitions", "1", "--alone", "4", "--output", file
    )
    assert code == 0
    assert points(rows, 1)[0]["activity"] == {"gpu": 0.54, "sm": 0.41, "dram": 0.42}
    assert "activity" not in points(rows, 2)[0]
    assert "alone: the GPU works 54% of the time, SMs 41%, memory 42%" in text


def test_a_process_that_does_not_fit_is_named_and_the_others_stay(fake_gpu: Path) -> None:
    setup = setup_message("training", "driver", Sizes(), 0)
    small = {"FAKE_GPU_MEMORY": str(16 << 10)}  # the kernel's output takes 4 x 8 x 256 x 4 bytes = 32 KiB
    with Pool(3, setup, [{}, small, {}]) as pool:
        assert pool.ready == 2
        assert pool.failure is not None and "cuMemAlloc_v2: out of memory (2)" in pool.failure
        assert len(pool.run(2, 0.1, 0.0)) == 2


def test_when_not_even_one_fits_the_group_fails(fake_gpu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GPU_MEMORY", str(16 << 10))
    file = str(fake_gpu / "out.jsonl")
    code, rows, text = bench(
        *FAST, "--workload", "training", "--processes", "1", "--repetitions", "1", "--output", file
    )
    assert code == 1
    assert rows[-1]["kind"] == "failed"
    assert "failed: training timeSlicing:" in text


def test_a_rejected_kernel_shows_the_compilers_log(fake_gpu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GPU_BAD_PTX", "1")
    file = str(fake_gpu / "out.jsonl")
    _, rows, _ = bench(*FAST, "--workload", "training", "--processes", "1", "--repetitions", "1", "--output", file)
    assert "ptxas fatal: unresolved" in rows[-1]["reason"]


def test_no_gpu_is_one_sentence_and_no_traceback(fake_gpu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GPU_NONE", "1")
    file = str(fake_gpu / "out.jsonl")
    code, rows, text = bench(*FAST, "--workload", "training", "--processes", "1", "--output", file)
    assert code == 1
    assert "no CUDA-capable device is detected" in rows[-1]["reason"]
    assert "Traceback" not in text


def test_points_past_the_time_limit_are_skipped_and_counted(fake_gpu: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    _, rows, text = bench(
        *FAST,
        "--workload",
        "training",
        "--processes",
        "1",
        "--repetitions",
        "3",
        "--time-limit",
        "0.1",
        "--output",
        file,
    )
    assert [row["kind"] for row in rows if row["kind"] == "skipped"] == ["skipped"] * 3
    assert "skipped: 3 points" in text


def test_mps_gets_the_plugins_limits_and_is_stopped(
    fake_gpu: Path, fake_smi: Path, fake_mps: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, _ = bench(
        *FAST, "--workload", "training", "--method", "mps", "--processes", "1,2", "--repetitions", "1", "--output", file
    )
    assert code == 0
    log = fake_mps.read_text().splitlines()
    assert "set_default_active_thread_percentage 50" in log
    assert "set_default_device_pinned_mem_limit 0 40000M" in log
    assert log.count("quit") == log.count("end") == 2
    starts = [line.split() for line in log if line.startswith("start")]
    assert all(not Path(pipe).exists() and not Path(f"/proc/{pid}").exists() for _, pid, pipe in starts)
    assert len(points(rows, 1)) == len(points(rows, 2)) == 1
    # The same work under every limit: sized once, on the GPU without limits.
    calibrations = [row["device"]["calibration"] for row in rows if row["kind"] == "group"]
    assert len(calibrations) == 2 and calibrations[0] == calibrations[1]
    calls = (fake_smi / "calls").read_text()
    assert "-mig" not in calls and "--set-timeslice" not in calls and " -c " not in calls


def test_mps_that_does_not_start_says_why_and_time_slicing_is_still_measured(
    fake_gpu: Path, fake_mps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MPS_FAILS", "1")
    file = str(fake_gpu / "out.jsonl")
    code, rows, _ = bench(
        *FAST, "--workload", "training", "--method", "mps,timeSlicing", "--processes", "1", "--repetitions", "1",
        "--output", file,
    )  # fmt: skip
    assert code == 1
    assert "no permission" in next(row for row in rows if row["kind"] == "failed")["reason"]
    assert points(rows, 1)[0]["method"] == "timeSlicing"


def test_set_time_slices_are_measured_one_after_the_other_and_put_back(fake_gpu: Path, fake_smi: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, _ = bench(
        *FAST, "--workload", "training", "--processes", "1", "--repetitions", "1", "--allow-settings",
        "--time-slice", "short,long", "--output", file,
    )  # fmt: skip
    assert code == 0
    assert [row["time_slice"] for row in points(rows, 1)] == ["short", "long"]
    calls = [line for line in (fake_smi / "calls").read_text().splitlines() if "--set-timeslice" in line]
    assert [call.split()[-1] for call in calls] == ["1", "0", "3", "0"]


def test_mig_instances_get_one_process_each_and_are_removed(fake_gpu: Path, fake_smi: Path) -> None:
    file = str(fake_gpu / "out.jsonl")
    code, rows, _ = bench(
        *FAST, "--workload", "training", "--method", "mig", "--mig", "1g.18gb", "--processes", "1,2",
        "--repetitions", "1", "--allow-settings", "--output", file,
    )  # fmt: skip
    assert code == 0
    assert {row["device"]["gpu"] for row in rows if row["kind"] == "group"} == {"MIG-0"}
    assert [(row["n"], row["profile"]) for row in rows if row["kind"] == "point"] == [(1, "1g.18gb"), (2, "1g.18gb")]
    made = [line for line in (fake_smi / "calls").read_text().splitlines() if "-cgi" in line]
    assert made == ["mig -i 0 -cgi 1g.18gb -C", "mig -i 0 -cgi 1g.18gb,1g.18gb -C"]
    assert (fake_smi / "mig").read_text() == "Disabled" and (fake_smi / "instances").read_text() == ""


def test_a_command_is_counted_by_its_output_lines(tmp_path: Path) -> None:
    script = "import time\nfor i in range(10**6):\n    print('step', i, flush=True)\n    time.sleep(0.02)"
    file = str(tmp_path / "out.jsonl")
    code, rows, _ = bench(
        "--workload", "command", "--step-pattern", r"^step \d", "--processes", "1,2", "--repetitions", "1",
        "--window", "0.5", "--warm-up", "0.1", "--output", file, "--", sys.executable, "-c", script,
    )  # fmt: skip
    assert code == 0
    for point in points(rows, 1) + points(rows, 2):
        assert all(0 < rate <= 51 for rate in point["per_process"])  # a step takes 20 ms at least


def test_a_command_that_fails_is_reported_with_its_last_words(tmp_path: Path) -> None:
    file = str(tmp_path / "out.jsonl")
    code, rows, _ = bench(
        "--workload", "command", "--processes", "1", "--window", "0.1", "--output", file,
        "--", sys.executable, "-c", "print('no such model'); raise SystemExit(3)",
    )  # fmt: skip
    assert code == 1
    assert "exit code 3" in rows[-1]["reason"] and "no such model" in rows[-1]["reason"]


def test_wrong_arguments_are_all_named_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, rows, _ = bench(
        "--workload", "trainning", "--method", "mig", "--processes", "0-2", "--window", "0",
        "--output", str(tmp_path / "o"),
    )  # fmt: skip
    errors = capsys.readouterr().err
    assert code == 2 and rows == []
    for words in (
        "'trainning' is unknown",
        "--mig PROFILE",
        "--processes '0-2'",
        "--window",
        "only with --allow-settings",
    ):
        assert words in errors
    assert not (tmp_path / "o").exists()
