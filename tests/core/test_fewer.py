import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.machines.fewer import fewer_devices
from commsim.core.network import GPU, NIC
from commsim.core.placement import place
from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes


def rates(network, n):
    """What the links of each path between the first n GPUs and from each to the first NIC carry."""
    ends = [network.nodes.index(f"gpu{i}") for i in range(n)] + [network.nodes.index("nic0")]
    found = {}
    for a in ends[:-1]:
        for b in ends:
            if a != b:
                links = np.unique(find_routes(network, a, b).link)
                found[network.nodes[a], network.nodes[b]] = [
                    (network.nodes[network.src[k]], network.nodes[network.dst[k]], network.bandwidth[k]) for k in links
                ]
    return {key: sorted(value) for key, value in found.items()}


@pytest.mark.parametrize("machine", ["dgx-h100", "dgx-a100", "p4d", "mi300x", "alps", "l40s"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_gpus_that_are_used_are_joined_as_in_the_whole_machine(machine, n):
    whole, part = load_network(machine), load_network(f"{machine}:n_gpus={n}")
    assert int((part.kind == GPU).sum()) == n
    assert part.hardware == whole.hardware
    if (part.kind == NIC).any():
        assert rates(part, n) == rates(whole, n)


@pytest.mark.parametrize(
    ("machine", "n_nics"),
    [
        ("hgx-h100:n_gpus=4", 4), ("hgx-h100:n_gpus=5", 5), ("p4d:n_gpus=3", 2), ("p4d:n_gpus=1", 1),
        ("hgx-h100:n_gpus=4,n_nics=1", 1), ("hgx-h100:n_gpus=2,n_nics=8", 8), ("hgx-h100:n_nics=3", 3),
        ("l40s:n_gpus=2", 0),
    ],
)  # fmt: skip
def test_nics_are_the_share_of_the_gpus_unless_said(machine, n_nics):
    network = load_network(machine)
    assert int((network.kind == NIC).sum()) == n_nics
    assert place(network, len(network.endpoints)).nodes.tolist() == network.endpoints.tolist()


def test_a_part_of_a_machine_is_attached_as_a_whole_one():
    network = load_network("hgx-h100:n_gpus=4@star:machines=3")
    assert len(network.endpoints) == 12
    assert int((network.kind == NIC).sum()) == 12
    assert len(load_network("rail_optimized:machines=4,preset=hgx-h100:n_gpus=2").endpoints) == 8


@pytest.mark.parametrize(
    ("n_gpus", "n_nics", "message"),
    [
        (0, None, "dgx-h100: n_gpus must be 1..8, got 0"),
        (9, None, "dgx-h100: n_gpus must be 1..8, got 9"),
        (4, 9, "dgx-h100: n_nics must be 0..8, got 9"),
    ],
)
def test_more_than_there_is_is_refused(n_gpus, n_nics, message):
    with pytest.raises(InputError, match=message):
        fewer_devices(load_network("dgx-h100"), n_gpus, n_nics)
