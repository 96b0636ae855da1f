import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_order import check_order
from volumes import volumes

import commsim as cs
from collectives.dense.hierarchical import hierarchical_cost
from collectives.dense.ring import ring_cost
from collectives.dense.torus import default_dims, torus_all_reduce, torus_cost
from commsim.core.checking.check import check
from commsim.core.cost import LogGP
from commsim.core.errors import InputError

sides = st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda dims: math.prod(dims) <= 48)


@given(sides)
def test_a_grid_of_any_number_of_dimensions_is_an_all_reduce_of_the_least_volume(dims):
    n_ranks = math.prod(dims)
    schedule = torus_all_reduce(n_ranks, tuple(dims))
    assert check(schedule).method == "exact"
    sent, received, messages = volumes(schedule)
    np.testing.assert_allclose(sent, 2 * (n_ranks - 1) / n_ranks)
    np.testing.assert_allclose(received, sent)
    assert (messages == sum(2 * (side - 1) for side in dims)).all()


@given(sides.filter(lambda dims: math.prod(dims) <= 16))
@settings(max_examples=15)
def test_no_order_of_arrival_changes_the_sums(dims):
    check_order(torus_all_reduce(math.prod(dims), tuple(dims)), seeds=(0, 1))


@given(sides)
def test_every_message_goes_to_the_next_rank_along_one_dimension(dims):
    for t in torus_all_reduce(math.prod(dims), tuple(dims)).expand():
        a, b = (np.array(np.unravel_index(t[end], dims)) for end in ("src", "dst"))
        (axis,) = np.flatnonzero(a != b)
        assert b[axis] == (a[axis] + 1) % dims[axis]


@given(sides.filter(lambda dims: max(dims) > 1))
@settings(max_examples=20)
def test_over_all_links_it_is_an_all_reduce_of_the_least_volume_between_neighbours(dims):
    n_ranks = math.prod(dims)
    schedule = torus_all_reduce(n_ranks, tuple(dims), all_links=True)
    assert check(schedule).method == "exact"
    sent, received, _ = volumes(schedule)
    np.testing.assert_allclose(sent, 2 * (n_ranks - 1) / n_ranks)
    np.testing.assert_allclose(received, sent)
    transfers = schedule.expand()
    ends = (np.array(np.unravel_index(transfers[end], dims)) for end in ("src", "dst"))
    step = np.subtract(*ends) % np.array(dims)[:, None]
    apart = np.minimum(step, np.array(dims)[:, None] - step).sum(axis=0)
    assert (apart == 1).all()


@pytest.mark.parametrize("dims", ["4x4", pytest.param("4x4x4", marks=pytest.mark.jit), "8"])
def test_on_a_torus_all_links_carry_as_much_and_are_full_until_the_end(dims):
    """2(p-1)/p of the vector leaves each rank over 2D links of 50 GB/s."""
    sizes = [int(side) for side in dims.split("x")]
    n = math.prod(sizes)
    spec, network = f"torus_all_reduce:dims={dims},all_links=true", f"torus:dims={dims},bandwidth=400Gbps"
    found = cs.predict(spec, network, "1GiB")
    assert found.time == pytest.approx(2 * (n - 1) / n * 2**30 / (2 * len(sizes) * 50e9), rel=0.02)
    assert found.link_bytes.min() == pytest.approx(found.link_bytes.max())


@pytest.mark.jit
def test_on_a_torus_all_links_are_the_default_and_what_runs_where_nothing_is_named():
    """All six links of a host, 2 * 63/64 GB over 300 GB/s; a ring on one of them took 39.6 ms in silence."""
    network = "torus:dims=4x4x4,bandwidth=50GB/s"
    named, usual = cs.predict("torus_all_reduce", network, "1GB"), cs.predict(None, network, "1GB")
    assert usual.time == named.time == pytest.approx(2 * 63 / 64 / 300, rel=0.03)
    assert cs.predict("torus_all_reduce:all_links=false", network, "1GB").time == pytest.approx(
        2 * 63 / 64 / 50, rel=0.01
    )


