import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from quantized import dequantize, quantize

from commsim.core.errors import InputError
from switch_model.bfloat16 import BFLOAT16_ROUNDING, from_bfloat16, to_bfloat16
from switch_model.quantize import block_exponents, error_bound, scale

vectors = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 8), st.integers(1, 40)),
    elements=st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False),
)


@given(workers=vectors, block=st.integers(1, 16))
def test_the_sum_is_within_the_bound_and_never_overflows(workers, block):
    n = len(workers)
    exponents = np.max([block_exponents(w, block) for w in workers], axis=0)
    integers = np.array([quantize(w, exponents, block, n) for w in workers], np.int64)
    total = integers.sum(axis=0)
    assert (np.abs(total) < 2**31).all()
    exact = workers.astype(np.float64).sum(axis=0)
    bound = np.repeat(error_bound(exponents, n), block)[: workers.shape[1]]
    got = dequantize(total.astype(np.int32), exponents, block, n)
    assert (np.abs(got - exact) <= bound + np.spacing(np.abs(got)) / 2 + 1e-12 * np.abs(exact)).all()


@given(values=vectors, block=st.integers(1, 16))
def test_the_exponent_is_the_least_that_holds_the_block(values, block):
    row = values[0]
    exponents = block_exponents(row, block)
    for b, e in enumerate(exponents):
        largest = np.abs(row[b * block : (b + 1) * block]).max()
        assert largest < 2.0**e
        assert largest >= 2.0 ** (e - 1) or largest <= np.finfo(np.float32).smallest_normal


def test_one_worker_uses_the_whole_range():
    assert scale([0], 1)[0] == 2**31 - 1
    assert quantize(np.float32([0.5, -0.5]), [0], 2, 1).tolist() == [2**30, -(2**30)]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_and_named(bad):
    with pytest.raises(InputError, match="element 1 is"):
        block_exponents([1.0, bad], 2)


def test_a_value_above_the_agreed_exponent_is_refused():
    with pytest.raises(InputError, match="overflow"):
        quantize(np.float32([4.0]), [0], 1, 2)


# Two bytes per value, against torch's bfloat16 where it is installed.
every = np.arange(2**16, dtype=np.uint32).astype(np.uint16)
any_floats = hnp.arrays(np.float32, st.integers(1, 30), elements=st.floats(width=32))


def test_every_bfloat16_comes_back_as_itself() -> None:
    numbers = every[~np.isnan(from_bfloat16(every))]
    assert np.array_equal(to_bfloat16(from_bfloat16(numbers)), numbers)


def test_nan_stays_nan_and_infinity_infinity() -> None:
    odd = np.array([np.nan, np.inf, -np.inf], np.float32)
    quiet_low_bit = np.array([0x7F800001], np.uint32).view(np.float32)  # a NaN whose upper half is infinity's
    assert np.array_equal(from_bfloat16(to_bfloat16(odd)), odd, equal_nan=True)
    assert np.isnan(from_bfloat16(to_bfloat16(quiet_low_bit))).all()


@pytest.mark.jit
@given(values=hnp.arrays(np.float32, st.integers(1, 30), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_rounding_is_within_its_bound(values: np.ndarray) -> None:
    normal = np.abs(values) >= np.finfo(np.float32).smallest_normal
    error = np.abs(from_bfloat16(to_bfloat16(values)).astype(np.float64) - values)
    assert (error[normal] <= BFLOAT16_ROUNDING * np.abs(values[normal])).all()


@pytest.mark.jit
@pytest.mark.torch
@given(values=any_floats)
def test_bfloat16_is_torchs(values: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.from_numpy(values).to(torch.bfloat16).to(torch.float32).numpy()
    assert np.array_equal(from_bfloat16(to_bfloat16(values)), theirs, equal_nan=True)


def test_numbers_above_the_range_of_ieee_half_precision_are_held() -> None:
    assert from_bfloat16(to_bfloat16([1.0, 70144.0])).tolist() == [1.0, 70144.0]
