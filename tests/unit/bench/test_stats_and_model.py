from __future__ import annotations

import pytest
from gpufleet.measure.queue_model import QueueModel, fit
from gpufleet.measure.stats import latencies_ms, percentile, spread, steps_in


def test_steps_over_an_edge_count_by_their_part() -> None:
    cycles = [(0.0, 0.0, 1.0), (1.0, 1.0, 2.0), (2.0, 2.0, 4.0)]
    assert steps_in(cycles, 0.5, 3.0) == pytest.approx(0.5 + 1 + 0.5)


def test_a_step_longer_than_the_window_counts_as_a_fraction() -> None:
    assert steps_in([(0.0, 0.0, 10.0)], 4.0, 6.0) == pytest.approx(0.2)


def test_latency_leaves_out_the_rest_and_steps_that_end_outside() -> None:
    cycles = [(0.0, 0.5, 0.9), (0.9, 1.4, 1.5), (1.5, 1.6, 2.5)]
    assert latencies_ms(cycles, 1.0, 2.0) == [100.0]


def test_percentile_is_nearest_rank() -> None:
    values = [float(v) for v in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile([7.0], 0.99) == 7
    assert percentile([], 0.5) is None


def test_spread_is_relative_to_the_median() -> None:
    assert spread([90.0, 100.0, 110.0]) == pytest.approx(0.2)
    assert spread([5.0]) == 0


def test_saturating_jobs_are_flat_at_the_efficiency() -> None:
    model = QueueModel(service=0.02, host=0.0, efficiency=0.95)
    assert model.throughput(1) == pytest.approx(50)
    assert model.throughput(2) == pytest.approx(47.5)
    assert model.throughput(8) == pytest.approx(47.5)


def test_two_processes_follow_mean_value_analysis() -> None:
    # service 1, host 1: X1 = 1/2, queue 1/2; X2 = 2 / (1 + 1.5) = 0.8
    assert QueueModel(1.0, 1.0, 1.0).throughput(2) == pytest.approx(0.8)


@pytest.mark.parametrize(
    "true", [QueueModel(0.02, 0, 0.95), QueueModel(0.7e-3, 1.9e-3, 1.1), QueueModel(0.05, 0.2, 0.9)]
)
def test_fit_finds_the_model_that_made_the_points(true: QueueModel) -> None:
    points = {n: true.throughput(n) for n in (1, 2, 3, 4, 6, 8)}
    found = fit(points)
    assert found is not None
    assert found.largest_error(points) < 0.01


def test_no_model_without_the_point_of_one_process_or_with_two_points() -> None:
    assert fit({2: 1.0, 3: 1.0, 4: 1.0}) is None
    assert fit({1: 1.0, 2: 1.0}) is None
