import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.cluster import Cluster
from commsim.placement.crux import (
    CruxJob,
    best_runs,
    compress,
    contention,
    correction,
    crux_job,
    cut_weight,
    priorities,
    times_on_link,
    utilisation,
)
from commsim.placement.crux_plan import choose_paths, plan_crux
from commsim.training.sharing.periodic import JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import simulate_jobs
from topologies.leaf_spine import leaf_spine

J1 = CruxJob("J1", 10, 10, Fraction(2), Fraction(2))
J2 = CruxJob("J2", 10, 5, Fraction(1), Fraction(1))


def test_example_1_is_met_exactly():
    """Both begin by sending; in 12 s the first order gives 6 + 3 s of computing, the second 4 + 6 s."""
    assert times_on_link([J1, J2], Fraction(12)) == ([6, 3], [6, 3])
    assert times_on_link([J2, J1], Fraction(12)) == ([6, 4], [6, 4])
    assert utilisation([J1, J2], Fraction(12)) == Fraction(375, 1000)
    assert utilisation([J2, J1], Fraction(12)) == Fraction(10, 24)
    assert round(100 * utilisation([J2, J1], 12.0), 1) == 41.7
    assert correction(J2, J1, Fraction(12)) == Fraction(3, 2)
    assert J1.intensity == J2.intensity == 5
    assert priorities([J1, J2], Fraction(12)).tolist() == [5.0, 7.5]  # so J2 goes first, which is the better order


jobs = st.builds(
    lambda compute, network, gpus: CruxJob("j", gpus, gpus * compute, Fraction(compute), Fraction(network)),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 4),
)


@given(a=jobs, b=jobs)
def test_who_has_the_larger_priority_does_the_most_work_by_going_first(a, b):
    window = Fraction(200)
    reference, other = (a, b) if a.network_time >= b.network_time else (b, a)
    k = correction(other, reference, window)
    work = [
        sum(job.intensity * time for job, time in zip(order, times_on_link(order, window)[0], strict=True))
        for order in ([other, reference], [reference, other])
    ]
    gains = [
        times_on_link([one, two], window)[0][0] - times_on_link([two, one], window)[0][1]
        for one, two in ((other, reference), (reference, other))
    ]
    if min(gains) > 0:  # else going first gains nothing, and there is nothing to compare
        assert (other.intensity * k > reference.intensity) == (work[0] > work[1])
        assert (other.intensity * k == reference.intensity) == (work[0] == work[1])


@given(order=st.lists(jobs, min_size=1, max_size=4), window=st.integers(1, 60))
def test_the_link_is_never_shared_and_the_first_never_waits(order, window):
    network, compute = times_on_link(order, Fraction(window))
    assert sum(network) <= window
    assert network[0] + compute[0] == window
    assert all(busy + idle <= window for busy, idle in zip(network, compute, strict=True))


@given(
    parts=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)),
    order=st.lists(jobs, max_size=3),
    window=st.integers(1, 9),
)
def test_the_first_job_keeps_the_pace_that_its_overlap_allows(parts, order, window):
    """An iteration is as long as what overlaps or the communication, and then the rest of the computation."""
    beside, rest, sending = map(Fraction, parts)
    job = CruxJob("j", 1, 1, beside + rest, sending, beside)
    length = max(beside, sending) + rest
    network, compute = times_on_link([job, *order], window * length)
    assert (network[0], compute[0]) == (window * sending, window * (beside + rest))


def test_a_job_that_computes_while_it_sends_can_fill_the_link():
    """Both send 2 s and compute 2 s. The one that does both at once leaves nothing, the other half of the link."""
    plain = CruxJob("plain", 10, 20, Fraction(2), Fraction(2))
    hiding = CruxJob("hiding", 10, 20, Fraction(2), Fraction(2), Fraction(2))
    assert times_on_link([hiding, plain], Fraction(40)) == ([40, 0], [40, 0])
    assert times_on_link([plain, hiding], Fraction(40)) == ([20, 20], [20, 20])
    assert times_on_link([plain, plain], Fraction(40)) == ([20, 20], [20, 18])


def test_an_overlap_is_part_of_the_computation():
    with pytest.raises(InputError, match="j: overlap must be 0 or more and at most its computation, 2"):
        CruxJob("j", 1, 1, 2.0, 1.0, 3.0)


def test_a_job_that_needs_no_network_computes_all_the_time_and_the_link_is_not_its():
    local = CruxJob("local", 1, 1, 2.0, 0.0)
    assert times_on_link([local, J2], 8.0) == ([0, 4], [8, 4])
    assert local.intensity == math.inf
    assert correction(CruxJob("a", 1, 1, 3.0, 1.0), CruxJob("b", 1, 1, 3.0, 1.0), 64.0) == 1.0


def test_a_placed_job_is_described_by_its_most_loaded_link():
    one = PeriodicJob("a", 4, 10.0, (JobPhase(0.0, 4.0, 8.0),))
    known = crux_job(one, [8.0, 4.0, 1.0], [1.0, 1.0, 0.0])
    assert (known.compute_time, known.network_time, known.work) == (6.0, 8.0, 24.0)
    assert known.intensity == 3.0
    beside = PeriodicJob("a", 4, 10.0, (JobPhase(0.0, 4.0, 8.0, 3.0),))
    known = crux_job(beside, [8.0, 4.0, 1.0], [1.0, 1.0, 0.0])
    assert (known.compute_time, known.overlap, known.work) == (9.0, 3.0, 36.0)


