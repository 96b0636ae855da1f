import pytest
from hypothesis import given
from hypothesis import strategies as st
from remark_codes import codes

from collectives import COLLECTIVES
from collectives.dense.broadcast import chain_cost, chain_pieces
from collectives.dense.double_tree import double_tree_bounds, double_tree_pieces
from collectives.pieces import OVERHEAD_BYTES, USUAL, count_pieces, sized_parameters
from commsim.core.cost import LogGP
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import load_schedule
from commsim.prediction.inputs import load_network
from commsim.prediction.plans.cut_by_size import MAX_KEPT
from commsim.prediction.read import with_costs

CUT = ("chain_broadcast", "chain_reduce", "double_tree_all_reduce")
NETWORK = with_costs(load_network("star:n_hosts=8,bandwidth=100Gbps,latency=1us"), overhead=2e-6)


@given(n_ranks=st.integers(2, 60), size=st.floats(1e3, 1e9))
def test_the_closed_form_is_least_where_a_link_sends_16_kib_in_an_overhead(n_ranks, size):
    link = LogGP(L=1e-6, o=OVERHEAD_BYTES / 1e9, B=1e9)
    k = chain_pieces(n_ranks, size)
    times = {other: chain_cost(n_ranks, size, link, other) for other in (k, k + 1, max(1, k - 1))}
    assert times[k] <= min(times.values()) * (1 + 1e-3)


def test_a_chain_of_two_is_no_pipeline_and_small_data_is_one_piece():
    assert {chain_pieces(2, size) for size in (1, 2**20, 2**34)} == {1}
    assert {double_tree_pieces(p, 4096) for p in (1, 2, 4, 8)} == {1}
    assert double_tree_pieces(8, 2**30) > USUAL


def test_many_ranks_have_no_more_pieces_than_a_fixed_number_gave():
    assert count_pieces(2**17, 2.0**40, 34) == USUAL


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("size", [4096, 2**20, 2**24])
def test_a_prediction_is_cut_by_its_size(name, size):
    pieces = COLLECTIVES[name].metadata["pieces"](8, size)
    predicted = prepare(name, NETWORK).at(size)
    assert predicted.parameters["n_chunks"] == pieces
    assert predicted.schedule == load_schedule(name, 8, size)
    assert predicted.schedule != load_schedule(f"{name}:n_chunks=63", 8, size)


def test_plans_of_a_few_sizes_are_kept_and_not_those_of_all():
    plan = prepare("double_tree_all_reduce", NETWORK)
    first = plan.at(2**20)
    assert plan.at(2**20) is first
    assert len({id(one) for one in [plan.at(2.0**i) for i in range(21, 21 + MAX_KEPT)]}) == MAX_KEPT
    assert plan.at(2**20) is not first


@pytest.mark.parametrize("name", CUT)
def test_a_number_of_pieces_that_is_given_is_kept(name):
    given = prepare(f"{name}:n_chunks=5", NETWORK)
    assert given.at(2**26) is given
    entry = COLLECTIVES[name]
    assert sized_parameters(entry, 8, 2.0**26, {"n_chunks": 5}) == {"n_chunks": 5}
    assert load_schedule(name, 8) == entry.build(8, n_chunks=USUAL)


def test_small_data_no_longer_pays_an_overhead_for_each_of_64_pieces():
    times = {spec: prepare(spec, NETWORK).predict(4096).time for spec in (CUT[2], f"{CUT[2]}:n_chunks=64")}
    hops = 2 * 3  # of the trees of 8 ranks, at most 4 messages leaving a port at once
    assert times[CUT[2]] <= hops * (4 * (2e-6 + 2048 / 12.5e9) + 2e-6)
    assert times[f"{CUT[2]}:n_chunks=64"] > 5 * times[CUT[2]]


def test_the_closed_form_and_the_bounds_follow_the_cut():
    size = 2**24
    assert prepare(CUT[0], NETWORK).predict(size, engine="closed-form").time == pytest.approx(
        prepare(CUT[0], NETWORK).predict(size).time, rel=1e-9
    )
    link = LogGP(L=2e-6, o=2e-6, B=12.5e9)
    low, high = double_tree_bounds(8, size, link)
    assert (low, high) == double_tree_bounds(8, size, link, double_tree_pieces(8, size))
    assert low <= prepare(CUT[2], NETWORK).predict(size).time <= high


@pytest.mark.parametrize("name", CUT)
def test_the_number_of_pieces_is_told_unless_it_is_given(name):
    sizes = 2**16, 2**20
    plan = prepare(name, NETWORK)
    few, many = (sized_parameters(COLLECTIVES[name], 8, size, {})["n_chunks"] for size in sizes)
    assert few < many
    assert str(plan.remarks([plan.predict(size) for size in sizes])[0]) == f"{name}: n_chunks={few} to {many} by size"
    assert str(plan.remarks([plan.predict(sizes[0])])[0]) == f"{name}: n_chunks={few}"
    given = prepare(f"{name}:n_chunks=4", NETWORK)
    assert "pieces" not in codes(given.remarks([given.predict(sizes[0])]))
