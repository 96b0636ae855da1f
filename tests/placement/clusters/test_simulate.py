import math
from collections import defaultdict

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import HOST
from commsim.placement.cluster import Cluster
from commsim.placement.clusters.generated_traces import poisson
from commsim.placement.clusters.models import MODELS
from commsim.placement.clusters.outcome import unfilled
from commsim.placement.clusters.placement_choices import PLACINGS
from commsim.placement.clusters.policy import POLICIES, Grant
from commsim.placement.clusters.replay_hashes import replay_over_hashes
from commsim.placement.clusters.simulate import simulate_cluster
from commsim.placement.clusters.state import ClusterJobs
from commsim.placement.clusters.trace_job import TraceJob
from commsim.prediction.plans.draws import hash_seeds
from topologies.leaf_spine import leaf_spine

CAPACITY = 12.5e9


def busy_trace(n=40, seed=5):
    names = tuple(MODELS)
    return poisson(32, names, n, 1.5, seed, days=0.5, mean_gpus=6.0, max_gpus=32, deadlines=0.3, elastic=0.4)


@pytest.mark.parametrize(
    ("policy", "placing"), [*((name, "packed") for name in POLICIES), *(("fifo", placing) for placing in PLACINGS)]
)
def test_a_number_of_gpus_on_each_host_is_kept(replay, policy, placing):
    """``gpus_per_host`` of jobs to be placed was no column of a trace."""
    machines = replay.machines()
    jobs = [
        TraceJob(f"j{i}", 600.0 * i, n, 3600.0, model="resnet50", gpus_per_host=k)
        for i, (n, k) in enumerate([(3, None), (8, 4), (4, 2), (6, 3), (8, 4), (1, None), (4, 1), (8, 2)])
    ]
    if policy in ("afs", "elasticflow", "optimus", "pollux"):  # hand out one GPU after the other
        with pytest.raises(InputError, match=f"{policy} gives .* whose gpus_per_host is .; policies that do not scale"):
            simulate_cluster(machines, jobs, policy, assumed=replay.assumed)
        return
    outcome = simulate_cluster(machines, jobs, policy, placing=placing, assumed=replay.assumed, seed=1)
    last = np.cumsum(machines.gpus)
    assert {stay.job for stay in outcome.stays} == {*range(len(jobs))}
    for stay in outcome.stays:
        if (k := jobs[stay.job].gpus_per_host) is not None:
            _, counts = np.unique(np.searchsorted(last, stay.gpus, side="right"), return_counts=True)
            assert set(counts.tolist()) == {k}


def test_more_hosts_than_have_so_many_gpus_are_refused(replay):
    job = TraceJob("a", 0.0, 30, 60.0, model="resnet50", gpus_per_host=10)
    with pytest.raises(InputError, match="a wants 10 GPUs on each of 3 hosts, but 0 hosts of the cluster have so many"):
        simulate_cluster(replay.machines(), [job], "fifo", assumed=replay.assumed)


