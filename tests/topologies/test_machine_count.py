import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import NIC
from commsim.core.spec import OwnFile
from commsim.prediction.inputs import load_network
from topologies import TOPOLOGIES

# What each topology needs beside its size.
GIVEN = {
    "leaf_spine": "n_leaves=2,n_spines=2", "multi_plane": "n_planes=2,n_leaves=2,n_spines=2",
    "dual_tor": "n_racks=2,n_spines=2", "jellyfish": "n_switches=8,degree=3", "dragonfly": "a=2,h=1,n_groups=2",
    "three_tier": "n_pods=2,racks_per_pod=2,switches_per_pod=2,n_cores=2", "bcube": "k=1", "torus": "dims=4x4",
    "twisted_torus": "dims=2x4x2", "torus_slices": "dims=4x4,n_slices=1",
}  # fmt: skip


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_machines_counts_machines_in_every_topology(name):
    spec = ",".join(filter(None, (GIVEN.get(name), "machines=4")))
    called, per_machine = (name, 8) if name == "rail_optimized" else (f"alps@{name}", 4)
    network = load_network(f"{called}:{spec}")
    assert len(network.endpoints) == 4 * per_machine
    assert np.unique(network.machine[network.machine >= 0]).size == 4
    assert TOPOLOGIES[name].metadata["sized_by"][0] in TOPOLOGIES[name].parameters


def test_of_plain_hosts_a_machine_is_a_host():
    assert load_network("star:machines=4") == load_network("star:n_hosts=4")
    assert load_network("fat_tree:machines=16") == load_network("fat_tree:k=4")
    assert load_network("leaf_spine:hosts_per_leaf=4,n_spines=2,machines=12") == load_network(
        "leaf_spine:n_hosts=12,n_spines=2,hosts_per_leaf=4"
    )


def test_ports_have_the_rate_of_the_nics_unless_the_fabric_says_otherwise():
    def ports(text):
        network = load_network(text)
        out = (network.kind[network.src] == NIC) & (network.machine[network.dst] < 0)
        return set(network.bandwidth[out] / 1e9)

    assert ports("dgx-h100@star:machines=2") == {48.5}
    assert ports("dgx-h100:rates=spec@star:machines=2") == {50.0}
    assert ports("dgx-h100@leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=8") == {48.5}
    assert ports("dgx-h100@star:machines=2,bandwidth=100Gbps") == {12.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dgx-h100@star:n_hosts=16",
         "n_hosts=16 counts the ports of the fabric, and each machine takes 8 of them: write machines=2 for 2 machines "
         "on these ports, or machines=16 for 16 machines"),
        ("dgx-h100@ring:n_hosts=9", "takes 8 of them; machines=N counts machines, such as machines=2 for 16 ports"),
        ("dgx-h100@star:machines=2,n_hosts=16", "n_hosts=16 counts the ports"),
        ("dgx-h100@star", "^dgx-h100@star needs machines, such as dgx-h100@star:machines=2$"),
        ("dgx-h100@leaf_spine:oversubscription=2",
         "^dgx-h100@leaf_spine needs machines, such as dgx-h100@leaf_spine:oversubscription=2,machines=2$"),
        ("dgx-h100@rail_optimized", "^dgx-h100@rail_optimized needs machines, such as "),
        ("dgx-h100@fat_tree", "^dgx-h100@fat_tree needs machines, such as "),
        ("g4dn@star", "^g4dn@star needs machines, such as "),
        ("star", "^star needs n_hosts, such as star:n_hosts=4$"),
        ("star:machines=2,n_hosts=3", "star: machines=2, but n_hosts=3 has 3; give one of them"),
        ("star:machines=0", "star: machines must be a whole number of at least 1, got '0'"),
        ("star:machines=2.5", "machines must be a whole number of at least 1, got '2.5'"),
        ("dgx-h100@fat_tree:machines=17", "machines=17 are 136 hosts of the fabric, but k=8 has 128 and k=10 has 250"),
        ("dgx-h100@leaf_spine:n_leaves=64,n_spines=4,machines=4", "fill n_leaves=32 of hosts_per_leaf=1, got "),
        ("alps@torus:machines=4", "torus: machines=4 are 16 hosts of the fabric; torus needs dims with that product"),
        ("alps@torus:dims=4x4,machines=5", "are 20 hosts of the fabric, but dims=4x4 has 16; give one of them"),
    ],
)  # fmt: skip
def test_a_count_that_is_ambiguous_or_does_not_fit_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        load_network(text)


def test_where_each_machine_takes_one_port_hosts_are_machines():
    assert load_network("g4dn@star:n_hosts=4").nodes == load_network("g4dn@star:machines=4").nodes


def test_an_own_topology_without_a_size_of_its_own_is_sized_by_n_hosts(tmp_path, forgets):
    forgets(TOPOLOGIES)
    path = tmp_path / "own.py"
    path.write_text(
        "from topologies import topology\n"
        "from topologies.star import star\n\n"
        "@topology\n"
        "def my_star(n_hosts: int):\n"
        '    """A star."""\n'
        "    return star(n_hosts)\n"
    )
    assert len(load_network(OwnFile(f"{path}:my_star:n_hosts=3")).endpoints) == 3
