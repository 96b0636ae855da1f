import numpy as np
import pytest
from conserved import as_dict, lost, rounding
from hypothesis import given
from hypothesis import strategies as st
from slow_selection import slow_hitopk
from sparse_run import run_sparse

from collectives import COLLECTIVES
from collectives.sparse.hitopk_comm import BETWEEN, INSIDE, hitopk_comm, lists_of_shards
from commsim.core.errors import InputError
from commsim.prediction.build import prepare
from commsim.sparse.generate import PATTERNS, drawn_gradients, drawn_occupancy
from commsim.sparse.sparse_vector import SparseVector

FORM = COLLECTIVES["hitopk_comm"].metadata["sparse"]


def groups_of(m, n, ranks):
    return tuple(tuple(ranks[i * n : (i + 1) * n]) for i in range(m))


@given(m=st.integers(1, 4), n=st.integers(1, 4), n_elements=st.integers(1, 40), whole=st.booleans(), data=st.data())
def test_it_selects_from_the_sums_of_groups_and_loses_nothing(m, n, n_elements, whole, data):
    k, seed = data.draw(st.integers(1, n_elements)), data.draw(st.integers(0, 99))
    groups = groups_of(m, n, data.draw(st.permutations(range(m * n))))
    gradients = drawn_gradients(drawn_occupancy(m * n, n_elements, density=1.0), seed=seed, whole=whole)
    schedule = hitopk_comm(m * n, groups=groups)
    vectors = [SparseVector.from_dense(gradient) for gradient in gradients]
    run = run_sparse(schedule, vectors, keep=lists_of_shards(schedule, k))
    slow, cut = slow_hitopk(gradients, groups, k)
    assert all(as_dict(output) == slow for output in run.outputs)
    assert [as_dict(residual) for residual in run.residuals] == cut
    left = lost(gradients, run.outputs[0].to_dense(), [residual.to_dense() for residual in run.residuals])
    assert not left.any() if whole else (np.abs(left) <= rounding(gradients)).all()


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if p != "zipf"])  # which leaves shards with less than a share
@pytest.mark.parametrize(("m", "n"), [(2, 4), (4, 2), (4, 4), (1, 8), (8, 1)])
def test_bytes_are_dense_inside_groups_and_lists_between_them(m, n, pattern):
    d, share = 16_000, 0.01
    schedule = hitopk_comm(m * n, groups=groups_of(m, n, range(m * n)))
    transfers, occupancy = schedule.expand(), drawn_occupancy(m * n, d, density=share, pattern=pattern)
    n_bytes = FORM.transfer_bytes(schedule, occupancy, {})
    away = transfers["src"] != transfers["dst"]
    dense = np.bincount(transfers["src"], np.where(away & (transfers["channel"] == INSIDE), n_bytes, 0))
    lists = np.bincount(transfers["src"], np.where(away & (transfers["channel"] == BETWEEN), n_bytes, 0))
    assert dense.tolist() == [2 * (n - 1) * d / n * 4] * (m * n)
    most = (m - 1) * 2 * share * d / n * 4
    assert (lists <= most).all()
    if n > 1 and pattern != "overlapping":  # a group has more in a shard than its share of what one rank has
        assert lists.tolist() == [most] * (m * n)


def test_machines_of_the_network_are_the_groups():
    ready = prepare("hitopk_comm:density=0.01", "rail_optimized:n_hosts=2,preset=dgx-h100")
    assert ready.parameters["groups"] == groups_of(2, 8, range(16))
    assert ready.notes[0].text == "hitopk_comm: groups are the 2 machines, of 8 ranks each"


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (((0, 1, 2), (3,)), "groups of equal size, since ranks of the same place own the same shard; got sizes 1, 3"),
        (((0, 1), (2, 2)), "each rank 0..3 exactly once"),
        (((0, 1), (2,)), "each rank 0..3 exactly once"),
    ],
)
def test_groups_that_share_no_places_are_refused(groups, message):
    with pytest.raises(InputError, match=message):
        hitopk_comm(4, groups=groups)
