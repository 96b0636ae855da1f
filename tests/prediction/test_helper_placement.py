import pytest

from collectives import COLLECTIVES
from collectives.servers.byteps import byteps_split
from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.prediction.build import prepare

LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"


def names(ready):
    return [ready.network.nodes[node] for node in ready.placement.nodes[ready.schedule.n_ranks :]]


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
