import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.placement.clusters.contention.shifted_rates import numbered, shifted_rates


def test_rates_are_numbered_also_where_phases_add_up():
    rates = np.array([[0.0, 3.0, 5.0], [5.0, 8.0, 0.0]])
    for usual in ([0.0, 3.0, 5.0], [0.0, 3.0, 5.0, 8.0, 9.0]):
        levels, number = numbered(rates, usual)
        assert (levels[number] == rates).all()


@given(st.integers(1, 5), st.integers(1, 9), st.integers(0, 1000))
def test_runs_give_every_rate_back(n_shifts, n_instants, seed):
    """In whatever order, also where all instants of a shift are one run."""
    random = np.random.default_rng(seed)
    rates = random.choice([0.0, 2.0, 3.0], (n_shifts, n_instants), p=[0.6, 0.3, 0.1])
    sent = shifted_rates(rates, random.uniform(0.0, 1.0, n_instants), [0.0, 2.0, 3.0])
    found = np.full(rates.shape, np.nan)
    for shift, (first, end) in enumerate(zip(sent.first_run[:-1], sent.first_run[1:], strict=True)):
        for level, start, stop in sent.run[first:end]:
            found[shift, sent.order[start:stop]] = sent.levels[level]
    np.testing.assert_array_equal(found, rates)
