import pytest

from commsim.core.errors import InputError
from commsim.run import prepare


def test_servers_take_the_next_free_hosts_and_that_is_said():
    ready = prepare("parameter_server:n_servers=3", "star:n_hosts=8")
    assert ready.schedule.n_ranks == 5
    assert ready.placement.nodes.tolist() == list(range(8))
    assert ready.notes == ("parameter_server: 5 ranks, since 3 of the hosts are needed by helpers",)
    fewer = prepare("parameter_server:n_servers=3", "star:n_hosts=8", n_ranks=2)
    assert fewer.placement.nodes.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("collective", "n_ranks", "message"),
    [
        ("parameter_server:n_servers=8", None, "8 helpers leave none of the 8 hosts to the ranks"),
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
    assert ready.notes == ("parameter_server: helpers on m0.memory0, m1.memory0",)
