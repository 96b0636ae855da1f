import pytest


def test_a_lease_goes_to_the_job_that_is_farthest_behind_its_fair_time(replay):
    """After ten minutes rho of the short one is 690/200, of the long one 10000/20000."""
    trace = [replay.job("long", 32, 10_000.0), replay.job("short", 32, 100.0, submit=10.0)]
    jobs, _ = replay("themis", trace)
    assert (jobs["short"].start_s, jobs["short"].finish_s) == pytest.approx((600.0, 700.0))


def test_equal_jobs_finish_equally_late(replay):
    jobs, _ = replay("themis", [replay.job(name, 32, 6000.0) for name in "abc"])
    finish = sorted(job.finish_s for job in jobs.values())
    assert finish[-1] == pytest.approx(18_000.0)
    assert finish[0] > 16_000.0
    assert replay("fifo", [replay.job(name, 32, 6000.0) for name in "abc"])[0]["a"].finish_s == pytest.approx(6000.0)
