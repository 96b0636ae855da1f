import numpy as np
import pytest

from commsim.placement.clusters.contention.cassini_ranking import CassiniRanking
from commsim.placement.clusters.contention.traffic import ClusterTraffic
from commsim.placement.clusters.models import MODELS, profile
from commsim.placement.link_use import link_uses
from commsim.placement.starts.link_scores import score_link
from commsim.training.sharing.periodic import JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import simulate_jobs

CAPACITY = 12.5e9
PAIR = (("h0", "h2"), ("h0", "h3"))


def half_and_half(name):
    return PeriodicJob(name, 2, 0.2, (JobPhase(0.1, 0.1, CAPACITY),))


def slowdowns(cluster, jobs, routes, shifts):
    traffic = ClusterTraffic(cluster)
    sharers = [traffic.add(*one) for one in zip(jobs, routes, shifts, strict=True)]
    traffic.settle()
    return np.array([sharer.slowdown for sharer in sharers]), traffic


def test_equal_jobs_on_one_link_halve_it_and_half_an_iteration_restores_it(cluster_of):
    jobs, routes = [half_and_half("a"), half_and_half("b")], (("h0", "h1"),) * 2
    together, traffic = slowdowns(cluster_of(), jobs, routes, (0.0, 0.0))
    busy = traffic.rates(jobs[0], 0.0).mean() / CAPACITY  # half of the time, as far as the sample says
    np.testing.assert_allclose(together, 1.0 + busy)
    assert busy == pytest.approx(0.5, abs=0.05)
    np.testing.assert_allclose(slowdowns(cluster_of(), jobs, routes, (0.0, 0.1))[0], 1.0)


def test_a_job_whose_own_links_are_slow_is_slowed_by_no_other(cluster_of):
    """Its iterations take longer; cluster run told that as the slowdown by others' traffic."""
    slow = PeriodicJob("a", 2, 0.2, (JobPhase(0.1, 0.1, 1.5 * CAPACITY),))
    traffic = ClusterTraffic(cluster_of())
    alone = traffic.add(slow, ("h0", "h1"), 0.0)
    traffic.settle()
    assert alone.slowdown == pytest.approx(1.0)
    assert alone.stretch == pytest.approx(1.0 + 0.5 * traffic.rates(slow, 0.0).mean() / (1.5 * CAPACITY))
    traffic.add(half_and_half("b"), ("h0", "h1"), 0.0)
    traffic.settle()
    assert alone.slowdown > 1.1


def test_a_running_job_moves_where_that_ends_an_overlap_and_nowhere_else(cluster_of):
    jobs = [half_and_half("a"), half_and_half("b")]
    traffic = ClusterTraffic(cluster_of())
    a, b = (traffic.add(job, ("h0", "h1"), 0.0) for job in jobs)
    assert traffic.changed() == {a, b}
    ranking = CassiniRanking(traffic)
    shift = ranking.better(jobs[0], a, 0.02)
    assert shift == pytest.approx(0.1)
    traffic.shift(a, jobs[0], shift)
    traffic.settle()
    assert (a.slowdown, b.slowdown) == (1.0, 1.0)
    assert ranking.better(jobs[0], a, 0.02) is None
    assert ranking.better(jobs[1], b, 0.02) is None
    assert traffic.changed() == set()


def test_what_a_phase_may_be_late_for_nothing_slows_no_job(cluster_of):
    """Each sends for 0.1 s more; the computation beside the phase takes 0.06 s longer than the phase alone."""
    jobs = [PeriodicJob(name, 2, 0.2, (JobPhase(0.0, 0.1, CAPACITY, 0.16),)) for name in "ab"]
    plain = [PeriodicJob(name, 2, 0.2, (JobPhase(0.0, 0.1, CAPACITY),)) for name in "ab"]
    routes = (("h0", "h1"),) * 2
    found, waiting = (slowdowns(cluster_of(), some, routes, (0.0, 0.0))[0] for some in (jobs, plain))
    np.testing.assert_allclose(waiting - found, 0.06 / 0.2)


@pytest.mark.parametrize("seed", range(6))
def test_the_estimate_is_near_the_fluid_simulation(cluster_of, seed):
    random = np.random.default_rng(seed)
    cluster = cluster_of(16, 8, 4)
    hosts, models = random.permutation(16), list(MODELS.values())
    routes = [tuple(f"h{h}" for h in hosts[3 * i : 3 * i + 3]) for i in range(5)]
    jobs = [profile(models[random.integers(13)], f"j{i}", 24, 3, CAPACITY) for i in range(5)]
    shifts = [random.random() * job.period for job in jobs]
    estimate, _ = slowdowns(cluster, jobs, routes, shifts)
    run = simulate_jobs(cluster.network, jobs, list(link_uses(cluster, routes)), shifts=shifts, iterations=300)
    assert abs(estimate - run.slowdowns).mean() < 0.06
    assert abs(estimate - run.slowdowns).max() < 0.2


