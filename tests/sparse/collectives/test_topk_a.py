import numpy as np
import pytest
from conserved import as_dict, lost, rounding
from hypothesis import given
from hypothesis import strategies as st
from slow_selection import selected, slow_gtop_k, slow_topk_a
from sparse_run import run_sparse

from collectives import COLLECTIVES
from collectives.sparse.topk_a import every_sum, gtop_k, topk_a
from commsim.core.errors import InputError
from commsim.core.schedule import REDUCE
from commsim.sparse.generate import PATTERNS, drawn_gradients, drawn_occupancy
from commsim.sparse.sparse_vector import SparseVector

FORM = COLLECTIVES["topk_a"].metadata["sparse"]


@given(n_ranks=st.integers(1, 9), n=st.integers(1, 60), whole=st.booleans(), data=st.data())
def test_it_is_the_sum_of_the_lists_and_what_is_not_selected_stays(n_ranks, n, whole, data):
    k, seed = data.draw(st.integers(1, n)), data.draw(st.integers(0, 99))
    gradients = drawn_gradients(drawn_occupancy(n_ranks, n, density=1.0), seed=seed, whole=whole)
    vectors = [SparseVector.from_dense(gradient).top_k(k) for gradient in gradients]
    run = run_sparse(topk_a(n_ranks), vectors)
    slow, _ = slow_topk_a([selected(gradient, k) for gradient in gradients])
    assert all(as_dict(output) == as_dict(run.outputs[0]) for output in run.outputs)
    assert as_dict(run.outputs[0]) == slow
    residuals = [gradient - vector.to_dense() for gradient, vector in zip(gradients, vectors, strict=True)]
    left = lost(gradients, run.outputs[0].to_dense(), residuals)
    assert not left.any() if whole else (np.abs(left) <= rounding(gradients)).all()


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("n_ranks", [2, 4, 8, 16])
def test_every_rank_sends_the_other_lists_times_two_numbers(n_ranks, pattern):
    schedule, k = topk_a(n_ranks), 25
    transfers = schedule.expand()
    occupancy = drawn_occupancy(n_ranks, 1000, density=0.025, pattern=pattern)
    sent = np.where(transfers["src"] == transfers["dst"], 0, FORM.transfer_bytes(schedule, occupancy, {}))
    for end in ("src", "dst"):  # 2k(p-1) numbers of 4 bytes
        assert np.bincount(transfers[end], sent).tolist() == [4 * 2 * k * (n_ranks - 1)] * n_ranks


def test_more_elements_than_there_are_cannot_be_selected():
    with pytest.raises(InputError, match=r"top-k of 3 elements needs k of 0\.\.3, got k=4"):
        SparseVector.from_dense(np.ones(3)).top_k(4)


GTOP_K_FORM = COLLECTIVES["gtop_k"].metadata["sparse"]


@given(n_ranks=st.integers(1, 9), n=st.integers(1, 60), whole=st.booleans(), data=st.data())
def test_it_selects_again_after_every_sum_and_loses_nothing(n_ranks, n, whole, data):
    k, seed = data.draw(st.integers(1, n)), data.draw(st.integers(0, 99))
    gradients = drawn_gradients(drawn_occupancy(n_ranks, n, density=1.0), seed=seed, whole=whole)
    vectors = [SparseVector.from_dense(gradient).top_k(k) for gradient in gradients]
    schedule = gtop_k(n_ranks)
    run = run_sparse(schedule, vectors, keep=every_sum(schedule, k))
    slow, cut, sent = slow_gtop_k([selected(gradient, k) for gradient in gradients], k)
    assert all(as_dict(output) == slow for output in run.outputs)
    assert len(slow) <= k
    assert [as_dict(residual) for residual in run.residuals] == cut
    up = schedule.expand()["op"] == REDUCE
    assert np.bincount(schedule.expand()["src"][up], run.sent[up], minlength=n_ranks).tolist() == sent
    residuals = [g - v.to_dense() + r.to_dense() for g, v, r in zip(gradients, vectors, run.residuals, strict=True)]
    left = lost(gradients, run.outputs[0].to_dense(), residuals)
    assert not left.any() if whole else (np.abs(left) <= rounding(gradients)).all()


def test_what_the_authors_would_lose_is_kept():
    # Index 0 is cut where ranks 0 and 1 meet, but survives by ranks 2 and 3; its part of ranks 0 and 1 is a residual.
    gradients = np.array([[1, 5, 0], [1, 4, 0], [6, 0, 0], [6, 0, 0]], np.float32)
    schedule = gtop_k(4)
    order = [0, 2, 1, 3]  # the tree adds rank r + 2 to rank r first
    vectors = [SparseVector.from_dense(gradients[r]).top_k(2) for r in order]
    run = run_sparse(schedule, vectors, keep=every_sum(schedule, 1))
    assert as_dict(run.outputs[0]) == {0: 12.0}
    assert sum(residual.to_dense() for residual in run.residuals).tolist() == [2.0, 9.0, 0.0]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("n_ranks", [2, 4, 5, 8, 16])
def test_no_message_is_longer_than_two_k_numbers(n_ranks, pattern):
    occupancy = drawn_occupancy(n_ranks, 1000, density=0.025, pattern=pattern)
    n_bytes = GTOP_K_FORM.transfer_bytes(gtop_k(n_ranks), occupancy, {})
    assert n_bytes.tolist() == [4 * 2 * 25.0] * (2 * (n_ranks - 1))
