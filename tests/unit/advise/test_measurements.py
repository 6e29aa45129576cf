"""The committed measurements, and what is predicted between their points."""

from __future__ import annotations

import pytest
from gpufleet.catalog import gpu_model, reading
from gpufleet.measure.interpolate import UNSTEADY, expected, leave_one_out
from gpufleet.measure.measurements import Measurement, best, measurements, own_measurements, select
from gpufleet.measure.series import Measured, Series
from gpufleet.measure.stats import spread

every_series = pytest.mark.parametrize("one", measurements(), ids=[m.id for m in measurements()])


def series(*points: tuple[int, float], wobble: float = 0.0) -> Series:
    """One measured series; ``wobble`` makes the repetitions of n = 2 differ."""
    made = []
    for n, total in points:
        totals = (total,) * 3 if n != 2 or not wobble else (total * (1 - wobble), total, total * (1 + wobble))
        made.append(Measured(n, totals, total / n * 0.9, total / n * 1.1, float(n), 2.0 * n, 100))
    return Series("training", "torch", "timeSlicing", "", "steps/s", made)


def measurement(one: Series, *, own: bool = False, gpu: str = "H200") -> Measurement:
    return Measurement("m", gpu, "580", "2026-11-30", "16 CPUs", one, own)


@every_series
def test_written_totals_and_spreads_follow_from_the_repetitions(one: Measurement) -> None:
    row = next(r for r in reading.rows("measurements_h200", "h200_series") if r["id"] == one.id)
    for written, point in zip(row["points"], one.series.points, strict=True):
        assert written["total"] == pytest.approx(point.total, rel=1e-3)
        assert written["spread"] == pytest.approx(spread(written["totals"]), abs=2e-3)
        assert point.least <= point.total / point.n * 1.001 <= point.most * 1.002


@every_series
def test_a_measured_point_is_returned_as_it_was_measured(one: Measurement) -> None:
    for point in one.series.points:
        found = expected(one.series, point.n)
        assert found is not None and found.between is None
        assert (found.total, found.p50_ms, found.p99_ms) == (point.total, point.p50_ms, point.p99_ms)
        assert found.least == pytest.approx(point.least / one.series.alone)


#: A kernel bound by bandwidth under MPS: between 2 and 8 processes its total does not follow a line.
FURTHER_OFF = {"h200-3 decoder driver mps": 0.20}


@every_series
def test_points_left_out_are_predicted_within_ten_percent(one: Measurement) -> None:
    errors = {h.n: h.error for h in leave_one_out(one.series) if h.error is not None}
    assert all(abs(error) <= FURTHER_OFF.get(one.id, 0.10) for error in errors.values()), errors


def test_enough_points_are_predicted_to_mean_something() -> None:
    held = [h for one in measurements() for h in leave_one_out(one.series)]
    predicted = [h for h in held if h.error is not None]
    assert len(predicted) >= 60
    assert len(predicted) / len(held) >= 0.85


def test_measured_gpus_are_models_of_the_catalogue() -> None:
    for one in measurements():
        model = gpu_model(one.gpu)
        assert model is not None and model.id == one.gpu


def test_nothing_is_said_outside_the_measured_numbers() -> None:
    one = series((1, 10.0), (2, 10.0), (4, 10.0))
    assert expected(one, 5) is None
    assert expected(one, 3) is not None


def test_nothing_is_said_without_the_point_of_one_process() -> None:
    assert expected(series((2, 10.0), (4, 10.0)), 3) is None


def test_between_points_of_a_flat_total_the_total_is_flat() -> None:
    found = expected(series((1, 10.0), (2, 10.0), (4, 10.0), (6, 10.0)), 3)
    assert found is not None
    assert found.between == (2, 4)
    assert found.total == pytest.approx(10.0)
    assert found.share == pytest.approx(1 / 3)
    assert found.p99_ms == pytest.approx(6.0)


def test_at_a_knee_the_prediction_lies_between_chord_and_floor() -> None:
    # Two processes have room, from four on the GPU is full: at three, 30 is the most there can be.
    found = expected(series((1, 10.0), (2, 20.0), (4, 30.0), (8, 30.0)), 3)
    assert found is not None
    chord = 3 / ((2 / 20 + 4 / 30) / 2)
    assert chord < found.total < 30.0


def test_an_unsteady_point_answers_for_itself_only() -> None:
    wobbly = series((1, 10.0), (2, 18.0), (4, 30.0), wobble=UNSTEADY)
    found = expected(wobbly, 2)
    assert found is not None and found.total == 18.0
    between = expected(wobbly, 3)
    assert between is not None and between.between == (1, 4)
    assert leave_one_out(wobbly)[0].error is None
    assert leave_one_out(wobbly, unsteady=True)[0].error is not None


def test_the_users_own_measurement_comes_first_and_models_before_kernels() -> None:
    kernels = measurement(series((1, 1.0), (2, 1.0)))
    kernels.series.backend = "driver"
    model, own = measurement(series((1, 2.0))), measurement(series((1, 3.0)), own=True)
    assert select([kernels, model], "H200", "training", "timeSlicing") is model
    assert select([kernels, model, own], "H200", "training", "timeSlicing") is own
    assert select([model], "T4", "training", "timeSlicing") is None
    assert select([model], None, "training", "timeSlicing") is model
    assert select([model], "H200", "training", "mps") is None


def test_of_two_runs_the_one_with_more_points_is_shown() -> None:
    short, long = measurement(series((1, 1.0), (2, 1.0))), measurement(series((1, 1.0), (2, 1.0), (3, 1.0)))
    assert best([short, long]) == [long]


def test_a_set_time_slice_is_not_taken_for_the_default() -> None:
    one = measurement(series((1, 1.0), (2, 1.0)))
    one.series.setting = "long"
    assert select([one], "H200", "training", "timeSlicing") is None


def test_own_lines_become_measurements_with_their_conditions() -> None:
    base = {"workload": "notebook", "backend": "driver", "method": "timeSlicing"}
    lines = [
        {"kind": "conditions", "date": "2026-12-01", "cpus": 8,
         "gpu_state": {"name": "Tesla T4", "driver_version": "580.1"}},
        {"kind": "group", **base, "processes": 1, "device": {}, "memory_mib_per_process": 300, "sizes": {}},
        {"kind": "point", **base, "n": 1, "total": 4.0, "per_process": [4.0], "p50_ms": 50, "p99_ms": 51, "samples": 9,
         "unit": "cells/s"},
    ]  # fmt: skip
    (one,) = own_measurements(lines, None)
    assert one.gpu == "Tesla T4" and one.own
    assert one.series.memory_mib == 300
    assert "driver 580.1, 2026-12-01, 8 CPUs" in one.conditions
    assert own_measurements(lines, "T4")[0].gpu == "T4"
