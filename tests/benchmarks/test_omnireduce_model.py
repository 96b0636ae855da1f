import math

import pytest

from benchmarks.accuracy.omnireduce_model import BOTH_WAYS, DOWNLINK_ONLY, MEASURED_SIZE, OmniReduceTime
from commsim.core.errors import InputError


def test_time_is_linear_in_size_and_in_the_two_densities():
    model = OmniReduceTime(1e-3, 2e-10, 1e-10)
    assert model.time(1e6, 0.5, 1) == pytest.approx(1e-3 + 1e-4 + 5e-5)
    assert model.time(1e6, 0.1, 8, union=0.1) == pytest.approx(1e-3 + 2e-5 + 1e-5)
    assert model.time(1e6, 0.1, 2) == pytest.approx(1e-3 + 2e-4 * 0.19 + 1e-5)  # 1 - 0.9^2 = 0.19


def test_dense_data_takes_the_same_time_with_any_number_of_ranks():
    assert len({BOTH_WAYS.time(MEASURED_SIZE, 1.0, n) for n in (2, 4, 8, 64)}) == 1


def test_the_two_constant_fit_predicts_four_machines_it_was_not_made_with():
    assert DOWNLINK_ONLY.time(MEASURED_SIZE, 0.1, 4) == pytest.approx(5.7e-3, rel=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BOTH_WAYS.time(0, 0.5, 8), "needs a size above 0"),
        (lambda: BOTH_WAYS.time(math.inf, 0.5, 8), "needs a size above 0"),
        (lambda: BOTH_WAYS.time(1e6, 1.5, 8), "density of 0..1"),
        (lambda: BOTH_WAYS.time(1e6, 0.5, 8, union=0.4), "density <= union <= 1"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
