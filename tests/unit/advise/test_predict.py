"""What one process does alone says what several do: held against programs that were measured at 1 to 8 processes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.measure.predict import Alone, Law, Predicted, fills, laws, predict, profiled

TABLE = yaml.safe_load((Path(__file__).parent / "shared_programs.yaml").read_text(encoding="utf-8"))
PROGRAMS = {row["name"]: row for row in TABLE["programs"]}
LAW = laws()["H200"]


def alone(row: dict[str, Any]) -> Alone:
    steps = tuple(1e3 / rate for rate in row["alone"])
    return Alone(steps, row["gpu"], fills(row["gpu"], row["sm"], row["dram"]))


def points() -> Iterator[tuple[str, Alone, str, int, float]]:
    """Every point with several processes: of the table beside this file, and of the catalogue's series."""
    for row in TABLE["programs"]:
        for method in ("timeSlicing", "mps"):
            for n, totals in row[method].items():
                yield row["name"], alone(row), method, n, statistics.median(totals)
    for one, profile in profiled():
        if one.series.method in ("timeSlicing", "mps"):
            for p in one.series.points:
                if p.n > 1:
                    yield one.id, profile, one.series.method, p.n, p.total


POINTS = list(points())


def close(found: Predicted, measured: float) -> bool:
    return abs(found.total / measured - 1) <= 0.10 or found.low <= measured <= found.high


@pytest.mark.parametrize(
    ("name", "one", "method", "n", "measured"), POINTS, ids=[f"{p[0]} {p[2]} {p[3]}" for p in POINTS]
)
def test_a_profile_alone_predicts_the_total(name: str, one: Alone, method: str, n: int, measured: float) -> None:
    """Within 10 % of the measured median, or within the range that is stated."""
    found = predict(one, LAW, method, n)
    assert found.low <= found.total <= found.high
    assert close(found, measured), f"{found} for {measured}"


def fitted_without(name: str) -> Law:
    """The costs of a turn that meet the other programs best, under time-slicing."""
    others = [p for p in POINTS if p[0] != name and p[2] == "timeSlicing"]
    grid = product((1.0, 1.5, 2.0), (0.1, 0.15, 0.2), (2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0))
    candidates = [replace(LAW, turn_ms=turn, switch_ms=cost, extra_turns=extra) for turn, cost, extra in grid]

    def misfit(law: Law) -> float:
        return sum(abs(predict(one, law, method, n).total / measured - 1) for _, one, method, n, measured in others)

    return min(candidates, key=misfit)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_predicted_by_costs_found_without_it(name: str) -> None:
    law = fitted_without(name)
    for _, one, method, n, measured in (p for p in POINTS if p[0] == name):
        found = predict(one, law, method, n)
        assert close(found, measured), f"{method} {n}: {found} for {measured}, {law}"


def test_the_programs_differ_in_what_they_need_of_the_gpu() -> None:
    parts = sorted(row["gpu"] for row in TABLE["programs"])
    assert parts[0] < 0.2 and 0.5 < parts[2] < 0.6 and parts[-1] > 0.9


def test_most_points_are_met_without_the_range() -> None:
    errors = [abs(predict(one, LAW, method, n).total / measured - 1) for _, one, method, n, measured in POINTS]
    assert statistics.median(errors) < 0.06
    assert sum(error <= 0.10 for error in errors) >= 0.7 * len(errors)


def test_a_range_says_something() -> None:
    """A steady program's range is narrow; none is wider than what host work was seen to do."""
    for n in (2, 4, 8):
        steady = predict(alone(PROGRAMS["graph"]), LAW, "timeSlicing", n)
        assert steady.high <= 1.2 * steady.low
    for _, one, method, n, _ in POINTS:
        found = predict(one, LAW, method, n)
        assert found.high <= 2.5 * found.low, (method, n)


@pytest.mark.parametrize("row", TABLE["reported"], ids=[row["name"] for row in TABLE["reported"]])
def test_what_others_reported_of_two_berts_lies_in_the_range(row: dict[str, Any]) -> None:
    """The same words for both, and other figures: from its GPU time each gets its own range."""
    like = alone(PROGRAMS[row["like"]])
    steps = tuple(1e3 / rate for rate in row["alone"])
    one = Alone(steps, like.gpu_ms / statistics.median(steps), like.fills)
    for n, totals in row["timeSlicing"].items():
        found = predict(one, LAW, "timeSlicing", n)
        assert close(found, statistics.median(totals)), f"{found} for {totals}"


def test_work_that_fills_the_gpu_gains_nothing_by_sharing() -> None:
    full = Alone((20.0,), 1.0, 1.0)
    for method in ("timeSlicing", "mps"):
        assert predict(full, LAW, method, 4).total <= 50.0 * 1.001
    assert predict(full, LAW, "timeSlicing", 4).total == pytest.approx(45.5, rel=0.01)


def test_one_process_is_what_was_measured() -> None:
    one = Alone((10.0, 10.0, 12.0), 0.5)
    assert predict(one, LAW, "timeSlicing", 1) == Predicted(100.0, pytest.approx(1e3 / 12), 100.0)


def test_one_figure_of_a_program_of_the_host_gets_the_range_that_hosts_were_seen_to_have() -> None:
    """DCGM gives one average, where repetitions show how far the host's work differs."""
    one, seen = Alone((2.57,), 0.23, 0.35), Alone((2.57,) * 3, 0.23, 0.35)
    assert predict(one, LAW, "mps", 4).low < predict(seen, LAW, "mps", 4).low
    assert predict(one, LAW, "mps", 4).high > 1.15 * predict(seen, LAW, "mps", 4).high
    steady = predict(Alone((0.54,), 0.92, 0.47), LAW, "timeSlicing", 1)
    assert steady.high < 1.01 * steady.low


def test_without_the_part_that_work_fills_the_range_of_mps_is_open() -> None:
    known, unknown = Alone((5.0,), 0.6, 0.8), Alone((5.0,), 0.6)
    near, far = (predict(one, LAW, "mps", 4) for one in (known, unknown))
    assert far.high / far.low > 1.5 * near.high / near.low
    assert far.low <= near.low and near.high <= far.high
