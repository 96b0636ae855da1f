import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.in_network.atp import atp, atp_cost
from commsim.core.checking.check import check
from commsim.core.cost import LogGP
from commsim.core.errors import InputError


@given(n_ranks=st.integers(1, 8), n_chunks=st.integers(1, 12), pool=st.integers(1, 12), collision=st.floats(0, 1))
def test_any_share_of_collisions_is_an_all_reduce(n_ranks, n_chunks, pool, collision):
    check(atp(n_ranks, n_chunks, pool, collision))


@pytest.mark.parametrize("collision", [0.0, 0.25, 1.0])
def test_the_server_receives_collisions_from_every_rank_and_the_rest_once(collision):
    n_ranks = 6
    sent, received, _ = volumes(atp(n_ranks, 16, collision=collision))
    assert received[-1] == 1 + collision * (n_ranks - 1)
    assert sent[-1] == 1
    np.testing.assert_array_equal(sent[:n_ranks], 1)
    np.testing.assert_array_equal(received[:n_ranks], 1)


def test_collisions_are_spread_evenly_and_rounded_to_whole_chunks():
    def straight(n_chunks, collision):
        transfers = atp(2, n_chunks, collision=collision).expand()
        return sorted({*transfers["dst_chunk"][(transfers["src"] == 0) & (transfers["dst"] == 3)].tolist()})

    assert straight(8, 0.25) == [3, 7]
    assert straight(8, 0.3) == [3, 7]
    assert straight(5, 0.9) == [1, 2, 3, 4]  # 4.5 rounds to even
    assert straight(4, 0.1) == []


def test_racks_add_first_and_then_the_switch_of_the_server():
    tree = (4, 4, 5, 5, 5, 6, -1)
    sent, received, _ = volumes(atp(4, 2, tree=tree))
    assert received[4:].tolist() == [2 + 1, 2 + 1 + 1, 1]  # from children, and the result from above
    assert sent[4:].tolist() == [1 + 2, 1 + 3, 1]


def test_with_collisions_there_is_no_closed_form():
    assert atp_cost(4, 1.0, LogGP(B=1.0), n_chunks=1) == 4
    with pytest.raises(InputError, match="atp has a closed form without collisions only"):
        atp_cost(4, 1.0, LogGP(), collision=0.5)
    assert atp_cost(1, 1.0, LogGP(), collision=0.5) == 0


@pytest.mark.parametrize("collision", [-0.1, 1.5, float("nan")])
def test_what_is_no_share_is_refused(collision):
    with pytest.raises(InputError, match="atp: collision must be a share of the chunks from 0 to 1, got"):
        atp(4, collision=collision)
