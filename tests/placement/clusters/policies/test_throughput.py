import pytest

from commsim.placement.clusters.models import HostKind, TrainedModel

MODELS = {
    "little": TrainedModel("little", 0.0, 0.1, speeds={"old": 1.0, "new": 1.2}),
    "much": TrainedModel("much", 0.0, 0.1, speeds={"old": 1.0, "new": 4.0}),
}


def test_the_fast_type_goes_to_the_job_that_gains_most(replay):
    hosts = {f"h{i}": HostKind("new" if i < 2 else "old") for i in range(4)}
    machines = replay.machines(models=MODELS, hosts=hosts)
    trace = [replay.job("first", 16, 1000.0, model="little"), replay.job("second", 16, 1000.0, model="much")]
    jobs, _ = replay("gavel", trace, machines)
    assert jobs["second"].jct_s == pytest.approx(250.0)
    assert replay("fifo", trace, machines)[0]["second"].jct_s == pytest.approx(1000.0)


def test_a_job_larger_than_any_type_still_runs(replay):
    hosts = {f"h{i}": HostKind("new" if i < 2 else "old") for i in range(4)}
    machines = replay.machines(models=MODELS, hosts=hosts)
    jobs, _ = replay("gavel", [replay.job("wide", 32, 100.0, model="little")], machines)
    assert jobs["wide"].jct_s == pytest.approx(100.0)


def test_jobs_grow_when_gpus_are_free_and_shrink_when_others_come(replay):
    alone, outcome = replay("pollux", [replay.job("a", 4, 1000.0)])
    assert {len(stay.gpus) for stay in outcome.stays} == {8}
    efficiency = (32 + 4) / (32 + 8)  # twice the GPUs, whose samples are worth less
    assert alone["a"].jct_s == pytest.approx(1000.0 / (2 * efficiency))
    many = [replay.job(f"j{i}", 8, 500.0) for i in range(9)]
    assert max(job.queued_s for job in replay("pollux", many)[0].values()) == pytest.approx(0.0, abs=1e-9)
    assert max(job.queued_s for job in replay("fifo", many)[0].values()) > 900


def test_gpus_go_where_they_raise_goodput_most(replay, cluster_of):
    """Of 24 GPUs: one model gains by more, the other's batch is large enough already."""
    noise = {name: TrainedModel(name, 0.0, 0.1, noise=scale) for name, scale in (("small", 0.5), ("large", 1000.0))}
    machines = replay.machines(cluster_of(4, 6), models=noise)
    trace = [replay.job(name, 16, 100.0, model=name) for name in noise]
    _, outcome = replay("pollux", trace, machines)
    first = {stay.job: len(stay.gpus) for stay in outcome.stays if stay.start == 0}
    assert first == {0: 8, 1: 16}


def test_a_lease_goes_to_the_job_that_is_farthest_behind_its_fair_time(replay):
    """After ten minutes rho of the short one is 690/200, of the long one 10000/20000."""
    trace = [replay.job("long", 32, 10_000.0), replay.job("short", 32, 100.0, submit=10.0)]
    jobs, _ = replay("themis", trace)
    assert (jobs["short"].start_s, jobs["short"].finish_s) == pytest.approx((600.0, 700.0))


def test_of_equal_jobs_the_one_that_waits_longer_goes_first(replay):
    trace = [replay.job("long", 32, 10_000.0)]
    trace += [replay.job(name, 32, 100.0, submit=submit) for name, submit in (("early", 10.0), ("late", 500.0))]
    jobs, _ = replay("themis", trace)
    assert jobs["early"].start_s == pytest.approx(600.0)
    assert jobs["late"].start_s > jobs["early"].start_s


def test_equal_jobs_finish_equally_late(replay):
    jobs, _ = replay("themis", [replay.job(name, 32, 6000.0) for name in "abc"])
    finish = sorted(job.finish_s for job in jobs.values())
    assert finish[-1] == pytest.approx(18_000.0)
    assert finish[0] > 16_000.0
    assert replay("fifo", [replay.job(name, 32, 6000.0) for name in "abc"])[0]["a"].finish_s == pytest.approx(6000.0)
