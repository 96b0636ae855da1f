"""Two bytes per value, against torch's bfloat16 where it is installed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from switch_model.quantize import BFLOAT16_ROUNDING, from_bfloat16, to_bfloat16

every = np.arange(2**16, dtype=np.uint32).astype(np.uint16)
vectors = hnp.arrays(np.float32, st.integers(1, 30), elements=st.floats(width=32))


@pytest.mark.nojit
def test_every_bfloat16_comes_back_as_itself() -> None:
    numbers = every[~np.isnan(from_bfloat16(every))]
    assert np.array_equal(to_bfloat16(from_bfloat16(numbers)), numbers)


@pytest.mark.nojit
def test_nan_stays_nan_and_infinity_infinity() -> None:
    odd = np.array([np.nan, np.inf, -np.inf], np.float32)
    quiet_low_bit = np.array([0x7F800001], np.uint32).view(np.float32)  # a NaN whose upper half is infinity's
    assert np.array_equal(from_bfloat16(to_bfloat16(odd)), odd, equal_nan=True)
    assert np.isnan(from_bfloat16(to_bfloat16(quiet_low_bit))).all()


@given(values=hnp.arrays(np.float32, st.integers(1, 30), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_rounding_is_within_its_bound(values: np.ndarray) -> None:
    normal = np.abs(values) >= np.finfo(np.float32).smallest_normal
    error = np.abs(from_bfloat16(to_bfloat16(values)).astype(np.float64) - values)
    assert (error[normal] <= BFLOAT16_ROUNDING * np.abs(values[normal])).all()


@pytest.mark.torch
@given(values=vectors)
def test_bfloat16_is_torchs(values: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.from_numpy(values).to(torch.bfloat16).to(torch.float32).numpy()
    assert np.array_equal(from_bfloat16(to_bfloat16(values)), theirs, equal_nan=True)


@pytest.mark.nojit
def test_numbers_above_the_range_of_ieee_half_precision_are_held() -> None:
    assert from_bfloat16(to_bfloat16([1.0, 70144.0])).tolist() == [1.0, 70144.0]