def test_over_many_cases_the_estimate_is_hardly_biased_and_follows_the_simulation(cluster_of):
    cluster, models = cluster_of(16, 8, 4), list(MODELS.values())
    both = []
    for seed in range(30):
        random = np.random.default_rng([7, seed])
        hosts = random.permutation(16)
        routes = [tuple(f"h{h}" for h in hosts[2 * i : 2 * i + 2]) for i in range(6)]
        jobs = [profile(models[random.integers(13)], f"j{i}", 16, 2, CAPACITY) for i in range(6)]
        shifts = [random.random() * job.period for job in jobs]
        run = simulate_jobs(cluster.network, jobs, list(link_uses(cluster, routes)), shifts=shifts, iterations=200)
        both.append((slowdowns(cluster, jobs, routes, shifts)[0], run.slowdowns))
    estimate, fluid = (np.concatenate(part) for part in zip(*both, strict=True))
    assert estimate.mean() - 1 == pytest.approx(fluid.mean() - 1, rel=0.3)
    assert np.corrcoef(estimate, fluid)[0, 1] > 0.85


def test_nothing_is_left_of_a_job_that_has_gone(cluster_of):
    traffic = ClusterTraffic(cluster_of(oversubscription=1.0))
    a, b, c = (
        traffic.add(half_and_half(name), route, 0.0) for name, route in zip("abc", (*PAIR, PAIR[0]), strict=True)
    )
    assert set(traffic.settle()) == {a, b, c}
    over, asked = traffic.excess()
    assert asked > over > 0
    assert min(a.slowdown, b.slowdown, c.slowdown) > 1
    traffic.remove(b)
    traffic.remove(c)
    traffic.settle()
    assert a.slowdown == 1.0
    assert traffic.excess()[0] == 0
    traffic.remove(a)
    assert not traffic.demand.any()


def job(name, period, up, rate=CAPACITY):
    return PeriodicJob(name, 2, period, (JobPhase(0.0, up, rate),))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (job("a", 0.04, 0.01), job("b", 0.06, 0.01)),  # CASSINI's example: 40 and 60 ms, score 1
        (job("a", 0.2, 0.1), job("b", 0.2, 0.1)),
        (job("a", 0.2, 0.15), job("b", 0.2, 0.1)),
        (job("a", 0.1, 0.05), job("b", 0.2, 0.05, 0.5 * CAPACITY)),
    ],
)
def test_score_and_shift_are_as_good_as_the_link_score_of_the_paper(cluster_of, a, b):
    """Both jobs share only the port of h0 and that of h1; instants are a sample of the unified circle."""
    traffic = ClusterTraffic(cluster_of(4, 8, 2, oversubscription=1.0))
    ranking = CassiniRanking(traffic)
    traffic.add(a, ("h0", "h1"), 0.0)
    chosen, shift, score = ranking.best(b, [("h0", "h1")])
    assert chosen == 0
    assert 0 <= shift < b.period
    expected = score_link([a, b], CAPACITY, angles=720).score
    assert score == pytest.approx(expected, abs=0.03)


def test_a_placement_that_shares_no_link_is_best_and_needs_no_shift(cluster_of):
    traffic = ClusterTraffic(cluster_of(8, 8, 2))
    traffic.add(job("a", 0.2, 0.15), ("h0", "h1"), 0.0)
    routes = [("h0", "h1"), ("h2", "h3")]
    assert CassiniRanking(traffic).best(job("b", 0.2, 0.15), routes) == (1, 0.0, 1.0)
    assert CassiniRanking(traffic).best(job("b", 0.2, 0.15), routes[::-1])[0] == 0


def test_jobs_are_shifted_apart_and_the_fluid_simulation_agrees(cluster_of):
    cluster, jobs = cluster_of(4, 8, 2), [job("a", 0.2, 0.1), job("b", 0.2, 0.1)]
    traffic = ClusterTraffic(cluster)
    first = traffic.add(job("a", 0.2, 0.1), ("h0", "h1"), 0.03)
    shift = CassiniRanking(traffic).best(job("b", 0.2, 0.1), [("h0", "h1")])[1]
    assert np.mod(shift - 0.03, 0.2) == pytest.approx(0.1, abs=0.2 / 72)
    second = traffic.add(job("b", 0.2, 0.1), ("h0", "h1"), shift)
    traffic.settle()
    assert max(first.slowdown, second.slowdown) < 1.02
    use = list(link_uses(cluster, [("h0", "h1")] * 2))
    run = simulate_jobs(cluster.network, jobs, use, shifts=[0.03, shift], iterations=50)
    assert run.slowdowns.max() < 1.02
    assert simulate_jobs(cluster.network, jobs, use, iterations=50).slowdowns.min() > 1.4