def test_the_compression_of_example_3_is_the_best():
    """Jobs 1 and 2 share a link, 3 and 4 another: 1 and 3 go high, 2 and 4 low."""
    use = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], float)
    intensity = np.array([4.0, 3.0, 2.0, 1.0])
    weights = contention(intensity, intensity, use)
    for seed in range(5):
        levels = compress(weights, 2, seed=seed)
        assert levels.tolist() == [0, 1, 0, 1]
        assert cut_weight(weights, levels) == 6.0
    assert cut_weight(weights, [0, 1, 1, 1]) == 4.0  # {1} before {2, 3, 4}, as Sincronia's order would be cut
    assert cut_weight(weights, [0, 0, 1, 1]) == 0.0  # {1, 2} before {3, 4}, as Varys's would be


graphs = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 9), min_size=n, max_size=n),
        st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=n, max_size=n),
        st.permutations(range(n)),
    )
)


def exhaustive(weights, n_levels):
    """The heaviest cut of all levels that keep the order along every edge."""
    n = len(weights)
    edges = np.argwhere(weights > 0)
    best = 0.0
    for levels in itertools.product(range(n_levels), repeat=n):
        if all(levels[i] <= levels[j] for i, j in edges):
            best = max(best, cut_weight(weights, levels))
    return best


@given(graph=graphs, n_levels=st.integers(1, 4), seed=st.integers(0, 9))
def test_dynamic_programming_over_all_orders_is_exhaustive_search(graph, n_levels, seed):
    intensity, use, rank = graph
    weights = contention(intensity, rank, np.array(use, float))
    n = len(intensity)
    orders = [
        order
        for order in itertools.permutations(range(n))
        if all(order.index(i) < order.index(j) for i, j in np.argwhere(weights > 0))
    ]
    best = max(cut_weight(weights, best_runs(weights, order, n_levels)) for order in orders)
    assert best == exhaustive(weights, n_levels)
    levels = compress(weights, n_levels, seed=seed)
    assert cut_weight(weights, levels) <= best
    assert levels.max() < n_levels
    assert all(levels[i] <= levels[j] for i, j in np.argwhere(weights > 0))


def test_ten_orders_come_close_to_the_best():
    random = np.random.default_rng(0)
    ratios = []
    for _ in range(40):
        weights = contention(random.uniform(1, 9, 6), random.uniform(1, 9, 6), random.random((6, 4)) < 0.4)
        best = exhaustive(weights, 3)
        if best:
            ratios.append(cut_weight(weights, compress(weights, 3)) / best)
    assert np.mean(ratios) > 0.95


def test_paths_avoid_those_who_chose_before():
    network = leaf_spine(n_leaves=2, n_spines=2, hosts_per_leaf=2)
    h = {name: i for i, name in enumerate(network.nodes)}
    rings = [[(h["h0"], h["h2"]), (h["h2"], h["h0"])], [(h["h1"], h["h3"]), (h["h3"], h["h1"])]]
    for seed in range(8):
        paths = choose_paths(network, rings, [1e9, 1e9], [1.0, 2.0], seed=seed)
        assert paths.use.sum(axis=0).max() == 1.0
    only = [choose_paths(network, rings, [1e9, 1e9], [1.0, 2.0], n_ports=1, seed=seed) for seed in range(8)]
    assert max(paths.use.sum(axis=0).max() for paths in only) == 2.0


def placed(name, nodes, up):
    return PeriodicJob(name, len(nodes), 0.2, (JobPhase(0.0, up, 6.25e9),), nodes)


def test_a_plan_sends_jobs_on_different_ways_and_puts_those_that_meet_on_different_levels():
    network = leaf_spine(n_leaves=2, n_spines=1, hosts_per_leaf=3, bandwidth=6.25e9)
    cluster = Cluster(network, np.where(np.arange(network.n_nodes) < 6, 1, 0))
    jobs = [placed("long", ("h0", "h3"), 0.15), placed("short", ("h1", "h4"), 0.05), placed("local", ("h2",), 0.1)]
    plan = plan_crux(cluster, jobs, n_levels=2)
    assert plan.use[2].sum() == 0
    np.testing.assert_allclose(plan.intensity, [0.1 / 0.15, 0.3 / 0.05, 0.0])
    assert plan.level[1] == 0
    assert plan.level[0] == 1
    run = simulate_jobs(network, jobs, plan.use, sharing="priority", priorities=plan.level, iterations=20)
    assert run.slowdowns[1] == pytest.approx(1.0)
    with pytest.raises(InputError, match="a: Crux needs a placement"):
        plan_crux(cluster, [PeriodicJob("a", 1, 1.0, ())])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CruxJob("a", 1, 1.0, 0.0, 0.0), "a: work and times must be 0 or more"),
        (lambda: CruxJob("a", 1, math.nan, 1.0, 0.0), "a: work and times must be 0 or more"),
        (lambda: times_on_link([J1], 0), "the window must be positive"),
        (lambda: priorities([]), "priorities need at least one job"),
        (lambda: compress(np.zeros((2, 2)), 0), "levels and orders must be at least 1, got 0 and 10"),
        (lambda: compress(np.ones((2, 2)), 2), "the edges go round in a circle"),
        (lambda: choose_paths(leaf_spine(2, 2, 1), [], [], [], n_ports=0), "at least 1 port"),
        (lambda: crux_job(PeriodicJob("a", 1, 1.0, (JobPhase(0.0, 1.0, 1.0),)), [1.0], [0.0]), "a: neither computes"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
