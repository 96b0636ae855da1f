import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.sparse.occupancy import Occupancy, occupancy_of


@st.composite
def bitmaps(draw):
    n_ranks, n_blocks, block = draw(st.integers(1, 5)), draw(st.integers(1, 200)), draw(st.integers(1, 9))
    n_elements = (n_blocks - 1) * block + draw(st.integers(1, block))
    seed, density = draw(st.integers(0, 99)), draw(st.sampled_from([0, 0.1, 0.5, 1]))
    return np.random.default_rng(seed).random((n_ranks, n_blocks)) < density, n_elements, block


@given(drawn=bitmaps())
def test_bits_and_counts_are_those_of_the_truth_values(drawn):
    bitmap, n_elements, block = drawn
    occupancy = Occupancy.from_bitmap(bitmap, n_elements, block)
    assert np.array_equal(occupancy.bitmap, bitmap)
    assert np.array_equal(occupancy.bitmap_of(0), bitmap[0])
    assert np.array_equal(occupancy.counts, bitmap.sum(axis=1))
    np.testing.assert_allclose(occupancy.density, bitmap.mean(axis=1), rtol=1e-15)
    assert np.array_equal(occupancy.union().bitmap, bitmap.any(axis=0, keepdims=True))
    assert occupancy.n_union == bitmap.any(axis=0).sum()
    lengths = np.array([min(block, n_elements - b * block) for b in range(bitmap.shape[1])])
    assert np.array_equal(occupancy.elements(), bitmap @ lengths)


@given(drawn=bitmaps())
def test_the_occupancy_of_a_gradient_is_where_it_is_not_zero(drawn):
    bitmap, n_elements, block = drawn
    gradients = np.repeat(bitmap, block, axis=1)[:, :n_elements] * np.float32(-0.25)
    assert occupancy_of(gradients, block) == Occupancy.from_bitmap(bitmap, n_elements, block)
    assert occupancy_of(iter(list(gradients)), block) == occupancy_of(gradients, block)


def test_an_occupancy_is_a_value():
    given = np.zeros((2, 70), bool)
    given[1, 69] = True
    a = Occupancy.from_bitmap(given, 70)
    assert a == Occupancy.from_bitmap(given.astype(int), 70)
    assert hash(a) == hash(pickle.loads(pickle.dumps(a)))
    assert copy.copy(a) == a
    assert a != Occupancy.from_bitmap(~given, 70)
    words = np.zeros((1, 1), np.uint64)
    b = Occupancy(5, 1, words)
    words[0, 0] = 1
    assert b.counts.tolist() == [0]
    with pytest.raises(ValueError, match="read-only"):
        b.words[0, 0] = 1


def test_the_first_ranks_are_an_occupancy_too():
    occupancy = Occupancy.from_bitmap(np.eye(4), 4)
    assert occupancy.first(2) == Occupancy.from_bitmap(np.eye(4)[:2], 4)
    for n in (0, 5):
        with pytest.raises(InputError, match=f"of 4 ranks has no first {n}"):
            occupancy.first(n)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Occupancy(0, 1, np.zeros((1, 0), np.uint64)), "at least 1 element and blocks of at least 1"),
        (lambda: Occupancy(4, 0, np.zeros((1, 1), np.uint64)), "block=0"),
        (lambda: Occupancy(4, 1, np.zeros((0, 1), np.uint64)), r"\[n_ranks >= 1, 1\], got \(0, 1\)"),
        (lambda: Occupancy(65, 1, np.zeros((2, 1), np.uint64)), r"65 blocks need words .* 2\], got \(2, 1\)"),
        (lambda: Occupancy(4, 1, np.full((1, 1), 16, np.uint64)), "of 4 blocks has a bit set beyond its last"),
        (lambda: Occupancy.from_bitmap(np.ones((2, 3)), 8, 2), r"8 elements in blocks of 2 .* got \(2, 3\)"),
        (lambda: Occupancy.from_bitmap(np.ones(3), 3), r"got \(3,\)"),
        (lambda: Occupancy.from_bitmap([[0, 2]], 2), "or only 0 and 1"),
        (lambda: Occupancy.from_bitmap([[0, np.nan]], 2), "or only 0 and 1"),
        (lambda: occupancy_of([]), "at least 1 rank"),
        (lambda: occupancy_of(np.zeros((2, 2)), 0), "block=0"),
        (lambda: occupancy_of(np.zeros((2, 0))), r"one row of elements per rank, got shape \(0,\)"),
        (lambda: occupancy_of([np.zeros(3), np.zeros(4)]), "rank 1 has 4 elements of float64, rank 0 3 of float64"),
        (
            lambda: occupancy_of([np.zeros(3), np.zeros(3, np.float32)]),
            "rank 1 has 3 elements of float32, rank 0 3 of float64",
        ),
        (lambda: occupancy_of([[0.0, 1.0], [0.0, np.nan]]), "rank 1: values must be finite, got nan at index 1"),
    ],
)
def test_what_is_no_occupancy_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
