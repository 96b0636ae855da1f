import pytest

from commsim.cluster.machines import DAY


def test_idle_inference_hosts_are_borrowed_and_given_back(replay):
    """At midnight one of two hosts is lent; in the afternoon none is."""
    machines = replay.machines(inference=("h2", "h3"))
    trace = [replay.job(f"j{i}", 8, 1.5 * DAY) for i in range(3)]
    jobs, outcome = replay("lyra", trace, machines)
    assert max(job.start_s for job in jobs.values()) == 0.0
    assert replay("fifo", trace, machines)[0]["j2"].start_s == pytest.approx(1.5 * DAY)
    lent = range(16, 32)
    for stay in outcome.stays:
        if set(stay.gpus) & set(lent):
            assert not stay.start < 16 / 24 * DAY < stay.end


def test_what_is_left_goes_to_elastic_jobs(replay):
    trace = [replay.job("rigid", 8, 100.0), replay.job("elastic", 8, 100.0, max_gpus=16)]
    jobs, outcome = replay("lyra", trace)
    assert {stay.job: len(stay.gpus) for stay in outcome.stays} == {0: 8, 1: 16}
    assert jobs["elastic"].jct_s == pytest.approx(100.0 / (2 * (32 + 8) / (32 + 16)))
