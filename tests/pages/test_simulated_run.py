import numpy as np
import pytest

from commsim.core.cost import Framing
from commsim.pages.simulated_run import link_bins, simulate_run
from commsim.prediction.build import prepare
from commsim.prediction.scenario import Wish

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us"


@pytest.mark.parametrize("engine", ["flow", "alpha-beta", "packet"])
@pytest.mark.parametrize("routing", ["ecmp", "spray"])
def test_bins_add_up_to_what_the_engine_says_that_links_carried(engine, routing):
    prepared = prepare("ring_all_reduce", NETWORK, routing=None if engine == "packet" else routing)
    run = simulate_run("ring", prepared, 2**16, Wish.of(engine))
    bins = link_bins(run, 37, 10**6)
    carried = run.result.link_bytes
    np.testing.assert_allclose(bins.n_bytes.sum(axis=1), carried[bins.link], rtol=1e-9)
    assert set(bins.link) == set(np.flatnonzero(carried))


def test_headers_are_counted():
    run = simulate_run("ring", prepare("ring_all_reduce", NETWORK), 2**20, Wish(framing=Framing(1024.0, 100.0)))
    bins = link_bins(run, 10, 5)
    np.testing.assert_allclose(bins.n_bytes.sum(axis=1), run.result.link_bytes[bins.link], rtol=1e-9)


def test_no_link_of_the_flow_engine_is_more_than_full():
    run = simulate_run("all", prepare("pairwise_all_to_all", NETWORK), 2**20)
    assert link_bins(run, 50, 10**6).load.max() <= 1 + 1e-9


def test_a_window_holds_the_part_of_the_bytes_that_moved_in_it():
    run = simulate_run("ring", prepare("ring_all_reduce", NETWORK), 2**20)
    half = run.result.time / 2
    whole = link_bins(run, 2, 8)
    parts = [link_bins(run, 7, 8, window) for window in ((0.0, half), (half, 2 * half))]
    for i, part in enumerate(parts):
        np.testing.assert_allclose(part.n_bytes.sum(axis=1), whole.n_bytes[:, i], rtol=1e-9)


def test_only_the_busiest_links_are_kept():
    run = simulate_run("tree", prepare("double_tree_all_reduce", NETWORK), 2**20)
    load = run.result.link_bytes / run.prepared.network.bandwidth
    bins = link_bins(run, 4, 3)
    assert len(bins.link) == 3
    assert load[bins.link].min() >= np.sort(load)[-3]
