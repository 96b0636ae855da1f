import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.binomial_tree import binomial_reduce, binomial_tree_all_reduce
from collectives.dense.broadcast import binomial_broadcast
from commsim.core.schedule import REDUCE


@given(n_ranks=st.integers(1, 100), data=st.data())
def test_every_rank_but_the_root_sends_its_sum_once(n_ranks, data):
    root = data.draw(st.integers(0, n_ranks - 1))
    schedule = binomial_reduce(n_ranks, root)
    sent, received, messages = volumes(schedule)
    assert schedule.n_hops == int(np.ceil(np.log2(n_ranks)))
    assert messages[root] == 0
    assert (np.delete(sent, root) == 1).all()
    assert received[root] == received.max() == schedule.n_hops


@pytest.mark.parametrize("n_ranks", [2, 5, 8, 13])
def test_the_reduce_is_the_broadcast_backwards(n_ranks):
    up, down = binomial_reduce(n_ranks, root=1).expand(), binomial_broadcast(n_ranks, root=1).expand()
    rounds = int(down["hop"].max())
    edges = {(int(t["hop"]), int(t["src"]), int(t["dst"])) for t in up}
    assert edges == {(rounds - int(t["hop"]), int(t["dst"]), int(t["src"])) for t in down}


@given(n_ranks=st.integers(1, 100))
def test_the_all_reduce_goes_up_the_tree_and_down_again(n_ranks):
    schedule = binomial_tree_all_reduce(n_ranks)
    transfers = schedule.expand()
    assert np.count_nonzero(transfers["op"] == REDUCE) == n_ranks - 1 == len(transfers) / 2
    assert schedule.n_hops == 2 * int(np.ceil(np.log2(n_ranks)))
    assert len(np.unique(transfers["stage"])) == schedule.n_hops
