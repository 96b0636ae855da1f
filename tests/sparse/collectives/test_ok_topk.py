import numpy as np
import pytest
from conserved import as_dict, lost, rounding
from hypothesis import given
from hypothesis import strategies as st
from slow_selection import largest, mean_bounds, selected, slow_ok_topk
from sparse_run import run_sparse

from collectives import COLLECTIVES
from collectives.sparse.ok_topk import equal_shares, ok_topk
from commsim.core.schedule import REDUCE
from commsim.sparse.generate import drawn_gradients, drawn_occupancy
from commsim.sparse.occupancy import occupancy_of
from commsim.sparse.partition import balanced_bounds
from commsim.sparse.sparse_vector import SparseVector

FORM = COLLECTIVES["ok_topk"].metadata["sparse"]


@given(n_ranks=st.integers(1, 9), n=st.integers(1, 60), whole=st.booleans(), by_threshold=st.booleans(), data=st.data())
def test_it_is_what_the_owners_keep_and_loses_nothing(n_ranks, n, whole, by_threshold, data):
    k, seed = data.draw(st.integers(1, n)), data.draw(st.integers(0, 99))
    gradients = drawn_gradients(drawn_occupancy(n_ranks, n, density=1.0), seed=seed, whole=whole)
    vectors = [SparseVector.from_dense(gradient).top_k(k) for gradient in gradients]
    lists = [selected(gradient, k) for gradient in gradients]
    bounds = balanced_bounds(occupancy_of([vector.to_dense() for vector in vectors]), n_ranks)
    assert list(bounds) == mean_bounds(lists, n, n_ranks)
    schedule, threshold = ok_topk(n_ranks), data.draw(st.floats(0, 9))
    if by_threshold:
        floors = np.where(schedule.expand()["op"] == REDUCE, threshold, 0.0)  # the authors' way to cut
        run = run_sparse(schedule, vectors, above=floors, bounds=bounds)
        slow = slow_ok_topk(lists, bounds, lambda _, s: {i: x for i, x in s.items() if float(abs(x)) >= threshold})
    else:
        run = run_sparse(schedule, vectors, keep=equal_shares(schedule, k), bounds=bounds)
        shares = [max(1, (c + 1) * k // n_ranks - c * k // n_ranks) for c in range(n_ranks)]
        slow = slow_ok_topk(lists, bounds, lambda owner, s: largest(s, shares[owner]))
    if n_ranks > 1:  # one rank adds nothing up, and has nothing to cut
        total, cut, sent = slow
        assert all(as_dict(output) == total for output in run.outputs)
        assert [as_dict(residual) for residual in run.residuals] == cut
        split = schedule.expand()["op"] == REDUCE
        assert np.bincount(schedule.expand()["src"][split], run.sent[split], minlength=n_ranks).tolist() == sent
    residuals = [g - v.to_dense() + r.to_dense() for g, v, r in zip(gradients, vectors, run.residuals, strict=True)]
    left = lost(gradients, run.outputs[0].to_dense(), residuals)
    assert not left.any() if whole else (np.abs(left) <= rounding(gradients)).all()


@pytest.mark.parametrize("n_ranks", [2, 4, 8, 16])
@pytest.mark.parametrize("pattern", ["random", "overlapping", "zipf"])
def test_a_rank_sends_and_receives_within_the_bounds_of_the_paper(n_ranks, pattern):
    schedule, n = ok_topk(n_ranks), 100_000
    k = n // 100
    transfers, occupancy = schedule.expand(), drawn_occupancy(n_ranks, n, density=0.01, pattern=pattern)
    n_bytes = FORM.transfer_bytes(schedule, occupancy, {})
    per_rank = 2 * k * (n_ranks - 1) / n_ranks * 4
    split = np.where(transfers["op"] == REDUCE, n_bytes, 0)
    gathered = np.bincount(transfers["dst"], n_bytes - split)
    np.testing.assert_allclose(gathered, per_rank, atol=8)  # k survive, and everybody gets those of all others
    if pattern == "overlapping":  # all ranks split their lists at the same places, and evenly
        np.testing.assert_allclose(np.bincount(transfers["src"], split), per_rank, atol=8 * n_ranks)
    total = n_bytes.sum() / n_ranks
    assert per_rank < total <= 3 * per_rank
    # Where two ranks' own cuts differ, both send half of what lies between: sqrt(k/2) elements, once in a deviation.
    assert total == pytest.approx(2 * per_rank, abs=5 * 8 * np.sqrt(k / 2) / 2)


def test_balanced_ranges_even_out_what_equal_ranges_do_not():
    occupancy = drawn_occupancy(8, 100_000, density=0.01, pattern="zipf")
    into = {}
    for balanced in (True, False):
        schedule = ok_topk(8)
        form = FORM if balanced else type(FORM)(FORM.encoding, truncate=FORM.truncate)
        transfers = schedule.expand()
        split = np.where(transfers["op"] == REDUCE, form.transfer_bytes(schedule, occupancy, {}), 0)
        received = np.bincount(transfers["dst"], split)
        into[balanced] = received.max() / received.mean()
    assert into[True] < 1.1
    assert into[False] > 2
