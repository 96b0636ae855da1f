import pytest

from commsim.placement.clusters.models import TrainedModel


def first_gpus(outcome):
    return {stay.job: len(stay.gpus) for stay in outcome.stays if stay.start == 0}


def plain(replay, cluster_of, n_hosts=4, gpus=6, **noise):
    models = {name: TrainedModel(name, 0.0, 0.1, noise=scale) for name, scale in noise.items()}
    return replay.machines(cluster_of(n_hosts, gpus), models=models)


def test_optimus_gives_gpus_to_the_job_that_ends_earliest_for_them(replay, cluster_of):
    """Without diminishing returns n GPUs take 16 w / n: the ninth saves more of the long job than of the short one."""
    machines = plain(replay, cluster_of, m=1e9)
    trace = [replay.job("short", 16, 100.0, model="m"), replay.job("long", 16, 400.0, model="m")]
    _, outcome = replay("optimus", trace, machines)
    given = first_gpus(outcome)
    assert sum(given.values()) == 24
    gains = [(w / n - w / (n + 1), w / (n - 1) - w / n) for w, n in ((100.0, given[0]), (400.0, given[1]))]
    assert gains[0][0] <= gains[1][1]  # no GPU would have saved more in the other job
    assert gains[1][0] <= gains[0][1]
    assert given[1] == 2 * given[0]


def test_afs_gives_the_longer_job_a_gpu_only_where_it_gains_more_of_its_new_rate(replay, cluster_of):
    """With linear speed-up 1/n of the short job's rate beats 1/(n+1) of the long one's at equal GPUs."""
    machines = plain(replay, cluster_of, m=1e9)
    trace = [replay.job("short", 8, 100.0, model="m"), replay.job("long", 8, 4000.0, model="m")]
    assert first_gpus(replay("afs", trace, machines)[1]) == {0: 12, 1: 12}
    efficient = plain(replay, cluster_of, poor=0.1, rich=1e9)
    trace = [replay.job("short", 8, 100.0, model="poor"), replay.job("long", 8, 4000.0, model="rich")]
    given = first_gpus(replay("afs", trace, efficient)[1])
    assert given[1] == 16  # twice what it asked for
    assert given[0] == 8


def test_elasticflow_meets_deadlines_with_as_few_gpus_as_it_can(replay, cluster_of):
    """16 GPUs for 600 s of work by 700 s: 14 suffice; what is left goes to the job without a deadline."""
    machines = plain(replay, cluster_of, m=1e9)
    due = replay.job("due", 16, 600.0, model="m", deadline=700.0)
    free = replay.job("free", 16, 100.0, model="m")
    jobs, outcome = replay("elasticflow", [due, free], machines)
    assert first_gpus(outcome)[0] >= 14
    assert jobs["due"].deadline_met
    assert sum(first_gpus(outcome).values()) == 24
    late = replay.job("late", 16, 600.0, model="m", deadline=10.0)
    assert replay("elasticflow", [late], machines)[0]["late"].deadline_met is False  # it runs all the same


@pytest.mark.parametrize("policy", ["afs", "optimus", "elasticflow"])
def test_every_job_gets_a_gpu_before_any_gets_many(replay, cluster_of, policy):
    machines = plain(replay, cluster_of, m=32.0)
    jobs, outcome = replay(policy, [replay.job(f"j{i}", 16, 100.0 + i, model="m") for i in range(20)], machines)
    assert len(first_gpus(outcome)) == 20
    assert max(job.queued_s for job in jobs.values()) == pytest.approx(0.0, abs=1e-9)


def test_gandiva_fair_gives_equal_jobs_equal_time(replay):
    jobs, _ = replay("gandiva_fair", [replay.job(name, 32, 1800.0) for name in "abc"])
    finish = [job.finish_s for job in jobs.values()]
    assert max(finish) == pytest.approx(5400.0)
    assert min(finish) >= 5400.0 - 3 * 60.0


def test_muri_pairs_jobs_that_leave_each_other_most_room(replay):
    machines = replay.machines(
        models={name: TrainedModel(name, 0.0, 0.1, busy=b) for name, b in (("x", 0.9), ("y", 0.1))}
    )
    trace = [
        replay.job("busy", 16, 1000.0, model="x"),
        replay.job("idle", 16, 1000.0, model="y"),
        replay.job("next", 16, 100.0, submit=1.0, model="x"),
    ]
    jobs, outcome = replay("muri", trace, machines)
    assert jobs["next"].queued_s == pytest.approx(0.0, abs=1e-9)
    together = {stay.job: stay.gpus for stay in outcome.stays}
    assert together[2] == together[1]
    assert jobs["next"].jct_s == pytest.approx(100.0)  # 0.9 and 0.1 of a GPU hinder nobody


def test_muri_pairs_jobs_that_use_unlike_resources_and_not_alike_ones(replay):
    stages = {"loads": (2.0, 0.0, 0.0), "computes": (0.0, 2.0, 0.0)}
    machines = replay.machines(models={name: TrainedModel(name, 0.0, 2.0, stages=s) for name, s in stages.items()})
    trace = [
        replay.job("a", 16, 3000.0, model="loads"),
        replay.job("b", 16, 3000.0, model="computes"),
        replay.job("c", 16, 1000.0, submit=1.0, model="loads"),
    ]
    jobs, outcome = replay("muri", trace, machines)
    together = {stay.job: stay.gpus for stay in outcome.stays if stay.start <= 1.0}
    assert together[2] == together[1]  # with what computes, not with what loads as it does itself
    assert jobs["c"].jct_s == pytest.approx(1000.0)
    assert jobs["b"].jct_s == pytest.approx(3000.0)  # each resource has one user at a time, so nobody is slower


def test_alike_stages_share_in_turn_as_the_formula_says(replay):
    model = TrainedModel("m", 0.0, 3.0, stages=(1.0, 1.0, 1.0))
    machines = replay.machines(models={"m": model})
    trace = [replay.job(name, 32, 3000.0, model="m") for name in "ab"]
    jobs, _ = replay("muri", trace, machines)
    # Three equal stages leave no slot idle: two jobs take as long as one.
    assert [job.jct_s for job in jobs.values()] == pytest.approx([3000.0, 3000.0])
