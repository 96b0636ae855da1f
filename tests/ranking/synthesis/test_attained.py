"""A bound is called attained exactly where trees are as fast; else the ratio is that of the two rates."""

import numpy as np
import pytest

from benchmarks.synthesis.networks import NETWORKS
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.ranking.synthesis import lower_bound
from commsim.ranking.synthesis.attained import best_trees

BUILT = {one.name: one for one in (build() for build in NETWORKS)}


@pytest.mark.parametrize("name", ["star8_half", "ring8", "dgx1v", "two_leaves_slow"])
@pytest.mark.parametrize("operation", ["all_gather", "all_reduce"])
def test_published_machines_attain_their_bound(name, operation):
    assert best_trees(lower_bound(operation, BUILT[name])) == 1.0


def test_what_is_not_known_is_not_claimed():
    star = BUILT["star8"]
    assert best_trees(lower_bound("all_to_all", star)) is None
    assert best_trees(lower_bound("all_reduce", star, anywhere=True)) is None
    src, dst = np.array([0, 2, 1, 2]), np.array([2, 0, 2, 1])
    uneven = Network("uneven", ("h0", "h1", "s"), [HOST, HOST, SWITCH], src, dst, [2e9, 1e9, 1e9, 1e9], 1e-6)
    assert best_trees(lower_bound("all_gather", uneven)) is None


def test_the_ratio_is_that_of_the_exact_optimum():
    """All-gather of 3 hosts on a chain: 2 of 3 blocks enter each end, over 1 GB/s."""
    src, dst = both_ways(np.array([0, 1]), np.array([1, 2]))
    chain = Network("chain", ("h0", "h1", "h2"), [HOST] * 3, src, dst, [1e9] * 4, 1e-6)
    bound = lower_bound("all_gather", chain)
    assert bound.rate == pytest.approx(1.5e9)
    assert best_trees(bound) == 1.0
