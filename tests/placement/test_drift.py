"""The agent's rule: keep going within 5 %, else wait for the next place."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.drift import next_start


@pytest.mark.parametrize(
    ("ready", "start"),
    [(1.030, 1.030), (1.034, 1.034), (1.036, 1.130), (1.026, 1.026), (1.024, 1.030), (1.080, 1.130)],
)
def test_a_start_that_is_more_than_5_percent_off_waits(ready: float, start: float) -> None:
    assert next_start(ready, 0.030, 0.1) == pytest.approx(start)


@given(st.floats(0, 1e3), st.floats(0, 10), st.floats(1e-3, 10), st.floats(-10, 10), st.floats(0, 0.5))
@settings(deadline=None)
def test_it_never_starts_early_and_always_near_its_place(
    ready: float, shift: float, period: float, epoch: float, threshold: float
) -> None:
    start = next_start(ready, shift, period, epoch=epoch, threshold=threshold)
    assert ready <= start <= ready + period
    assert abs(math.remainder(start - epoch - shift, period)) <= threshold * period + 1e-9


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="positive period"):
        next_start(0.0, 0.0, 0.0)
    with pytest.raises(InputError, match=r"part 0\.\.0\.5"):
        next_start(0.0, 0.0, 1.0, threshold=0.6)
