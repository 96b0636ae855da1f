import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from collectives.sparse.agsparse import agsparse
from commsim.core.cost import LogGP
from commsim.prediction.build import prepare
from commsim.sparse.generate import PATTERNS, drawn_occupancy

FORM = COLLECTIVES["agsparse"].metadata["sparse"]


@given(
    n_ranks=st.integers(1, 17),
    pattern=st.sampled_from(PATTERNS),
    k=st.integers(1, 50),
    value=st.sampled_from([2, 4, 8]),
)
def test_every_rank_sends_all_lists_but_one_however_they_overlap(n_ranks, pattern, k, value):
    occupancy = drawn_occupancy(n_ranks, 1000, density=k / 1000, pattern=pattern)
    schedule = agsparse(n_ranks)
    transfers = schedule.expand()
    away = transfers["src"] != transfers["dst"]
    n_bytes = FORM.transfer_bytes(schedule, occupancy, {}, value)
    for rank in range(n_ranks):
        assert n_bytes[away & (transfers["src"] == rank)].sum() == (n_ranks - 1) * k * (4 + value)
        assert n_bytes[away & (transfers["dst"] == rank)].sum() == (n_ranks - 1) * k * (4 + value)


@pytest.mark.parametrize("n_ranks", [2, 5, 8])
def test_it_takes_the_time_of_as_many_rounds_of_two_numbers_per_element(n_ranks):
    # (N-1)(alpha + 2 D S / B): derived in the docstring
    density, size, bandwidth, latency = 0.01, 4_000_000, 12.5e9, 2e-6
    network = f"star:n_hosts={n_ranks},bandwidth=100Gbps,latency={latency / 2 * 1e6}us"
    time = prepare(f"agsparse:density={density}", network).predict(size).time
    assert time == pytest.approx((n_ranks - 1) * (latency + 2 * density * size / bandwidth), rel=1e-9)


@pytest.mark.nojit
def test_where_adding_is_slower_than_the_link_it_decides():
    cost = COLLECTIVES["agsparse"].metadata["cost"]
    assert cost(5, 1e6, LogGP(B=1e9, gamma=3e-9)) == pytest.approx(1e-3 + 4 * 3e-3)
    assert cost(5, 1e6, LogGP(B=1e9, gamma=1e-10)) == pytest.approx(4e-3 + 1e-4)
