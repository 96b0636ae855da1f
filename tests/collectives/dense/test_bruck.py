import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.bruck import blocks_of_round, bruck_all_gather, bruck_all_to_all
from commsim.core.errors import InputError
from commsim.core.program import Program


@given(n_ranks=st.integers(1, 200))
def test_a_gather_takes_the_logarithm_of_rounds_and_the_least_volume(n_ranks):
    sent, received, messages = volumes(bruck_all_gather(n_ranks))
    np.testing.assert_allclose(sent, (n_ranks - 1) / n_ranks)
    np.testing.assert_allclose(received, sent)
    assert (messages == np.ceil(np.log2(n_ranks))).all()


@given(n_ranks=st.integers(1, 40))
@settings(max_examples=settings().max_examples * 2 // 3)
def test_an_exchange_takes_the_logarithm_of_rounds_for_more_volume(n_ranks):
    sent, received, messages = volumes(bruck_all_to_all(n_ranks))
    # a block for the rank d further on travels once for every bit of d
    np.testing.assert_allclose(sent, sum(d.bit_count() for d in range(n_ranks)) / n_ranks)
    np.testing.assert_allclose(received, sent)
    assert (messages == np.ceil(np.log2(n_ranks))).all()


@given(n_ranks=st.integers(1, 5000), bit=st.integers(0, 12))
def test_the_blocks_of_a_round_are_the_numbers_with_its_bit(n_ranks, bit):
    assert blocks_of_round(n_ranks, 2**bit) == sum(1 for i in range(n_ranks) if i & 2**bit)


@pytest.mark.parametrize("n_ranks", [2, 3, 8, 11])
def test_each_round_is_a_stage_with_one_partner(n_ranks):
    for build in (bruck_all_gather, bruck_all_to_all):
        transfers = build(n_ranks).expand()
        moving = transfers[transfers["src"] != transfers["dst"]]
        assert len(moving) == n_ranks * len(np.unique(moving["stage"]))
        for stage in np.unique(moving["stage"]):
            now = moving[moving["stage"] == stage]
            assert len(np.unique((now["dst"] - now["src"]) % n_ranks)) == 1


def test_too_many_ranks_are_refused_before_rounds_are_written() -> None:
    tracemalloc.start()
    with pytest.raises(InputError, match="at most 33554432 transfers one by one, and this one has 33603584 for 4096"):
        bruck_all_to_all(4096)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6


@pytest.mark.parametrize("n_ranks", [1, 2, 7, 64, 100])
def test_the_transfers_that_it_asks_room_for_are_those_that_it_lists(n_ranks, monkeypatch):
    asked, room_for = [], Program.room_for
    monkeypatch.setattr(Program, "room_for", lambda p, n: asked.append(n) or room_for(p, n))
    assert sum(len(block.body) for block in bruck_all_to_all(n_ranks).blocks) == asked[0]
