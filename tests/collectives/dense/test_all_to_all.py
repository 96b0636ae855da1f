import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.all_to_all import direct_all_to_all, pairwise_all_to_all
from commsim.core.data_order.dependencies import dependencies

BOTH = pytest.mark.parametrize("build", [direct_all_to_all, pairwise_all_to_all])


@BOTH
@given(n_ranks=st.integers(1, 40))
def test_every_rank_sends_one_block_to_every_other(build, n_ranks):
    schedule = build(n_ranks)
    sent, received, messages = volumes(schedule)
    np.testing.assert_allclose(sent, (n_ranks - 1) / n_ranks)
    np.testing.assert_allclose(received, sent)
    assert (messages == n_ranks - 1).all()
    pairs = np.stack((schedule.expand()["src"], schedule.expand()["dst"]), axis=1)
    assert len(np.unique(pairs, axis=0)) == n_ranks**2  # the local copies are among them


@given(n_ranks=st.integers(1, 20))
def test_nothing_of_the_direct_one_waits(n_ranks):
    schedule = direct_all_to_all(n_ranks)
    assert len(dependencies(schedule, schedule.expand()).pred) == 0


@pytest.mark.parametrize("n_ranks", [2, 5, 8, 12, 16])
def test_pairwise_rounds_have_one_partner_each(n_ranks):
    transfers = pairwise_all_to_all(n_ranks).expand()
    moving = transfers[transfers["src"] != transfers["dst"]]
    for stage in np.unique(moving["stage"]):
        now = moving[moving["stage"] == stage]
        assert sorted(now["src"].tolist()) == sorted(now["dst"].tolist()) == list(range(n_ranks))
    assert len(np.unique(moving["stage"])) == n_ranks - 1


@pytest.mark.parametrize("n_ranks", [2, 4, 8, 16])
def test_partners_of_a_power_of_two_exchange(n_ranks):
    transfers = pairwise_all_to_all(n_ranks).expand()
    pairs = {(int(t["stage"]), int(t["src"]), int(t["dst"])) for t in transfers[n_ranks:]}
    assert pairs == {(stage, dst, src) for stage, src, dst in pairs}


@BOTH
@pytest.mark.parametrize("n_ranks", [131_072, 100_000])
def test_a_hundred_thousand_ranks_take_a_row_or_two_each(build, n_ranks):
    schedule = build(n_ranks)
    assert sum(len(block.body) for block in schedule.blocks) <= 2 * n_ranks
    assert schedule.n_transfers == n_ranks**2
