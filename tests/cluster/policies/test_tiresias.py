import pytest

from commsim.cluster.policies.tiresias import THRESHOLDS


def test_the_job_with_least_service_goes_first(replay):
    trace = [replay.job("long", 32, 10_000.0), replay.job("short", 32, 100.0, submit=400.0)]
    jobs, _ = replay("tiresias", trace)
    assert (jobs["short"].start_s, jobs["short"].finish_s) == pytest.approx((600.0, 700.0))
    assert jobs["long"].finish_s == pytest.approx(10_100.0, abs=300.0)
    assert replay("fifo", trace)[0]["short"].start_s == pytest.approx(10_000.0)


def test_within_a_queue_the_first_to_come_is_first_served(replay):
    trace = [replay.job("a", 1, 0.9 * THRESHOLDS[0]), replay.job("b", 32, 10.0, submit=1.0)]
    jobs, _ = replay("tiresias", trace)
    assert jobs["a"].starts == 1
    assert jobs["b"].start_s >= jobs["a"].finish_s
