import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.ring import gloo_segments, ring_all_gather, ring_all_reduce, ring_reduce_scatter
from commsim.core.checking.check import check


@given(n_ranks=st.integers(1, 40))
def test_every_rank_sends_the_optimal_volume_in_the_papers_number_of_rounds(n_ranks):
    for build, passes in ((ring_all_reduce, 2), (ring_reduce_scatter, 1), (ring_all_gather, 1)):
        schedule = build(n_ranks)
        sent, received, messages = volumes(schedule)
        np.testing.assert_allclose(sent, passes * (n_ranks - 1) / n_ranks)
        np.testing.assert_allclose(received, sent)
        assert (messages == passes * (n_ranks - 1)).all()
        assert schedule.n_hops == passes * (n_ranks - 1)


@pytest.mark.parametrize("build", [ring_all_reduce, ring_reduce_scatter, ring_all_gather])
def test_every_rank_talks_to_the_next_one_only(build):
    transfers = build(7).expand()
    assert (transfers["dst"] == (transfers["src"] + 1) % 7).all()


@pytest.mark.parametrize("build", [ring_all_reduce, ring_reduce_scatter, ring_all_gather])
def test_a_hundred_thousand_ranks_take_a_few_rows_each(build):
    schedule = build(131_072)
    assert sum(len(block.body) for block in schedule.blocks) <= 2 * 131_072
    assert schedule.n_transfers == sum(block.times for block in schedule.blocks) * 131_072


def test_a_ring_of_hundreds_is_proved_by_fingerprints():
    assert check(ring_all_reduce(300)).method == "fingerprint"


@pytest.mark.parametrize("n_ranks", [2, 4, 7])
@pytest.mark.parametrize("mebibytes", [1, 2, 2.5, 3, 8])
def test_gloo_s_segments_are_the_fewest_of_at_most_a_mebibyte(n_ranks, mebibytes):
    chunk = mebibytes * 2**20
    n = gloo_segments(n_ranks, n_ranks * chunk)
    assert chunk / n <= 2**20
    assert n == 2 or chunk / (n - 1) > 2**20
