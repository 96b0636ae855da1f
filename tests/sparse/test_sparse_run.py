import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numeric_run import run_reference
from sparse_run import run_sparse

from collectives import COLLECTIVES
from commsim.core.errors import InputError, ScheduleError
from commsim.core.program import Program
from commsim.sparse.generate import PATTERNS, drawn_gradients, drawn_occupancy
from commsim.sparse.sparse_vector import SparseVector

ALL_REDUCES = [name for name in COLLECTIVES if COLLECTIVES[name].metadata["operation"] == "all_reduce"]


def reduce_chain(n_ranks):
    p = Program(n_ranks, 1)
    for rank in range(n_ranks - 1, 0, -1):
        p.reduce(0, src=rank, dst=rank - 1)
    return p.build("chain", "reduce")


@pytest.mark.parametrize("name", ALL_REDUCES)
@given(
    n_ranks=st.integers(1, 7),
    block=st.integers(1, 9),
    density=st.sampled_from([0.05, 0.3, 1]),
    pattern=st.sampled_from([p for p in PATTERNS if p != "disjoint"]),
    hashed=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=settings().max_examples // 4)
def test_the_sum_is_the_dense_sum(name, n_ranks, block, density, pattern, hashed, seed):
    n_elements = 20 * block
    occupancy = drawn_occupancy(n_ranks, n_elements, density=density, block=block, pattern=pattern, seed=seed)
    gradients = drawn_gradients(occupancy, seed=seed, whole=True)
    vectors = [SparseVector.from_dense(gradient, block) for gradient in gradients]
    cut = {"n_chunks": 5} if "n_chunks" in COLLECTIVES[name].parameters else {}
    run = run_sparse(COLLECTIVES[name].build(n_ranks, **cut), vectors, hashed=hashed, block=block)
    for output in run.outputs:
        assert np.array_equal(output.to_dense(), gradients.sum(axis=0))
        assert output.index.tolist() == np.flatnonzero((gradients != 0).any(axis=0)).tolist()
    assert all(len(residual) == 0 for residual in run.residuals)


@pytest.mark.parametrize("name", ALL_REDUCES)
def test_floats_are_those_of_the_dense_reference_bit_for_bit(name):
    schedule = COLLECTIVES[name].build(6)
    gradients = drawn_gradients(drawn_occupancy(6, 12 * schedule.n_chunks, density=0.3))
    run = run_sparse(schedule, [SparseVector.from_dense(gradient) for gradient in gradients])
    exact = run_reference(schedule, gradients)
    for output, row in zip(run.outputs, exact, strict=True):
        assert np.array_equal(output.to_dense(), row)  # what was not zero has the same bits, 0.0 equals -0.0


@given(n_ranks=st.integers(1, 8), k=st.integers(1, 30), density=st.floats(0.02, 0.4), seed=st.integers(0, 99))
def test_a_truncated_sum_and_what_was_cut_are_the_gradient(n_ranks, k, density, seed):
    gradients = drawn_gradients(drawn_occupancy(n_ranks, 100, density=density, seed=seed), seed=seed, whole=True)
    vectors = [SparseVector.from_dense(gradient) for gradient in gradients]
    run = run_sparse(reduce_chain(n_ranks), vectors, keep=k)
    cut = sum(residual.to_dense() for residual in run.residuals)
    assert np.array_equal(run.outputs[0].to_dense() + cut, gradients.sum(axis=0))
    assert n_ranks == 1 or len(run.outputs[0]) <= k
    slow = gradients[-1]
    for gradient in gradients[-2::-1]:
        slow = slow + gradient
        slow[sorted(range(100), key=lambda i: (-abs(slow[i]), i))[k:]] = 0
    assert np.array_equal(run.outputs[0].to_dense(), slow)


def test_an_infinite_sum_is_refused_by_its_index():
    huge = SparseVector(5, np.array([3]), np.array([3e38], np.float32))
    with pytest.raises(InputError, match="must be finite, got inf at index 3"):
        run_sparse(reduce_chain(2), [huge, huge])


def test_what_cannot_be_run_is_refused():
    one = SparseVector(5, np.array([3]), np.array([1.0]))
    p = Program(2, 1, n_helpers=1)
    p.copy(0, src=2, dst=0)
    with pytest.raises(ScheduleError, match="which no transfer has written"):
        run_sparse(p.build(), [one, one])
    p = Program(2, 2)
    p.reduce(src=0, dst=1, src_chunk=0, dst_chunk=1)
    with pytest.raises(ScheduleError, match="different chunks"):
        run_sparse(p.build(), [one, one])


def test_elements_below_a_threshold_are_cut_after_the_whole_hop():
    p = Program(3, 1)
    p.reduce(0, src=[1, 2], dst=0)
    vectors = [SparseVector.from_dense(np.array(x, np.float32)) for x in ([1, 1, 0, 4], [1, -1, 1, 0], [1, 0, 1, 0])]
    run = run_sparse(p.build(), vectors, above=[3, 3])
    assert run.outputs[0].to_dense().tolist() == [3, 0, 0, 4]
    assert run.residuals[0].to_dense().tolist() == [0, 0, 2, 0]
    assert run.residuals[0].index.tolist() == [1, 2]  # a sum that is zero was a message's element all the same
