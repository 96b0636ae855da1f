import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim import predict
from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.papers.systems.kungfu import STRATEGIES, average_pairs, kungfu_all_reduce, pair_averaging
from topologies.star import star


@given(
    strategy=st.sampled_from(STRATEGIES), n_ranks=st.integers(1, 17), seed=st.integers(0, 9), n_hosts=st.integers(1, 5)
)
def test_every_graph_is_an_all_reduce_wherever_its_ranks_are(strategy, n_ranks, seed, n_hosts):
    hosts = np.random.default_rng(seed).integers(0, n_hosts, n_ranks).tolist()
    schedule = kungfu_all_reduce(strategy, n_ranks, hosts)
    check(schedule)
    per_graph = 2 * (n_ranks - 1)
    assert schedule.n_transfers == per_graph * (n_ranks if strategy in ("ring", "clique") else 1)


def test_only_the_hosts_first_ranks_of_a_tree_talk_between_hosts():
    hosts = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for strategy in ("tree", "binary_tree_star"):
        transfers = kungfu_all_reduce(strategy, 9, hosts).expand()
        between = [(int(t["src"]), int(t["dst"])) for t in transfers if hosts[t["src"]] != hosts[t["dst"]]]
        assert {rank for pair in between for rank in pair} <= {0, 3, 6}
        assert len(between) == 4


@pytest.mark.parametrize(("strategy", "in_one_port"), [("star", 7), ("clique", 7 / 8), ("ring", 7 / 8)])
def test_many_graphs_share_the_load_that_a_star_puts_on_its_centre(strategy, in_one_port):
    network = star(8, 1e9, 0.0)
    found = predict(
        kungfu_all_reduce(strategy, 8), network, 1e9, placement=Placement(network.endpoints[:8]), overhead="0us"
    )
    ways = 1 if strategy == "star" else 2
    assert found.link_bytes.max() == pytest.approx(ways * in_one_port * 1e9)
    assert found.time >= 2 * in_one_port * (1 - 1e-9)


def test_pairs_are_drawn_evenly_and_never_from_oneself():
    peers = pair_averaging(5, 20_000, seed=3)
    assert np.array_equal(peers, pair_averaging(5, 20_000, seed=3))
    counts = np.array([np.bincount(peers[:, rank], minlength=5) for rank in range(5)])
    assert (np.diag(counts) == 0).all()
    assert counts[~np.eye(5, dtype=bool)] == pytest.approx(5000, rel=0.05)


def test_averaging_with_random_peers_brings_models_together():
    models = np.arange(16.0)
    for peers in pair_averaging(16, 40):
        models = average_pairs(models, peers)
    assert np.ptp(models) < 1e-3
    assert 0 < models[0] < 15


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kungfu_all_reduce("torus", 4), "unknown strategy 'torus'; known: star, ring"),
        (lambda: kungfu_all_reduce("tree", 4, [0, 1]), "got 4 ranks and 2 hosts"),
        (lambda: pair_averaging(1, 1), "needs 2 ranks"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
