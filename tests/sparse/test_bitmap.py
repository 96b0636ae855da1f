import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.sparse.bitmap import bitmap_words, refuse_non_finite

KINDS = (np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8)


def marked(words, n_blocks):
    return [bool(int(words[b // 64]) >> (b % 64) & 1) for b in range(n_blocks)]


@given(
    n=st.integers(1, 400),
    density=st.sampled_from([0.01, 0.1, 0.5]),
    block=st.integers(1, 150),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 99),
)
def test_a_block_is_marked_when_one_of_its_elements_is_not_zero(n, density, block, kind, seed):
    rng = np.random.default_rng(seed)
    values = (rng.integers(1, 4, n) * (rng.random(n) < density)).tolist()
    words = bitmap_words(np.array(values, kind), block, 0.0, "rank 0")
    slow = [any(values[i : i + block]) for i in range(0, len(values), block)]
    assert marked(words, len(slow)) == slow
    assert sum(int(w).bit_count() for w in words) == sum(slow)  # nothing beyond the last block


@pytest.mark.slow
@given(
    kind=st.sampled_from((np.float16, np.float32, np.float64)),
    threshold=st.floats(0, 1e5),
    block=st.sampled_from((1, 3, 64, 70)),
    data=st.data(),
)
def test_the_threshold_is_exceeded_in_the_numbers_as_they_are(kind, threshold, block, data):
    near = np.array(min(threshold, float(np.finfo(kind).max)), kind)
    pool = [0.0, -0.0, 1.0, *(float(s * x) for s in (1, -1) for x in (near, np.nextafter(near, kind(0)), near / 2))]
    with np.errstate(over="ignore"):
        above = float(np.nextafter(near, np.array(np.inf, kind)))
    pool += [x for x in (above, -above) if np.isfinite(x)]
    values = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=200))
    slow = [any(abs(x) > threshold for x in values[i : i + block]) for i in range(0, len(values), block)]
    assert marked(bitmap_words(np.array(values, kind), block, threshold, "rank 0"), len(slow)) == slow


@pytest.mark.parametrize("block", [3, 5, 63])
@pytest.mark.parametrize("index", range(60, 70))
def test_a_block_across_two_words_of_elements_is_whole(block, index):
    values = np.zeros(150)
    values[index] = 1
    marks = marked(bitmap_words(values, block, 0.0, "rank 0"), -(-150 // block))
    assert np.flatnonzero(marks).tolist() == [index // block]


@pytest.mark.sample(12, each="kind")
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 7, 64, 100, 1000])
@pytest.mark.parametrize("index", [0, 63, 64, 299])
def test_what_is_not_finite_is_refused_by_its_index_wherever_it_is(bad, kind, block, index):
    values = np.zeros(300, kind)
    values[index] = bad
    with pytest.raises(InputError, match=f"rank 5: values must be finite, got (nan|inf|-inf) at index {index}"):
        bitmap_words(values, block, 2.0, "rank 5")


def test_the_largest_finite_number_is_taken():
    largest = np.array([np.finfo(np.float32).max, 0, -np.finfo(np.float32).max], np.float32)
    assert marked(bitmap_words(largest, 1, 1e300, "rank 0"), 3) == [False, False, False]
    assert marked(bitmap_words(largest, 1, 3e38, "rank 0"), 3) == [True, False, True]


def test_the_smallest_number_is_not_zero():
    tiny = np.array([np.finfo(np.float64).smallest_subnormal, -0.0, 0.0])
    assert marked(bitmap_words(tiny, 1, 0.0, "rank 0"), 3) == [True, False, False]


def test_a_strided_gradient_is_read_as_it_is_seen():
    values = np.arange(10, dtype=np.float32)[::3]  # 0 3 6 9
    assert marked(bitmap_words(values, 1, 0.0, "rank 0"), 4) == [False, True, True, True]


@pytest.mark.parametrize("dtype", [np.complex64, np.bool_, object, ">f4", "U3"])
def test_other_kinds_of_number_are_refused(dtype):
    with pytest.raises(InputError, match="rank 0: gradients must be float16, float32, float64 or integers"):
        bitmap_words(np.zeros(3, dtype), 1, 0.0, "rank 0")


@pytest.mark.parametrize("threshold", [-1.0, np.nan, np.inf])
def test_a_threshold_is_a_finite_number_of_at_least_zero(threshold):
    with pytest.raises(InputError, match="a threshold must be at least 0 and finite"):
        bitmap_words(np.zeros(3), 1, threshold, "rank 0")


def test_integers_have_no_threshold():
    with pytest.raises(InputError, match="their threshold must be 0, got 1"):
        bitmap_words(np.zeros(3, np.int32), 1, 1, "rank 0")


def test_the_index_is_that_of_the_whole_array_in_a_long_one():
    values = np.zeros(2**20 + 10, np.float16)
    values[2**20 + 3] = np.inf
    with pytest.raises(InputError, match=f"x: values must be finite, got inf at index {2**20 + 3}"):
        refuse_non_finite(values, "x")