@pytest.mark.sample(6)
@pytest.mark.sample(1, each="policy")
@pytest.mark.slow
@pytest.mark.parametrize("placing", PLACINGS)
@pytest.mark.parametrize("policy", POLICIES)
def test_no_gpu_is_used_twice_and_every_job_does_exactly_its_work(replay, policy, placing):
    jobs, machines = busy_trace(), replay.machines(inference=("h3",), restart=20.0)
    jobs = [job for job in jobs if job.n_gpus <= machines.n_gpus]
    outcome = simulate_cluster(machines, jobs, policy, placing=placing, assumed=replay.assumed, seed=1)
    facts, work = POLICIES[policy].metadata, ClusterJobs(jobs, machines, replay.assumed.models)
    on_gpu = defaultdict(list)
    for stay in outcome.stays:
        assert len(set(stay.gpus)) == len(stay.gpus)
        for gpu in stay.gpus:
            on_gpu[gpu].append((stay.start, 1))
            on_gpu[gpu].append((stay.end, -1))
    for changes in on_gpu.values():
        together = np.cumsum([change for _, change in sorted(changes, key=lambda c: (c[0], c[1]))])
        assert together.max() <= (2 if facts["shares"] else 1)
        assert together[-1] == 0
    for i, (job, done) in enumerate(zip(jobs, outcome.jobs, strict=True)):
        mine = [stay for stay in outcome.stays if stay.job == i]
        assert done.iterations == work.total(i)
        assert job.submit <= done.start_s == mine[0].start
        assert done.finish_s == mine[-1].end
        assert sum(stay.end - stay.start for stay in mine) == pytest.approx(done.jct_s - done.queued_s)
        best = max(work.rate(i, g) for g in {len(stay.gpus) for stay in mine})
        lost = 20.0 * (done.starts - 1)
        assert sum(stay.end - stay.start for stay in mine) >= (work.total(i) / best) * (1 - 1e-9)
        assert sum(stay.end - stay.start for stay in mine) >= min(lost, 20.0 * len(mine)) * (1 - 1e-9) - 20.0
        if not facts["scales"]:
            assert {len(stay.gpus) for stay in mine} == {job.n_gpus}
        if not facts["interval"]:
            assert done.starts == 1
    used = sum(len(s.gpus) * (s.end - s.start) for s in outcome.stays)
    counted = sum(n * (b - a) for (a, n), (b, _) in zip(outcome.use, outcome.use[1:], strict=False))
    assert counted <= used * (1 + 1e-9)
    if not facts["shares"]:
        assert counted == pytest.approx(used)


