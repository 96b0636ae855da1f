"""NCCL with SHARP over several switches: each leaf adds for its machines, a root of each rail what the leaves have."""

import pytest

from commsim.core.names.nodes_and_links import find_link
from commsim.prediction.build import prepare

SIZE, RATE = 2**26, 50e9  # NICs and links between switches of the DGX H100 at 400 Gb/s
ALGORITHMS = ("nvls", "collnet_chain", "collnet_direct")


def two_leaves(n_spines):
    return f"dgx-h100:sharp=on@leaf_spine:machines=8,n_leaves=2,n_spines={n_spines}"


def asked(algorithm, topology):
    return prepare(f"nccl_all_reduce:algorithm={algorithm}", topology)


@pytest.mark.sample(2)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_an_uplink_carries_the_sum_of_a_leaf_once_and_not_what_each_machine_has(algorithm, engine):
    """Eight rails take four roots in turn: each uplink carries 2/8 of the array, either way, whatever the machines."""
    size, headers = (SIZE, 1.01) if engine == "flow" else (2**18, 1.1)
    result = asked(algorithm, two_leaves(4)).predict(size, engine=engine)
    network = asked(algorithm, two_leaves(4)).network
    for leaf in range(2):
        for spine in range(4):
            for name in (f"leaf{leaf}:spine{spine}", f"spine{spine}:leaf{leaf}"):
                assert 0.99 < result.link_bytes[find_link(network, name)] / (size / 4) < headers
    # A machine sends each byte to the network once, an eighth by each of its NICs.
    assert 0.99 < result.link_bytes[find_link(network, "m3.nic5:leaf0")] / (size / 8) < headers


@pytest.mark.sample(1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_spine_carries_the_whole_array_through_each_uplink(algorithm):
    """All bytes cross a leaf's only uplink, one after the other, behind what one switch would take at most."""
    whole = SIZE / RATE
    assert whole < asked(algorithm, two_leaves(1)).predict(SIZE).time
    one_switch = asked(algorithm, "dgx-h100:sharp=on@star:machines=8").predict(SIZE).time
    assert asked(algorithm, two_leaves(1)).predict(SIZE).time < whole + one_switch


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_with_an_uplink_for_each_rail_it_takes_as_long_as_with_one_switch(algorithm):
    """Each uplink carries an eighth of the array, as each NIC does; what is left is one more hop of a piece."""
    one_switch = asked(algorithm, "dgx-h100:sharp=on@star:machines=8").predict(SIZE).time
    assert asked(algorithm, two_leaves(8)).predict(SIZE).time == pytest.approx(one_switch, rel=0.1)


def test_sharp_on_two_leaves_takes_less_than_a_ring():
    """One switch that adds for all took 89 ms for 1 GiB, a ring 13.3 ms."""
    topology = two_leaves(4)
    assert prepare("nccl_all_reduce", topology).predict(2**30).time < asked("ring", topology).predict(2**30).time


def nodes(algorithm, topology):
    ready = asked(algorithm, topology).at(SIZE)
    n = ready.schedule.n_ranks + (len(ready.launch.machines) if algorithm == "nvls" else 0)
    return [ready.network.nodes[node] for node in ready.placement.nodes[n:]]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_switches_that_add_are_where_paths_of_machines_join(algorithm):
    assert nodes(algorithm, two_leaves(4)) == ["leaf0", "leaf1", "spine0", "spine1", "spine2", "spine3"]
    assert nodes(algorithm, "dgx-h100:sharp=on@leaf_spine:machines=4,n_leaves=1,n_spines=2") == ["leaf0"]
    assert len(nodes(algorithm, "dgx-h100:sharp=on@star:machines=4")) == 1


def test_on_rails_each_leaf_adds_for_the_rail_that_it_is():
    """The NICs of a rail meet at one leaf, so that no spine has a part."""
    assert nodes("nvls", "rail_optimized:n_hosts=8,preset=dgx-h100:sharp=on") == [f"leaf{rail}" for rail in range(8)]


def test_a_remark_names_the_roots():
    (said,) = [note for note in map(str, prepare("nccl_all_reduce", two_leaves(2)).notes) if "SHARP tree" in note]
    assert "each rail has a SHARP tree of shortest paths, and its topmost switch is one of spine0, spine1" in said


@pytest.mark.parametrize("algorithm", ["collnet_chain", "collnet_direct"])
@pytest.mark.parametrize("size", [2**18, 2**26])
def test_messages_of_collnet_take_what_its_closed_form_says(algorithm, size):
    """Sums return on other connections than what is given to other heads: without that, direct took twice as long."""
    paths = asked(algorithm, "dgx-a100:sharp=on@star:machines=4").at(size).paths
    assert paths.on_reference(size) == pytest.approx(paths.known.seconds, rel=0.02)