@pytest.mark.jit  # a minute without
@pytest.mark.parametrize("dims", [(4, 4), (3, 3), (4, 4, 4)])
def test_sides_that_are_given_are_the_same_algorithm_as_those_of_the_torus(dims):
    """What is named, with its sides or without, is what runs by default; the closed form of all links is exact."""
    text = "x".join(map(str, dims))
    network = f"torus:dims={text},bandwidth=400Gbps"
    asked = [
        (None, {}),
        ("torus_all_reduce", {}),
        (f"torus_all_reduce:dims={text}", {}),
        (None, {"engine": "closed-form"}),
    ]
    for size, overhead in itertools.product((1024, 2**20, 2**30), ("0us", "1us")):
        times = [cs.predict(name, network, size, overhead=overhead, **options).time for name, options in asked]
        np.testing.assert_allclose(times, times[0], rtol=1e-12)
    assert cs.predict(f"torus_all_reduce:dims={text},all_links=false", network, 2**30).time > 2 * times[0]


@pytest.mark.parametrize(
    ("network", "collective"),
    [("torus:dims=4x8", None), ("torus:dims=2x2", None), ("star:n_hosts=16", "torus_all_reduce:all_links=true"),
     ("torus:dims=4x4", "torus_all_reduce:dims=2x8")],
)  # fmt: skip
def test_where_links_are_shared_all_links_have_no_closed_form(network, collective):
    with pytest.raises(InputError, match="only on equal sides of 3 ranks or more with a link each way"):
        cs.predict(collective, network, "1MiB", engine="closed-form")


@pytest.mark.parametrize("network", ["star:n_hosts=16", "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4"])
def test_elsewhere_a_host_has_one_port_and_takes_one_dimension_at_a_time(network):
    times = [cs.predict(f"torus_all_reduce{more}", network, "1MiB").time for more in ("", ":all_links=false")]
    assert times[0] == times[1]


def test_most_of_the_volume_stays_along_the_last_dimension():
    schedule = torus_all_reduce(24, (2, 3, 4))
    transfers = schedule.expand()
    step = np.abs(transfers["dst"] - transfers["src"])
    shares = [transfers["count"][np.isin(step, s)].sum() / 24 / schedule.n_chunks for s in ((1, 3), (4, 8), (12,))]
    np.testing.assert_allclose(shares, [2 * 3 / 4, 2 * 2 / 12, 2 * 1 / 24])


def test_one_dimension_is_a_ring_and_two_are_a_hierarchy():
    link = LogGP(L=1e-6, o=2e-6, B=1e9, gamma=1e-10)
    assert torus_cost(12, 1e6, link, (12,)) == pytest.approx(ring_cost(12, 1e6, link))
    groups = tuple(tuple(range(4 * i, 4 * i + 4)) for i in range(3))
    assert torus_cost(12, 1e6, link, (3, 4)) == pytest.approx(hierarchical_cost(12, 1e6, link, groups))


@given(st.integers(1, 3000))
def test_the_default_is_two_nearly_equal_sides(n_ranks):
    long, short = default_dims(n_ranks)
    assert long * short == n_ranks
    assert short <= long


def test_two_dimensions_of_a_hundred_thousand_ranks_are_four_rounds():
    assert [len(block.body) for block in torus_all_reduce(131_072).blocks] == [131_072] * 4


@pytest.mark.parametrize("dims", [(), (2, 3), (4, 0), (-2, -2), (8,)])
def test_sides_that_make_no_such_grid_are_refused(dims):
    wanted = re.escape(f"dims must be sides of a grid of 4 ranks, got {'x'.join(map(str, dims)) or 'none'}")
    with pytest.raises(InputError, match=wanted):
        torus_all_reduce(4, dims)
