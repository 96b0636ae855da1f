import pytest

from commsim.placement.clusters.machines import DAY
from commsim.placement.clusters.models import HostKind, TrainedModel


@pytest.mark.parametrize(("busy", "factor"), [(0.5, 1.0), (0.8, 1.6), (1.0, 2.0)])
def test_jobs_share_gpus_instead_of_waiting(replay, busy, factor):
    machines = replay.machines(models={"m": TrainedModel("m", 0.0, 0.1, busy=busy)})
    trace = [replay.job(name, 32, 100.0, model="m") for name in "ab"]
    jobs, outcome = replay("gandiva", trace, machines)
    assert [job.queued_s for job in jobs.values()] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert [job.jct_s for job in jobs.values()] == pytest.approx([100.0 * factor] * 2)
    assert outcome.stays[0].gpus == outcome.stays[1].gpus
    assert outcome.row()["utilisation"] == pytest.approx(1.0)


MODELS = {"light": TrainedModel("light", 0.0, 0.1, busy=0.3), "heavy": TrainedModel("heavy", 0.0, 0.1, busy=0.95)}


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


def test_hungry_jobs_are_put_beside_modest_ones_and_get_their_cpus(replay, cluster_of):
    """Two hosts of 8 GPUs and 32 CPUs; two jobs need 24 CPUs for 4 GPUs, two need 8."""
    machines = replay.machines(cluster_of(2, 8, 1), host=HostKind(cpu=32.0))
    trace = [replay.job(name, 4, 100.0, cpu=cpu) for name, cpu in (("a", 24), ("b", 24), ("c", 8), ("d", 8))]
    jobs, _ = replay("synergy", trace, machines)
    assert [job.jct_s for job in jobs.values()] == pytest.approx([100.0] * 4)
    jobs, _ = replay("fifo", trace, machines)
    assert jobs["a"].jct_s == pytest.approx(150.0)  # 16 of 24 CPUs: in proportion to its GPUs
    assert jobs["c"].jct_s == pytest.approx(100.0)


def test_memory_counts_as_cpus_do(replay, cluster_of):
    machines = replay.machines(cluster_of(2, 8, 1), host=HostKind(memory=64.0))
    trace = [replay.job(name, 4, 100.0, memory=memory) for name, memory in (("a", 48.0), ("b", 48.0))]
    assert max(job.jct_s for job in replay("synergy", trace, machines)[0].values()) == pytest.approx(100.0)
    assert max(job.jct_s for job in replay("fifo", trace, machines)[0].values()) == pytest.approx(150.0)


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
