"""On small graphs the optimum of trees is that of all ways to use all spanning trees, by a program over every tree."""

import itertools

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from random_networks import networks

from commsim.ranking.synthesis.trees.free_roots import free_roots
from commsim.ranking.synthesis.trees.optimum import optimum
from commsim.ranking.synthesis.trees.whole_rates import whole_network


def spanning_trees(n, arcs, root):
    """Every way to give each rank but the root one arc that enters it, such that all are reached."""
    into = [[e for e, (_, b) in enumerate(arcs) if b == v] for v in range(n) if v != root]
    for chosen in itertools.product(*into):
        reached, grew = {root}, True
        while grew:
            more = {arcs[e][1] for e in chosen if arcs[e][0] in reached} - reached
            reached, grew = reached | more, bool(more)
        if len(reached) == n:
            yield chosen


def small_networks(ranks):
    return networks(max_ranks=ranks, max_switches=0).filter(lambda network: network.n_links <= 14)


def arcs_of(whole, backwards=False):
    ends = (whole.dst, whole.src) if backwards else (whole.src, whole.dst)
    return list(zip(*(end.tolist() for end in ends), strict=True))


@settings(max_examples=6)
@given(small_networks(5), st.integers(0, 4), st.booleans())
def test_no_mixture_of_trees_copies_sooner(network, seed, rooted):
    whole = whole_network(network, network.endpoints.astype(np.int32))
    n, arcs = whole.n_ranks, arcs_of(whole)
    weight = np.eye(n, dtype=np.int64)[seed % n] if rooted else np.ones(n, np.int64)
    trees = [(root, tree) for root in np.flatnonzero(weight).tolist() for tree in spanning_trees(n, arcs, root)]
    # least T such that each root's trees carry its weight, and no arc carries more than T times its rate
    use, share = np.zeros((len(arcs), 1 + len(trees))), np.zeros((n, 1 + len(trees)))
    use[:, 0] = -whole.rate
    for column, (root, tree) in enumerate(trees, 1):
        use[list(tree), column] = share[root, column] = 1.0
    cost = np.eye(1, 1 + len(trees))[0]
    found = scipy.optimize.linprog(cost, use, np.zeros(len(arcs)), share[weight > 0], weight[weight > 0])
    assert found.fun == pytest.approx(float(optimum(whole, weight).per_unit), rel=1e-7)


@settings(max_examples=6)
@given(small_networks(4))
def test_no_mixture_of_trees_up_and_down_reduces_sooner(network):
    whole = whole_network(network, network.endpoints.astype(np.int32))
    n = whole.n_ranks
    trees = [
        (root, tree, up)
        for up in (False, True)
        for root in range(n)
        for tree in spanning_trees(n, arcs_of(whole, backwards=up), root)
    ]
    # as above, but a root's trees in both directions carry x, and all x together are 1
    use, same = np.zeros((len(whole.src), 1 + len(trees))), np.zeros((n + 1, 1 + len(trees)))
    use[:, 0] = -whole.rate
    for column, (root, tree, up) in enumerate(trees, 1):
        use[list(tree), column] = 1.0
        same[root, column] = -1.0 if up else 1.0
        same[n, column] = 0.0 if up else 1.0
    cost = np.eye(1, 1 + len(trees))[0]
    found = scipy.optimize.linprog(cost, use, np.zeros(len(use)), same, np.eye(n + 1)[n])
    plan = free_roots(whole)
    assert found.fun == pytest.approx(float(1 / plan.bound), rel=1e-6)
    assert float(plan.rate / plan.bound) > 0.998
