import numpy as np
import pytest

from commsim.cluster.cassini import Ranking
from commsim.cluster.traffic import Traffic
from commsim.placement.link_use import link_uses
from commsim.placement.score import score_link
from commsim.workload.sharing.periodic import PeriodicJob, Phase
from commsim.workload.sharing.shared_links import simulate_jobs

CAPACITY = 12.5e9


def job(name, period, up, rate=CAPACITY):
    return PeriodicJob(name, 2, period, (Phase(0.0, up, rate),))


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
    traffic = Traffic(cluster_of(4, 8, 2, oversubscription=1.0))
    ranking = Ranking(traffic)
    traffic.add(a, ("h0", "h1"), 0.0)
    chosen, shift, score = ranking.best(b, [("h0", "h1")])
    assert chosen == 0
    assert 0 <= shift < b.period
    expected = score_link([a, b], CAPACITY, angles=720).score
    assert score == pytest.approx(expected, abs=0.03)


def test_a_placement_that_shares_no_link_is_best_and_needs_no_shift(cluster_of):
    traffic = Traffic(cluster_of(8, 8, 2))
    traffic.add(job("a", 0.2, 0.15), ("h0", "h1"), 0.0)
    routes = [("h0", "h1"), ("h2", "h3")]
    assert Ranking(traffic).best(job("b", 0.2, 0.15), routes) == (1, 0.0, 1.0)
    assert Ranking(traffic).best(job("b", 0.2, 0.15), routes[::-1])[0] == 0


def test_jobs_are_shifted_apart_and_the_fluid_simulation_agrees(cluster_of):
    cluster, jobs = cluster_of(4, 8, 2), [job("a", 0.2, 0.1), job("b", 0.2, 0.1)]
    traffic = Traffic(cluster)
    first = traffic.add(job("a", 0.2, 0.1), ("h0", "h1"), 0.03)
    shift = Ranking(traffic).best(job("b", 0.2, 0.1), [("h0", "h1")])[1]
    assert np.mod(shift - 0.03, 0.2) == pytest.approx(0.1, abs=0.2 / 72)
    second = traffic.add(job("b", 0.2, 0.1), ("h0", "h1"), shift)
    traffic.settle()
    assert max(first.slowdown, second.slowdown) < 1.02
    use = list(link_uses(cluster, [("h0", "h1")] * 2))
    run = simulate_jobs(cluster.network, jobs, use, shifts=[0.03, shift], iterations=50)
    assert run.slowdowns.max() < 1.02
    assert simulate_jobs(cluster.network, jobs, use, iterations=50).slowdowns.min() > 1.4
