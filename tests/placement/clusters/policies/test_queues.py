import pytest

from commsim.placement.clusters.policies.queues import THRESHOLDS


def test_nobody_overtakes_a_job_that_does_not_fit(replay):
    trace = [replay.job("a", 20, 100.0), replay.job("b", 32, 50.0, submit=1.0), replay.job("c", 1, 10.0, submit=2.0)]
    jobs, _ = replay("fifo", trace)
    assert (jobs["b"].start_s, jobs["c"].start_s) == (100.0, 150.0)


def test_backfilling_lets_only_those_overtake_that_delay_nobody(replay):
    trace = [
        replay.job("a", 20, 100.0),
        replay.job("b", 28, 50.0, submit=1.0),  # the first that waits; 4 GPUs are left beside it
        replay.job("short", 12, 90.0, submit=2.0),  # ends before b can begin
        replay.job("long", 8, 500.0, submit=3.0),  # no room beside b
        replay.job("small", 4, 500.0, submit=95.0),  # room beside b
    ]
    jobs, _ = replay("backfill", trace)
    starts = {name: job.start_s for name, job in jobs.items()}
    assert starts == pytest.approx({"a": 0.0, "b": 100.0, "short": 2.0, "long": 150.0, "small": 95.0})


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


def test_a_deadline_is_met_that_fifo_misses(replay):
    trace = [replay.job("best_effort", 32, 5000.0), replay.job("urgent", 32, 500.0, submit=10.0, deadline=1500.0)]
    assert replay("fifo", trace)[0]["urgent"].deadline_met is False
    jobs, _ = replay("chronus", trace)
    assert jobs["urgent"].deadline_met is True
    assert jobs["best_effort"].starts == 2


def test_a_deadline_that_is_lost_holds_nobody_up(replay):
    trace = [replay.job("lost", 32, 5000.0, deadline=100.0), replay.job("short", 32, 50.0)]
    jobs, _ = replay("chronus", trace)
    assert jobs["short"].start_s == 0.0
    assert jobs["lost"].deadline_met is False


def test_the_shortest_job_goes_first_and_srtf_stops_longer_ones(replay):
    trace = [
        replay.job("long", 32, 5000.0),
        replay.job("middle", 32, 1000.0, submit=1.0),
        replay.job("short", 32, 100.0, submit=2.0),
    ]
    jobs, _ = replay("sjf", trace)
    assert (jobs["short"].start_s, jobs["middle"].start_s) == pytest.approx((5000.0, 5100.0))
    assert [job.starts for job in jobs.values()] == [1, 1, 1]
    jobs, _ = replay("srtf", trace)
    assert (jobs["short"].start_s, jobs["short"].finish_s) == pytest.approx((300.0, 400.0))
    assert jobs["middle"].finish_s < jobs["long"].finish_s
    assert jobs["long"].starts == 2
