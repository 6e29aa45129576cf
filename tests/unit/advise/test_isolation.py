"""The committed tables about neighbours and memory, and what is said from them."""

from __future__ import annotations

import pytest
from gpufleet.catalog import gpu_model
from gpufleet.measure import beside
from gpufleet.measure.isolation import companies, memory_rows, own_companies, unbounded_memory


def test_every_pair_is_measured_on_a_model_of_the_catalogue_with_three_repetitions() -> None:
    found = companies()
    assert len(found) == 18  # 3 neighbours, 3 methods, 2 backends
    for one in found:
        model = gpu_model(one.gpu)
        assert model is not None and model.id == one.gpu
        for point in one.series.points:
            assert len(point.alone) == len(point.beside) == len(point.neighbours) == len(point.p99s_ms) == 3


def test_a_series_survives_the_catalogue() -> None:
    for one in companies():
        assert beside.from_row(beside.row("r", one.series, "2026-12-01", "runs")) == one.series


def test_limits_of_mps_keep_a_request_apart_from_saturating_neighbours_and_nothing_else_does() -> None:
    steady = {(c.series.method, c.series.neighbour): c.series for c in companies() if c.series.backend == "driver"}
    for neighbour in ("training", "copy"):
        kept = {method: [p.share for p in steady[method, neighbour].points] for method, _ in steady}
        assert min(kept["mps"]) > 0.75
        assert max(kept["timeSlicing"]) < 0.75 and max(kept["mpsUnlimited"]) < 0.45


def test_memory_is_bounded_by_the_limits_of_mps_alone() -> None:
    for row in memory_rows():
        taken, n, total = row["taken_mib"], row["n"], row["total_mib"][0]
        assert len(row["steps"]) == n and min(row["steps"]) > 0
        assert row["refused"] == ["cuMemAlloc_v2: out of memory (2)"] and row["one_more"]["started"] is False
        if row["method"] == "mps":
            assert max(taken) <= row["limit_mib"] and row["limit_mib"] * n <= total * 1.005
            assert n == 1 or row["asking_more"]["taken_mib"] <= row["limit_mib"]
        elif n > 1:
            assert taken[0] > total * 0.95 and set(taken[1:]) == {256}


def test_the_sentence_about_memory_has_the_measured_numbers() -> None:
    row = next(row for row in memory_rows("timeSlicing") if row["n"] == 4)
    said = unbounded_memory()
    assert f"of 4 processes one took {row['taken_mib'][0] / 1024:.0f} of {row['total_mib'][0] / 1024:.0f} GiB" in said
    assert "H200, driver 580.159.04, 2026-12-01" in said


def test_own_lines_are_taken_for_the_gpu_they_are_said_to_be_of() -> None:
    process = {"rate": 10.0, "p50_ms": 1.0, "p99_ms": 2.0, "samples": 5}
    half = {**process, "rate": 5.0, "p99_ms": 9.0}
    line = {
        "kind": "beside", "workload": "inference", "neighbour": "copy", "backend": "driver", "method": "timeSlicing",
        "n": 2, "unit": "requests/s", "alone": process, "beside": half, "neighbours_without": [process],
        "neighbours_beside": [half],
    }  # fmt: skip
    lines = [{"kind": "conditions", "date": "2026-12-02", "gpu_state": {"driver_version": "580.1"}}, line, line]
    (one,) = own_companies(lines, "T4")
    (point,) = one.series.points
    assert (one.gpu, one.driver, one.date) == ("T4", "580.1", "2026-12-02")
    assert (point.shares, point.share, point.p99_ms, point.p99_alone_ms) == ((0.5, 0.5), 0.5, 9.0, 2.0)
    assert point.kept_by_neighbours == pytest.approx(0.5) and point.samples == 10