@pytest.mark.parametrize("policy", ["fifo", "tiresias", "pollux"])
def test_the_same_seed_gives_the_same_outcome(replay, policy):
    jobs, machines = busy_trace(), replay.machines()
    runs = [simulate_cluster(machines, jobs, policy, assumed=replay.assumed, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0].jobs != runs[2].jobs


def test_times_add_up_by_hand(replay):
    jobs, outcome = replay("fifo", [replay.job("a", 32, 100.0), replay.job("b", 32, 50.0, submit=10.0)])
    assert (jobs["a"].jct_s, jobs["b"].jct_s) == pytest.approx((100.0, 140.0))
    assert (jobs["a"].queued_s, jobs["b"].queued_s) == pytest.approx((0.0, 90.0))
    row = outcome.row()
    assert row["makespan_s"] == pytest.approx(150.0)
    assert row["utilisation"] == pytest.approx(1.0)
    assert (row["jct_mean_s"], row["queued_mean_s"]) == pytest.approx((120.0, 45.0))
    assert (row["link_excess"], row["slowdown_mean"]) == (0.0, 1.0)


def test_gpus_that_are_used_less_than_the_load_suggests_are_explained(replay):
    """`load=0.9` stood beside 28 % of GPUs in use, unexplained."""
    busy = [replay.job("a", 16, 100.0), replay.job("b", 16, 100.0)]
    _, full = replay("fifo", [*busy, replay.job("c", 32, 10.0, submit=90.0)])
    _, tail = replay("fifo", [*busy, replay.job("c", 8, 1000.0, submit=90.0)])
    _, waits = replay(
        "fifo", [busy[0], replay.job("b", 32, 100.0, submit=10.0), replay.job("c", 16, 90.0, submit=90.0)]
    )
    _, fills = replay("fifo", [replay.job("a", 4, 100.0), replay.job("b", 28, 100.0, submit=90.0)])
    assert unfilled([full]) == []
    (said,) = unfilled([full, tail])
    above = "(above 1: its jobs take more GPU time than there is until the last one arrives)"
    assert said.startswith(f"gpus_used is 32% (fifo), the load of the trace 3.89 {above}: 100% are used while jobs")
    assert said.endswith("h; then only the last jobs run, which is a smaller fraction of a longer trace")
    assert "50% are used while jobs arrive" in unfilled([waits])[0]
    assert "jobs wait until enough GPUs are free at once" in unfilled([waits])[0]
    assert "the cluster still fills up" in unfilled([fills])[0]


def test_iterations_take_their_time(replay):
    one = replay.sender("a", 8, None, 0.25, 0.1, 0.1, CAPACITY, iterations=1000.0)
    jobs, _ = replay("fifo", [one])
    assert jobs["a"].jct_s == pytest.approx(250.0)


def test_a_restart_costs_what_it_is_said_to_cost(replay):
    trace = [replay.job("long", 32, 10_000.0), replay.job("short", 32, 100.0, submit=400.0)]
    times = []
    for restart in (0.0, 60.0):
        jobs, _ = replay("tiresias", trace, replay.machines(restart=restart))
        assert jobs["long"].starts == 2
        times.append(jobs["long"].finish_s)
    assert times[1] - times[0] == pytest.approx(60.0)


def pair(replay):
    """Two jobs of three GPUs on three hosts of two: they share the port of the host in the middle."""
    return [replay.sender(name, 3, 1000.0, 0.2, 0.1, 0.1, CAPACITY) for name in "ab"]


def test_cassini_keeps_two_jobs_that_fit_out_of_each_others_way(replay, cluster_of):
    machines = replay.machines(cluster_of(3, 2, 1, 1.5))
    with_cassini, outcome = replay("fifo", pair(replay), machines, placing="cassini")
    assert max(job.jct_s for job in with_cassini.values()) < 1020.0
    assert outcome.link_excess < 0.02
    without = [replay("fifo", pair(replay), machines, seed=seed)[0] for seed in range(8)]
    slow = [job.slowdown for jobs in without for job in jobs.values()]
    assert 1.1 < np.mean(slow) < 1.4  # a quarter on average: overlap is uniform between none and half an iteration
    for jobs in without:
        for job in jobs.values():
            assert job.jct_s <= 1000.0 * job.slowdown * (1 + 1e-9)


def test_jobs_on_links_of_their_own_are_never_slowed(replay, cluster_of):
    machines = replay.machines(cluster_of(3, 2, 1, 1.5))
    jobs, outcome = replay("fifo", pair(replay), machines, placing="ideal")
    assert {job.slowdown for job in jobs.values()} == {1.0}
    assert outcome.iteration_times == ((0.2, pytest.approx(10_000.0)),)


def test_any_free_gpus_share_more_links_than_packed_ones(replay, cluster_of):
    """Jobs of two on two racks of two: packed they stay in a rack each, at random they mostly do not."""
    machines = replay.machines(cluster_of(4, 1, 2))
    jobs = [replay.sender(name, 2, 100.0, 0.2, 0.0, 0.2, CAPACITY) for name in "ab"]
    packed = replay("fifo", jobs, machines)[1]
    drawn = [replay("fifo", jobs, machines, placing="random", seed=seed)[1] for seed in range(12)]
    assert packed.link_excess == 0
    assert sum(one.link_excess > 0 for one in drawn) > 3
    assert all(len(set(stay.gpus)) == 2 for one in drawn for stay in one.stays)


def test_random_gpus_have_their_ranks_in_order_and_shuffled_ones_do_not(replay, cluster_of):
    """`place --generator random` orders ranks, and --placing random did not: another ring on the same GPUs."""
    machines = replay.machines(cluster_of(4, 1, 2))
    job = replay.sender("a", 4, 100.0, 0.2, 0.0, 0.2, CAPACITY)
    gpus = {how: [replay("fifo", [job], machines, placing=how, seed=seed)[1].stays[0].gpus for seed in range(8)]
            for how in ("random", "shuffled")}  # fmt: skip
    assert all(list(one) == sorted(one) for one in gpus["random"])
    assert any(list(one) != sorted(one) for one in gpus["shuffled"])


def test_contended_links_that_lose_part_of_their_rate_slow_jobs_more(replay, cluster_of):
    fluid = replay("fifo", pair(replay), replay.machines(cluster_of(3, 2, 1, 1.5)), seed=3)[0]
    lossy = replay("fifo", pair(replay), replay.machines(cluster_of(3, 2, 1, 1.5), contended=0.5), seed=3)[0]
    assert all(lossy[name].slowdown > fluid[name].slowdown for name in "ab")


def test_traffic_of_a_job_inside_of_one_host_disturbs_nobody(replay):
    jobs, outcome = replay("fifo", [replay.sender(str(i), 8, 50.0, 0.2, 0.1, 0.1, CAPACITY) for i in range(4)])
    assert outcome.link_excess == 0
    assert {job.slowdown for job in jobs.values()} == {1.0}


def test_what_cannot_be_run_is_refused(replay):
    with pytest.raises(InputError, match="big wants 33 GPUs, but the cluster has 32"):
        replay("fifo", [replay.job("big", 33, 1.0)])
    with pytest.raises(InputError, match="unknown policy 'fifa'; did you mean fifo"):
        replay("fifa", [replay.job("a", 1, 1.0)])
    with pytest.raises(InputError, match="trains 'x', which is no model"):
        replay("fifo", [replay.job("a", 1, 1.0, model="x")])
    with pytest.raises(InputError, match="longer than 3650 days"):
        replay("fifo", [replay.job("a", 1, 9e9)])
    with pytest.raises(InputError, match="a restart must take less than the 300 s of tiresias, got 300 s"):
        replay("tiresias", [replay.job("a", 1, 1.0)], replay.machines(restart=300.0))
    jobs = [replay.job("a", 1, 1.0, submit=5.0), replay.job("b", 1, 1.0)]
    with pytest.raises(InputError, match="in order of submission"):
        simulate_cluster(replay.machines(), jobs, "fifo", assumed=replay.assumed)
    assert math.isfinite(replay("fifo", jobs)[1].makespan)


def test_finish_time_fairness_is_over_an_equal_share_of_the_cluster(replay):
    """Two jobs that want all 32 GPUs for 100 s: the first lives among two, the second among 1.5 on average."""
    jobs, outcome = replay("fifo", [replay.job(name, 32, 100.0) for name in "ab"])
    assert jobs["a"].rho == pytest.approx(100.0 / 200.0)
    assert jobs["b"].rho == pytest.approx(200.0 / (100.0 * 1.5))
    assert outcome.row()["rho_mean"] == pytest.approx((0.5 + 4 / 3) / 2)
    assert replay("fifo", [replay.job("a", 8, 100.0)])[0]["a"].rho == pytest.approx(1.0)


def test_a_replay_is_that_of_the_median_hash(replay):
    network = leaf_spine(2, 4, 4, 12.5e9)
    machines = replay.machines(Cluster(network, np.where(network.kind == HOST, 1, 0)))
    jobs = [replay.sender(f"j{i}", 4, 100.0, 0.25, 0.0, 0.2, 12.5e9) for i in range(2)]
    how = {"placing": "random", "assumed": replay.assumed}
    each = [
        simulate_cluster(machines, jobs, "fifo", seed=1, hash_seed=one, **how).jct_mean
        for one in (1, *hash_seeds(1, 4))
    ]
    found = replay_over_hashes(machines, jobs, "fifo", seed=1, hashes=4, **how)
    assert found.jct_mean == sorted(each)[1]
    assert found.hashes == (4, min(each), max(each), found.hashes.seed)
    assert found.row()["slowest_s"] == max(each)
    assert replay_over_hashes(machines, jobs, "fifo", seed=1, hashes=1, **how).jct_mean == each[0]


def test_the_old_names_of_numbers_of_gpus_are_told_the_new_one():
    job = TraceJob("a", 0.0, 4, duration=10.0, model="vgg16")
    for value in (job, Grant(None, 4)):
        with pytest.warns(DeprecationWarning, match="n_gpus"):
            assert value.gpus == value.n_gpus == 4
