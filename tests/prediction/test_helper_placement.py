import dataclasses

import numpy as np
import pytest

import commsim as cs
from collectives import COLLECTIVES
from collectives.servers.byteps import byteps_split
from commsim.core.errors import InputError
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


def test_servers_take_the_next_free_hosts_and_that_is_said():
    ready = prepare("parameter_server:n_servers=3", "star:n_hosts=8")
    assert ready.schedule.n_ranks == 5
    assert ready.placement.nodes.tolist() == list(range(8))
    hint = "colocated=true puts them beside the ranks"
    assert (*map(str, ready.notes),) == (f"parameter_server: 5 ranks, since helpers need 3 of the hosts; {hint}",)
    fewer = prepare("parameter_server:n_servers=3", "star:n_hosts=8", n_ranks=2)
    assert fewer.placement.nodes.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("collective", "n_ranks", "message"),
    [
        ("parameter_server:n_servers=8", None, "no place is left for a rank: 8 helpers, 8 hosts"),
        ("parameter_server:n_servers=4", 6, "6 ranks and 4 helpers need 10 hosts, star:n_hosts=8.* has 8"),
        ("byteps:n_servers=5", None, r"n_servers of 0\.\.3 fit 3 of these, got n_servers=5"),
        ("byteps:n_switches=2", None, "adds in the host's memory of h0, and star.* has none there"),
    ],
)
def test_more_servers_than_the_network_has_room_for_are_refused(collective, n_ranks, message):
    with pytest.raises(InputError, match=message):
        prepare(collective, "star:n_hosts=8", n_ranks=n_ranks)


def test_inside_machines_servers_sit_on_memories_and_that_is_said():
    ready = prepare("parameter_server:n_servers=2", "pcie_host:n_nics=1,n_pcie_switches=1,n_cpus=1@star:n_hosts=2")
    assert ready.schedule.n_ranks == 16
    (note,) = (*map(str, ready.notes),)
    assert note.startswith("parameter_server: helpers on m0.memory0, m1.memory0; 2 of 2 in machines of ranks")


@pytest.mark.parametrize(
    ("n_gpus", "host"),
    [(1, "pcie_host:n_gpus=1,n_nics=1,n_pcie_switches=1,n_cpus=1"),
     (2, "pcie_host:n_gpus=2,n_nics=1,n_pcie_switches=1,n_cpus=1"),
     (8, "nvswitch_host:n_nics=1")],
)  # fmt: skip
def test_byteps_cpu_machines_are_spare_ones_and_each_helps_as_theorem_1_says(n_gpus, host):
    n, size, rate = 4, 1e8, 25e9 / 8
    times = []
    for k in range(n + 1):
        ready = prepare(f"byteps:n_servers={k}", f"{host}@star:n_hosts={2 * n},bandwidth=25Gbps", n_ranks=n * n_gpus)
        assert names(ready) == [f"m{n + i}.memory0" for i in range(k)]
        times.append(ready.predict(size).time)
        assert times[-1] == pytest.approx(float(byteps_split(n, k).time) * size / rate, rel=0.03)
    assert times == sorted(times, reverse=True)


def test_memories_of_byteps_stay_in_their_machines_and_its_servers_go_to_spare_ones():
    network = "pcie_host:n_nics=1,n_cpus=1@star:n_hosts=4"
    ready = prepare("byteps:n_servers=1,n_switches=2", network, n_ranks=16)
    assert names(ready) == ["m0.memory0", "m1.memory0", "m2.memory0"]


def helped():
    """Collectives with helpers, with 2 servers where that can be said."""
    for name in COLLECTIVES:
        entry = COLLECTIVES[name]
        key = next((key for key in ("n_servers", "n_aggregators") if key in entry.parameters), None)
        if key is not None or entry.metadata["systems"]:
            yield name if key is None else f"{name}:{key}=2"


@pytest.mark.parametrize("collective", list(helped()))
def test_ranks_of_a_placement_stay_ranks_and_helpers_go_beside_them(collective):
    ready = prepare(collective, "star:n_hosts=8", n_ranks=4, placement=Placement([1, 3, 5, 7]))
    assert ready.schedule.n_ranks == 4
    assert ready.placement.nodes[:4].tolist() == [1, 3, 5, 7]
    assert not set(ready.placement.nodes[4:].tolist()) & {1, 3, 5, 7}
    assert ready.schedule.n_helpers
