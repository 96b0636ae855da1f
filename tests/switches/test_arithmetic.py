"""What registers do, against integers of any size and against NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from switch_model.arithmetic_kernel import add, add_blocks, add_saturating, overwrite, round_to_bfloat16

edges = st.one_of(st.sampled_from([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1]), st.integers(-(2**31), 2**31 - 1))
pairs = st.lists(st.tuples(edges, edges), min_size=1, max_size=20)


@given(pairs=pairs, spare=st.integers(0, 3))
def test_integers_wrap_around_or_saturate_and_elements_beyond_a_short_packet_stay(
    pairs: list[tuple[int, int]], spare: int
) -> None:
    before = np.array([a for a, _ in pairs] + [7] * spare, np.int32)
    values = np.array([b for _, b in pairs], np.int32)
    wrapped, held = before.copy(), before.copy()
    with np.errstate(over="ignore"):
        add(wrapped, values)
    add_saturating(held, values)
    assert wrapped.tolist() == [(a + b + 2**31) % 2**32 - 2**31 for a, b in pairs] + [7] * spare
    assert held.tolist() == [min(max(a + b, -(2**31)), 2**31 - 1) for a, b in pairs] + [7] * spare


def test_overwriting_with_a_short_packet_leaves_zeros_behind_it() -> None:
    register = np.full(4, 9, np.int32)
    overwrite(register, np.array([1, 2], np.int32))
    assert register.tolist() == [1, 2, 0, 0]


def test_floats_are_rounded_at_each_sum_in_the_order_of_arrival() -> None:
    register = np.float32([2.0**24])
    for _ in range(2):
        add(register, np.float32([1.0]))
    assert register[0] == 2.0**24
    register = np.float32([2.0])
    add(register, np.float32([2.0**24]))
    assert register[0] == 2.0**24 + 2


@given(data=st.data(), n_workers=st.integers(1, 9), length=st.integers(1, 9), kind=st.sampled_from("ilf"))
def test_sums_of_blocks_are_exact_in_the_type_of_the_total(
    data: st.DataObject, n_workers: int, length: int, kind: str
) -> None:
    values = data.draw(hnp.arrays(np.int32, 40, elements=edges))
    starts = np.array(data.draw(st.lists(st.integers(0, 40 - length), min_size=n_workers, max_size=n_workers)))
    exact = [sum(int(values[s + i]) for s in starts) for i in range(length)]
    if kind == "i":
        total = np.zeros(length, np.int32)
        exact = [(e + 2**31) % 2**32 - 2**31 for e in exact]
    else:
        total = np.zeros(length, np.int64 if kind == "l" else np.float64)
    with np.errstate(over="ignore"):
        add_blocks(total, values, starts, length)
    assert total.tolist() == exact


def test_sums_of_float_blocks_are_made_in_double_precision() -> None:
    values = np.float32([2.0**24, 1.0, 1.0, 1.0, 1.0])
    total = np.zeros(1)
    add_blocks(total, values, np.arange(5), 1)
    assert total[0] == 2.0**24 + 4


@given(bits=hnp.arrays(np.uint32, 30))
def test_rounding_to_bfloat16_takes_the_nearest_and_the_even_one_of_two(bits: np.ndarray) -> None:
    before, after = bits.copy().view(np.float32), bits.copy()
    round_to_bfloat16(after)
    assert not (after & 0xFFFF).any()
    for x, rounded, word in zip(before, after.view(np.float32), after.tolist(), strict=True):
        if np.isnan(x):
            assert np.isnan(rounded)
        elif np.isfinite(x) and np.isfinite(rounded):
            below = np.array([word - 0x10000 & 0xFFFFFFFF, word + 0x10000 & 0xFFFFFFFF], np.uint32).view(np.float32)
            mine = abs(float(x) - float(rounded))
            for other in below[np.isfinite(below)]:
                gap = abs(float(x) - float(other))
                assert mine < gap or (mine == gap and not word & 0x10000)
        else:
            assert np.isinf(rounded)
            assert np.sign(rounded) == np.sign(x)
            assert np.isinf(x) or abs(float(x)) >= 2.0**128 * (1 - 2.0**-9)
