"""CASSINI's scores of shifts: those of all links and instants, though what cannot be exceeded is left out."""

import numpy as np
import pytest

from commsim.placement.cluster import read_cluster
from commsim.placement.clusters.contention.cassini_ranking import SHIFTS, CassiniRanking
from commsim.placement.clusters.contention.traffic import ClusterTraffic
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob

SPEC = "leaf_spine:n_leaves=3,n_spines=1,hosts_per_leaf=3,bandwidth=50Gbps"


def job(name, period, *phases):
    return PeriodicJob(name, 2, period, tuple(JobPhase(a, b, rate * GBPS) for a, b, rate in phases))


@pytest.fixture
def traffic():
    made = ClusterTraffic(read_cluster({"topology": {"spec": SPEC}, "hosts": {"gpus": 2}}))
    made.add(job("a", 0.2, (0.0, 0.1, 40)), ("h0", "h3"), 0.0)
    made.add(job("b", 0.15, (0.05, 0.05, 30), (0.1, 0.02, 45)), ("h0", "h6"), 0.03)
    made.add(job("c", 0.1, (0.0, 0.05, 4)), ("h4", "h7"), 0.0)  # beside it all fits
    return made


def brute(traffic, new, links, use):
    scores = []
    for k in range(SHIFTS):
        sent = traffic.demand[links] + use[:, None] * traffic.rates(new, new.period * k / SHIFTS)
        most = traffic.capacity[links][:, None]
        scores.append(1.0 - (np.maximum(sent - most, 0.0) / most).mean())
    return np.array(scores)


@pytest.mark.parametrize("route", [("h0", "h4"), ("h1", "h5"), ("h5", "h8")])
def test_scores_are_those_of_all_links_and_instants(traffic, route):
    new = job("new", 0.2, (0.0, 0.06, 35), (0.1, 0.03, 20))
    ((links, use),) = traffic.uses([route])
    shared = traffic.shared_by_others(links)
    links, use = links[shared], use[shared]
    found = CassiniRanking(traffic)._scores(new, links, use)
    np.testing.assert_allclose(found, brute(traffic, new, links, use), rtol=0, atol=1e-12)


def test_scores_that_are_kept_are_those_of_a_new_look(traffic):
    """Of a job that sends, only links on which something has changed are looked at again."""
    moved, ranking = job("d", 0.2, (0.0, 0.09, 35)), CassiniRanking(traffic)
    sharer = traffic.add(moved, ("h0", "h4", "h7"), 0.02)
    others = [job(name, 0.2, (at, 0.08, 30)) for name, at in (("e", 0.1), ("f", 0.0))]
    routes, sent = [("h4", "h1"), ("h7", "h8", "h2")], list[object]()
    for change in range(5):
        if change in (1, 3):
            sent.append(traffic.add(others[change // 2], routes[change // 2], 0.01))
        elif change == 2:
            traffic.shift(sharer, moved, 0.05)
        elif change == 4:
            traffic.remove(sent[0])
        shared = traffic.with_others(sharer)
        links, use = sharer.links[shared], sharer.use[shared]
        traffic.demand[links] -= use[:, None] * sharer.rates
        wanted = brute(traffic, moved, links, use)
        traffic.demand[links] += use[:, None] * sharer.rates
        found = ranking._kept_scores(moved, sharer, shared)
        assert found.max() - found.min() > 0.01
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_the_first_route_that_loses_nothing_is_taken_and_else_the_best(traffic):
    new, ranking = job("new", 0.2, (0.0, 0.12, 35)), CassiniRanking(traffic)
    routes = [("h0", "h4"), ("h1", "h2"), ("h7", "h8")]
    assert ranking.best(new, routes) == (1, 0.0, 1.0)
    pair = [("h1", "h5"), ("h0", "h3")]
    each = [ranking.best(new, [route])[2] for route in pair]
    assert each[0] < each[1] < 1.0
    assert ranking.best(new, pair)[::2] == (1, each[1])
