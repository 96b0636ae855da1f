"""Machines are put on the hosts that the network says, or that names say, to be theirs."""

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network, both_ways
from topologies.hosts.load import load_machine, on_fabric

MACHINE = "nvswitch_host:n_gpus=2,n_nics=2,n_pcie_switches=2"


def star(names: list[str], machine: list[int] | int = -1) -> Network:
    n = len(names)
    src, dst = both_ways(np.arange(n), np.full(n, n))
    numbers = [*machine, -1] if isinstance(machine, list) else machine
    return Network("f.toml", [*names, "leaf0"], [HOST] * n + [SWITCH], src, dst, 5e10, 5e-7, machine=numbers)


def ports(network: Network, fabric: Network) -> dict[str, str]:
    """Machine and NIC on each port of the switch, in the order of the fabric's hosts."""
    switch = network.nodes.index("leaf0")
    into = [network.nodes[i] for i in network.src[network.dst == switch]]
    return dict(zip((fabric.nodes[i] for i in fabric.hosts), into, strict=True))


def test_the_machine_of_a_networks_node_is_honoured() -> None:
    fabric = star(["p0", "p1", "p2", "p3"], [0, 1, 0, 1])
    found = ports(on_fabric(fabric, load_machine(MACHINE)), fabric)
    assert found == {"p0": "m0.nic0", "p2": "m0.nic1", "p1": "m1.nic0", "p3": "m1.nic1"}


def test_names_say_which_host_a_nic_is_of() -> None:
    fabric = star(["node10-mlx5_1", "node2-mlx5_0", "node2-mlx5_1", "node10-mlx5_0"])
    network = on_fabric(fabric, load_machine(MACHINE))
    assert ports(network, fabric)["node10-mlx5_1"] == "node10.nic1"
    assert ports(network, fabric)["node2-mlx5_0"] == "node2.nic0"
    assert "2 machines by names: node2, node10; nic0 to nic1 are mlx5_0 to mlx5_1" in str(network.told[0])


def test_nics_of_storage_are_left_out_by_name() -> None:
    fabric = star(["a-mlx5_0", "a-storage0", "a-mlx5_1", "b-mlx5_0", "b-mlx5_1", "b-mgmt0"])
    network = on_fabric(fabric, load_machine(MACHINE))
    assert not {"a-storage0", "b-mgmt0"} & set(network.nodes)
    assert any("2 NICs of storage or management" in str(one) for one in network.told)


def test_other_hosts_are_taken_in_their_order_and_it_is_said() -> None:
    network = on_fabric(star(["p0", "p1", "p2", "p3"]), load_machine(MACHINE))
    assert "m0 on p0 to p1" in str(network.told[0])


@pytest.mark.parametrize(
    ("fabric", "wanted"),
    [
        (star(["a-mlx5_0", "a-mlx5_1", "b-mlx5_0"]), "b has 1 NIC"),
        (star(["p0", "p1", "p2"], [0, 0, -1]), "p2 does not"),
        (star(["p0", "p1", "p2"], [0, 0, 0]), "has 3 NICs"),
    ],
)
def test_a_machine_with_other_nics_is_refused_with_their_names(fabric: Network, wanted: str) -> None:
    with pytest.raises(InputError, match=wanted):
        on_fabric(fabric, load_machine(MACHINE))
