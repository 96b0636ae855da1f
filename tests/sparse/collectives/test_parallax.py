import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from collectives.sparse.parallax import parallax
from commsim.core.checking.check import check
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.engine.closed_form import used_paths
from commsim.engine.flow import simulate_plan
from commsim.prediction.build import prepare
from commsim.prediction.read import with_costs
from commsim.sparse.generate import drawn_occupancy
from commsim.sparse.occupancy import Occupancy
from topologies.star import star

FORM = COLLECTIVES["parallax"].metadata["sparse"]
shares = st.sampled_from([0.0, 1 / 32, 0.1, 0.25, 0.5, 2 / 3, 31 / 32, 1.0])


@given(n_ranks=st.integers(1, 17), n_servers=st.integers(1, 5), share=shares, n_partitions=st.integers(1, 4))
def test_it_is_an_all_reduce_for_any_share(n_ranks, n_servers, share, n_partitions):
    schedule = parallax(n_ranks, n_servers, share, n_partitions)
    check(schedule)
    assert schedule.n_helpers == (n_servers if n_ranks > 1 and share < 1 else 0)


@given(n_ranks=st.integers(1, 12), n_servers=st.integers(1, 5), share=shares, size=st.floats(1e3, 1e9), data=st.data())
def test_time_lies_between_the_bounds(n_ranks, n_servers, share, size, data):
    some = st.one_of(st.just(0.0), st.floats(1e-9, 1e-4))
    network = with_costs(
        star(n_ranks + n_servers, latency=data.draw(some)),
        overhead=data.draw(some),
        gamma=data.draw(st.sampled_from([0.0, 1e-11, 1e-9])),
    )
    ready = prepare(f"parallax:n_servers={n_servers},dense_share={share!r}", network, n_ranks=n_ranks)
    sized = ready.at(size)  # partitions are as many as suit the overhead
    link = used_paths(network, sized.paths.job).slowest
    low, high = COLLECTIVES["parallax"].metadata["bounds"](n_ranks, size, link, **sized.parameters)
    assert low * (1 - 1e-9) <= ready.predict(size).time <= high * (1 + 1e-9)


@pytest.mark.nojit
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_all_is_dense_or_all_is_sparse_the_bounds_meet(share):
    low, high = COLLECTIVES["parallax"].metadata["bounds"](8, 1e6, LogGP(B=1e9, o=1e-6), dense_share=share)
    assert low == high


@given(n_ranks=st.integers(2, 9), n_servers=st.integers(1, 4), share=shares, density=st.floats(0.01, 1))
def test_the_ring_carries_every_value_and_servers_get_lists(n_ranks, n_servers, share, density):
    parameters = {"n_servers": n_servers, "dense_share": share}
    schedule = parallax(n_ranks, **parameters)
    n_elements = schedule.n_chunks * 5
    n_dense = round(share * schedule.n_chunks) * 5 if share * schedule.n_chunks % 1 < 1e-9 else None
    occupancy = drawn_occupancy(n_ranks, n_elements, density=max(density, 1 / n_elements))
    transfers, n_bytes = schedule.expand(), FORM.transfer_bytes(schedule, occupancy, parameters)
    ring = (transfers["src"] < n_ranks) & (transfers["dst"] < n_ranks)
    dense = int(schedule.expand()["count"][ring][0]) * n_ranks * 5 if ring.any() else 0
    assert n_dense is None or dense == n_dense
    for rank in range(n_ranks):
        sent, got = transfers["src"] == rank, transfers["dst"] == rank
        assert n_bytes[ring & sent].sum() == pytest.approx(2 * (n_ranks - 1) / n_ranks * 4 * dense)
        assert n_bytes[~ring & sent].sum() == 8 * occupancy.bitmap_of(rank)[dense:].sum()
        assert n_bytes[~ring & got].sum() == 8 * occupancy.bitmap.any(axis=0)[dense:].sum()


def test_a_hybrid_beats_both_of_its_parts_when_a_quarter_of_the_gradients_is_dense():
    n = 1_280_000
    bitmap = np.random.default_rng(0).random((8, n)) < 0.01
    bitmap[:, : n // 4] = True
    occupancy = Occupancy.from_bitmap(bitmap, n)

    def time(share: float) -> float:
        spec = f"parallax:n_servers=4,dense_share={share}"
        ready = prepare(spec, "star:n_hosts=12,bandwidth=100Gbps,latency=1us", n_ranks=8)
        return float(
            simulate_plan(ready.plan, FORM.transfer_bytes(ready.schedule, occupancy, ready.parameters)).done.max()
        )

    assert time(0.25) < 0.8 * min(time(0.0), time(1.0))


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_servers": 0}, "needs n_servers of at least 1, got n_servers=0"),
        ({"dense_share": -0.1}, "dense_share must be 0..1, got -0.1"),
        ({"dense_share": 1.1}, "dense_share must be 0..1, got 1.1"),
        ({"dense_share": 0.001}, "must be 0, 1, or at least 1/32 away from both, got 0.001"),
        ({"n_partitions": 0}, "needs n_partitions of at least 1, got n_partitions=0"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters, message):
    with pytest.raises(InputError, match=re.escape(message)):
        parallax(4, **parameters)
