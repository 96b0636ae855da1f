import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.sparse.sparse_vector import SparseVector

whole = st.lists(st.sampled_from([0, 0, 0, 1, -1, 2, -2, 7]), min_size=1, max_size=60)


def vector(*values, dtype=np.float32):
    return SparseVector.from_dense(np.array(values, dtype))


@given(values=whole, block=st.integers(1, 70))
def test_dense_and_back_loses_nothing(values, block):
    array = np.array(values, np.float64)
    kept = SparseVector.from_dense(array, block)
    assert kept.to_dense().tolist() == values
    blocks = {i // block for i, x in enumerate(values) if x}
    assert set((kept.index // block).tolist()) == blocks
    assert len(kept) == sum(min(block, len(values) - b * block) for b in blocks)


@given(data=st.data(), a=whole)
def test_a_merge_is_the_sum_on_the_union_of_indices(data, a):
    b = data.draw(st.lists(st.integers(-5, 5), min_size=len(a), max_size=len(a)))
    x, y = vector(*a), vector(*b)
    merged = x.merge(y)
    assert merged.to_dense().tolist() == [p + q for p, q in zip(a, b, strict=True)]
    assert merged.index.tolist() == sorted(set(x.index.tolist()) | set(y.index.tolist()))


@given(values=whole, k=st.integers(0, 60))
def test_top_k_takes_the_largest_and_of_equals_the_first(values, k):
    x = vector(*values)
    if k > len(values):
        with pytest.raises(InputError, match=f"needs k of 0..{len(values)}, got k={k}"):
            x.top_k(k)
        return
    slow = sorted((i for i, v in enumerate(values) if v), key=lambda i: (-abs(values[i]), i))[:k]
    kept = x.top_k(k)
    assert kept.index.tolist() == sorted(slow)
    assert kept.merge(x.without(kept)) == x


def test_the_least_integer_is_the_largest_magnitude():
    assert vector(127, -128, 5, dtype=np.int8).top_k(1).index.tolist() == [1]


def test_values_that_cancel_keep_their_index():
    gone = vector(1, 0, 2).merge(vector(-1, 0, 0))
    assert gone.index.tolist() == [0, 2]
    assert gone.value.tolist() == [0, 2]


def test_arrays_of_a_vector_are_its_own():
    index, value = np.array([1, 3]), np.array([1.0, 2.0])
    x = SparseVector(5, index, value)
    index[0], value[0] = 0, 9
    assert x == SparseVector(5, np.array([1, 3]), np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="read-only"):
        x.value[0] = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SparseVector(3, np.array([1, 1]), np.ones(2)), r"must rise within 0\.\.2"),
        (lambda: SparseVector(3, np.array([2, 1]), np.ones(2)), "must rise"),
        (lambda: SparseVector(3, np.array([-1]), np.ones(1)), "must rise"),
        (lambda: SparseVector(3, np.array([3]), np.ones(1)), "must rise"),
        (lambda: SparseVector(3, np.array([0, 1]), np.ones(1)), r"\(2,\) indices, \(1,\) values"),
        (lambda: SparseVector(0, np.array([], int), np.ones(0)), "n_elements=0"),
        (lambda: SparseVector(3, np.array([0.5]), np.ones(1)), "indices must hold values that fit int64, got 0.5"),
        (lambda: SparseVector(3, np.array([0]), np.array(["a"])), "values of <U1"),
        (lambda: SparseVector(9, np.array([4, 7]), np.array([1, np.nan])), "got nan at index 7"),
        (lambda: vector(0, 0, np.inf), "got inf at index 2"),
        (lambda: SparseVector.from_dense(np.ones((2, 2))), r"of shape \(2, 2\)"),
        (lambda: vector(3.4e38, 1).merge(vector(3.4e38, 1)), "must be finite, got inf at index 0"),
        (lambda: vector(1, 2).merge(vector(1, 2, 3)), "cannot add 3 elements of float32 to 2"),
        (lambda: vector(1, 2).merge(vector(1, 2, dtype=np.float64)), "cannot add 2 elements of float64"),
        (lambda: vector(1, 2).top_k(-1), "k=-1"),
    ],
)
def test_what_is_no_sparse_vector_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
