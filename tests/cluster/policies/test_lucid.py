import pytest

from commsim.cluster.models import Model

MODELS = {"light": Model("light", 0.0, 0.1, busy=0.3), "heavy": Model("heavy", 0.0, 0.1, busy=0.95)}


def test_jobs_that_hardly_disturb_each_other_are_packed_and_others_wait(replay):
    machines = replay.machines(models=MODELS)
    trace = [
        replay.job("running", 32, 1000.0, model="heavy"),
        replay.job("light", 32, 100.0, submit=1.0, model="light"),
        replay.job("heavy", 32, 100.0, submit=2.0, model="heavy"),
    ]
    jobs, _ = replay("lucid", trace, machines)
    assert jobs["light"].queued_s == pytest.approx(0.0, abs=1e-9)
    assert jobs["light"].jct_s == pytest.approx(100.0 * 1.25)
    assert jobs["heavy"].start_s == pytest.approx(jobs["running"].finish_s)


def test_short_jobs_go_first_but_stop_nobody(replay):
    trace = [replay.job("a", 32, 100.0), replay.job("b", 32, 90.0, submit=1.0), replay.job("c", 32, 9.0, submit=2.0)]
    jobs, _ = replay("lucid", trace)
    assert (jobs["c"].start_s, jobs["b"].start_s) == pytest.approx((100.0, 109.0))
