import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.real.relative_error_fit import fit_costs

SIZE = 4096.0 * 2 ** np.arange(13)
LINE = np.column_stack((np.ones_like(SIZE), SIZE))


@given(start=st.floats(1e-7, 1e-3), rate=st.floats(1e8, 1e11))
def test_exact_times_give_back_their_costs(start: float, rate: float) -> None:
    wanted = np.array([start, 1 / rate])
    got = fit_costs(LINE, LINE @ wanted)
    np.testing.assert_allclose(LINE @ got, LINE @ wanted, rtol=1e-6)


def test_the_costs_themselves_are_found_where_both_count() -> None:
    wanted = np.array([2e-5, 1e-10])
    np.testing.assert_allclose(fit_costs(LINE, LINE @ wanted), wanted, rtol=1e-6)


def test_a_disturbed_run_does_not_bend_the_line() -> None:
    wanted = np.array([2e-5, 1e-10])
    times = LINE @ wanted
    times[6] *= 50
    np.testing.assert_allclose(fit_costs(LINE, times), wanted, rtol=0.1)


def test_a_cost_that_the_runs_speak_against_is_nearly_nothing_and_not_negative() -> None:
    columns = np.vstack([np.column_stack((LINE, np.zeros_like(SIZE))), np.column_stack((LINE, SIZE))])
    times = np.concatenate((LINE @ [1e-5, 1e-10], LINE @ [1e-5, 0.8e-10]))  # together faster than alone
    _, alone, more = fit_costs(columns, times)
    assert 0 <= more < 0.01 * alone
    assert 0.8e-10 < alone < 1e-10


def test_too_few_or_impossible_times_are_refused() -> None:
    with pytest.raises(InputError, match="a fit of 2 costs needs as many positive times"):
        fit_costs(LINE[:1], np.array([1.0]))
    with pytest.raises(InputError, match="positive times"):
        fit_costs(LINE, np.zeros(13))
