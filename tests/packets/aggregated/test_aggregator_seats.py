import dataclasses

import numpy as np
import pytest

import commsim as cs
from commsim.core.files.store import save
from commsim.core.network import SWITCH
from commsim.core.placement import Placement
from commsim.jobs.groups import prepare_groups
from commsim.packets.aggregated.aggregator_seats import seat_aggregators
from commsim.prediction.build import prepare
from commsim.prediction.read import with_costs
from switch_model.systems import SYSTEMS

LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"


def names(ready):
    return [ready.network.nodes[node] for node in ready.placement.nodes[ready.schedule.n_ranks :]]


def test_aggregators_go_above_the_ranks_and_it_is_said_where():
    ready = prepare("switchml", LEAF_SPINE)
    assert names(ready) == ["spine0", "leaf0", "leaf1"]
    assert (*map(str, ready.notes),) == (
        "switchml: aggregators on leaf0, leaf1 and spine0, assumed to be programmable",
        "switchml: as switchml_rdma (packets of 1024 + 87 bytes of headers, 512 under way)",
    )
    can = np.flatnonzero(ready.network.aggregates & (ready.network.kind == SWITCH))
    assert [ready.network.nodes[node] for node in can] == ["leaf0", "leaf1", "spine0"]


def test_many_aggregators_are_counted():
    (note,) = (*map(str, prepare("sharp:system=none", "fat_tree:k=4").notes),)
    assert note == "sharp: aggregators on aggregation0, aggregation2, aggregation4, 9 more and core0, " + (
        "assumed to be programmable"
    )


def test_a_network_that_names_its_programmable_switches_is_believed():
    network = cs.load_network(LEAF_SPINE)
    can = network.aggregates | np.isin(network.nodes, ["spine1"])
    ready = prepare("switchml:system=none", dataclasses.replace(network, aggregates=can))
    assert names(ready) == ["spine1"]
    assert (*map(str, ready.notes),) == ("switchml: aggregators on spine1",)


def test_ranks_may_be_fewer_and_anywhere():
    assert names(prepare("switchml", LEAF_SPINE, n_ranks=3)) == ["leaf0"]
    assert names(prepare("switchml", LEAF_SPINE, n_ranks=4, placement="spread")) == ["spine0", "leaf0", "leaf1"]
    assert prepare("switchml", LEAF_SPINE, n_ranks=1).schedule.n_helpers == 0


def test_a_server_takes_the_next_free_host():
    ready = prepare("atp", LEAF_SPINE)
    assert names(ready) == ["leaf1", "leaf0", "h7"]
    assert (*map(str, ready.notes),)[0] == "atp: 7 ranks, since one of the hosts is its server"
    assert names(prepare("atp", LEAF_SPINE, n_ranks=3)) == ["leaf0", "h3"]
    assert names(prepare("atp", LEAF_SPINE, placement=Placement([3, 0, 5])))[-1] == "h1"
    with pytest.raises(cs.InputError, match="atp needs a host beside its 8 ranks, for its server"):
        prepare("atp", LEAF_SPINE, n_ranks=8)
    with pytest.raises(cs.InputError, match="atp needs a host beside its 8 ranks, for its server"):
        prepare("atp", LEAF_SPINE, placement=Placement(range(8)))


def test_a_server_beside_gpus_takes_a_memory():
    ready = prepare("atp", "dgx-h100@star:machines=2")
    assert ready.schedule.n_ranks == 16
    assert names(ready) == ["switch0", "m0.memory0"]


def test_a_placement_may_say_where_the_aggregators_are(tmp_path):
    network = cs.load_network(LEAF_SPINE)
    nodes = [network.nodes.index(name) for name in ("h0", "h1", "h4", "h5", "spine1", "leaf1", "leaf0")]
    ready = prepare("switchml", network, placement=Placement(nodes))
    assert ready.schedule.n_ranks == 4
    assert names(ready) == ["spine1", "leaf1", "leaf0"]
    assert ready.parameters["tree"] == (6, 6, 5, 5, -1, 4, 4)
    path = tmp_path / "placement.json"
    save(Placement(nodes), path, network=network)
    assert prepare("switchml", network, placement=str(path)).placement == ready.placement


def test_a_placement_may_say_where_the_server_is():
    network = cs.load_network(LEAF_SPINE)
    nodes = [network.nodes.index(name) for name in ("h0", "h1", "h4", "leaf1", "leaf0", "h6")]
    ready = prepare("atp", network, placement=Placement(nodes))
    assert names(ready) == ["leaf1", "leaf0", "h6"]
    assert ready.parameters["tree"] == (4, 4, 3, 5, 3, -1)
    ready = prepare("atp", network, placement=Placement([0, 1, 4, 6]), n_ranks=3)
    assert names(ready) == ["leaf1", "leaf0", "h6"]


@pytest.mark.parametrize(
    ("spec", "placed", "n_ranks", "message"),
    [
        ("switchml", ("h0", "h1", "leaf0", "leaf1"), None, "an aggregator on leaf1, where no paths of ranks join"),
        ("switchml", ("h0", "h1", "h2"), 5, "switchml: the placement has 3 ranks, got n_ranks=5"),
        ("switchml", ("h0", "h1", "leaf0", "leaf1"), 3, "rank 2 is placed on leaf0, a switch"),
        ("switchml", None, 0, "ranks must be 1..8 "),
        ("switchml:tree=2x2x-1", None, None, "switchml has no parameter 'tree'"),
    ],
)
def test_ranks_aggregators_and_trees_that_cannot_be_are_refused(spec, placed, n_ranks, message):
    network = cs.load_network(LEAF_SPINE)
    placement = Placement([network.nodes.index(name) for name in placed]) if placed else None
    with pytest.raises(cs.InputError, match=message):
        prepare(spec, network, placement=placement, n_ranks=n_ranks)


def test_programmability_may_be_left_unassumed():
    network = cs.load_network(LEAF_SPINE)
    with pytest.raises(cs.InputError, match=r"it: leaf_spine:.* has no aggregating switch; name it"):
        seat_aggregators("it", SYSTEMS["switchml_udp"].build(), network, assume_programmable=False)


def test_groups_have_aggregators_of_their_own():
    ready = prepare_groups("switchml", LEAF_SPINE, [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1]])
    assert [names(group) for group in ready.groups] == [["leaf0"], ["leaf1"], ["leaf0"]]
    results = ready.predict(2.0**20)
    assert results[0].time == pytest.approx(2 * results[1].time, rel=0.02)  # it shares two ranks with the third group
    assert results[0].time == pytest.approx(results[2].time, rel=0.02)


def test_adding_in_a_switch_is_not_slowed_by_a_slow_rank():
    network = with_costs(cs.load_network("star:n_hosts=8"), gamma=1e-9)
    assert cs.predict("switchml", network, "64MiB", overhead="0us") == cs.predict(
        "switchml", "star:n_hosts=8", "64MiB", overhead="0us"
    )
    assert network.gamma.tolist() == [1e-9] * 8 + [0.0]
