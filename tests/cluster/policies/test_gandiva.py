import pytest

from commsim.cluster.models import Model


@pytest.mark.parametrize(("busy", "factor"), [(0.5, 1.0), (0.8, 1.6), (1.0, 2.0)])
def test_jobs_share_gpus_instead_of_waiting(replay, busy, factor):
    machines = replay.machines(models={"m": Model("m", 0.0, 0.1, busy=busy)})
    trace = [replay.job(name, 32, 100.0, model="m") for name in "ab"]
    jobs, outcome = replay("gandiva", trace, machines)
    assert [job.queued_s for job in jobs.values()] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert [job.jct_s for job in jobs.values()] == pytest.approx([100.0 * factor] * 2)
    assert outcome.stays[0].gpus == outcome.stays[1].gpus
    assert outcome.row()["utilisation"] == pytest.approx(1.0)
