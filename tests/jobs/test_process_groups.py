import numpy as np
import pytest

from collectives import COLLECTIVES
from collectives.dense.broadcast import chain_pieces
from commsim import predict, scenario_of, solve
from commsim.core.errors import InputError
from commsim.jobs.groups import prepare_groups
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"


def test_groups_on_ports_of_their_own_do_not_disturb_each_other():
    alone = predict("ring_all_reduce", STAR, 1e6, n_ranks=4, overhead="0us").time
    found = prepare_groups("ring_all_reduce", STAR, [[0, 2, 4, 6], [1, 3, 5, 7]]).predict(1e6)
    np.testing.assert_allclose([r.time for r in found], alone, rtol=1e-9)
    assert [r.n_ranks for r in found] == [4, 4]


DGX = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2,oversubscription=8"


@pytest.mark.sample(4)
@pytest.mark.parametrize("engine", ["flow", "packet", "alpha-beta"])
@pytest.mark.parametrize("collective", ["nccl_all_reduce", "switchml", "chain_broadcast"])
def test_groups_that_share_no_link_take_what_one_collective_takes(collective, engine):
    alone = predict(collective, DGX, 1e6, n_ranks=16, engine=engine, overhead="0us").time
    groups = [list(range(16)), list(range(16, 32))]
    (one,) = prepare_groups(collective, DGX, groups[:1]).predict(1e6, engine=engine)
    both = prepare_groups(collective, DGX, groups).predict(1e6, engine=engine)
    assert one.time == alone
    assert [r.time for r in both] == pytest.approx([alone] * 2, rel=1e-9)


def test_flaps_and_framing_of_several_groups_are_refused_where_they_are_not_modelled():
    from commsim.core.cost import Framing
    from commsim.prediction.faults import flaps_of

    groups = [list(range(16)), list(range(16, 32))]
    ready = prepare_groups("nccl_all_reduce", DGX, groups)
    flaps = flaps_of(["link:leaf0:spine0@10us+20us"], ready.network, None, None)
    with pytest.raises(InputError, match="flaps are not modelled for several groups with software costs"):
        ready.predict(1e6, flaps=flaps)
    with pytest.raises(InputError, match="framing is not modelled for groups in packets of switch systems"):
        prepare_groups("switchml", DGX, groups).predict(1e6, engine="packet", framing=Framing(4096, 64))


def test_groups_that_share_a_link_share_its_bandwidth():
    network = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=100Gbps,latency=0s"
    one, two = (prepare_groups("ring_send_recv", network, g).predict(1e6) for g in ([[0, 2]], [[0, 2], [1, 3]]))
    fair = max(r.time for r in two) / one[0].time
    assert fair == pytest.approx(2, rel=1e-9)


def test_a_rank_in_two_groups_shares_its_port():
    found = prepare_groups("binomial_broadcast", STAR, [[0, 1], [0, 2]]).predict(1e9)
    np.testing.assert_allclose([r.time for r in found], 2e9 / 12.5e9, rtol=1e-4)


@pytest.mark.parametrize("groups", [[], [[]], [[0, 0]], [[0, 8]], [[-1]]])
def test_groups_of_no_such_ranks_are_refused(groups):
    with pytest.raises(InputError, match=r"group must be different ranks 0\.\.7, got|at least one group"):
        prepare_groups("ring_all_reduce", STAR, groups)


def test_the_closed_form_knows_no_groups():
    with pytest.raises(InputError, match="by flow, alpha-beta or packet, got engine 'closed"):
        prepare_groups("ring_all_reduce", STAR, [[0, 1]]).predict(1e6, engine="closed-form")


RACKS = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us"


def test_groups_that_are_together_faster_than_the_busiest_link_are_refused():
    groups = [[0, 4], [1, 5], [2, 6], [3, 7]]
    said = r"4 groups with ring_all_reduce, 1 MiB: engine alpha-beta gives 91.89 us, but together .* 251.7 us on leaf0:"
    with pytest.raises(InputError, match=f"{said}.*; use engine flow"):
        prepare_groups("ring_all_reduce", RACKS, groups).predict(2**20, engine="alpha-beta")
    two = prepare_groups("ring_all_reduce", RACKS, [[0, 1], [4, 5]])  # which share no link
    times = [[r.time for r in two.predict(2**20, engine=engine)] for engine in ("alpha-beta", "flow")]
    np.testing.assert_allclose(*times, rtol=1e-9)


def mine(n_ranks):
    return COLLECTIVES["ring_all_reduce"].build(n_ranks)


def test_a_function_is_called_for_the_ranks_of_a_group():
    groups = [[0, 1, 2], [3, 4, 5]]
    own, named = (
        solve(scenario_of(what, STAR, groups=groups, overhead="0us"), ["1MiB"]) for what in (mine, "ring_all_reduce")
    )
    assert [r.time for r in own.results] == [r.time for r in named.results]
    with pytest.raises(InputError, match="these groups have 2 and 3 ranks; give groups of one size"):
        scenario_of(mine, STAR, groups=[[0, 1], [2, 3, 4]], overhead="0us")


def test_groups_are_cut_by_size_too():
    pieces = chain_pieces(4, 2**22)
    alone = predict(f"chain_broadcast:n_chunks={pieces}", STAR, 2**22, n_ranks=4, overhead="2us").time
    groups = prepare_groups(
        "chain_broadcast", with_costs(load_network(STAR), overhead=2e-6), [[0, 1, 2, 3], [4, 5, 6, 7]]
    )
    assert [result.time for result in groups.predict(2**22)] == pytest.approx([alone, alone])
    other = predict("chain_broadcast:n_chunks=63", STAR, 2**22, n_ranks=4, overhead="2us").time
    assert other > 1.01 * alone
