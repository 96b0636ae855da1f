"""The flow engine on machines with an inside: what NVLink, PCIe and NICs make of collectives."""

import pytest

from collectives.dense.hierarchical import hierarchical_all_reduce
from collectives.dense.ring import ring_all_reduce
from commsim import predict
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network


@pytest.mark.parametrize(("name", "nvlink"), [("dgx-a100", 240e9), ("dgx-h100", 370.8e9), ("gb200-nvl72", 721.8e9)])
def test_a_ring_inside_one_machine_has_the_bus_bandwidth_of_nvlink(name, nvlink):
    assert predict("ring_all_reduce", name, "64GiB", overhead="0us").busbw == pytest.approx(nvlink, rel=2e-3)


def test_a_ring_by_pcie_is_limited_by_the_sockets():
    busbw = predict("ring_all_reduce", "pcie_host:inter_cpu=10GB/s,pcie=24GB/s", "16GiB", overhead="0us").busbw
    assert busbw == pytest.approx(10e9, rel=1e-3)


def test_a_ring_over_machines_is_limited_by_one_nic():
    network = load_network("rail_optimized:n_hosts=4,preset=dgx-h100")  # the ring changes rails between machines
    busbw = predict("ring_all_reduce", network, "16GiB", routing="spray", overhead="0us").busbw
    assert busbw == pytest.approx(48e9, rel=5e-3)


def test_the_hierarchy_uses_all_rails():
    network = load_network("rail_optimized:n_hosts=4,preset=dgx-h100")
    ready = prepare("hierarchical_all_reduce", network)
    assert [note.text for note in ready.notes] == [
        "hierarchical_all_reduce: groups are the 4 machines, of 8 ranks each"
    ]
    size = 16 * 2**30
    inside, across = 2 * 7 / 8 * size / 370.8e9, 2 * 3 / 4 * size / 8 / 48e9
    result = ready.predict(size)
    assert result.time == pytest.approx(inside + across, rel=2e-3)


def test_groups_of_plain_hosts_are_still_the_racks():
    ready = prepare("hierarchical_all_reduce", "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4")
    assert [note.text for note in ready.notes] == ["hierarchical_all_reduce: groups are the 2 racks, of 4 ranks each"]
    assert ready.parameters["groups"] == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_two_gpus_that_share_a_nic_share_its_rate():
    network = load_network("p4d@star:machines=2,bandwidth=100Gbps")
    p = Program(4, 1)
    p.copy(0, src=[0, 1], dst=[2, 3])
    p4d = [network.nodes.index(name) for name in ("m0.gpu0", "m0.gpu1", "m1.gpu0", "m1.gpu2")]
    assert predict(p.build(), network, 1e9, placement=Placement(p4d), overhead="0us").time == pytest.approx(
        2e9 / 12.5e9, rel=1e-4
    )


def test_a_server_on_host_memory_takes_no_gpu_from_the_ranks():
    """Every GPU pushes to a server on a memory and pulls the sum: half of them cross between the sockets."""
    network = load_network("dgx-h100")
    p = Program(8, 1, n_helpers=1)
    p.reduce(0, src=range(8), dst=8)
    p.copy(0, src=8, dst=range(8))
    schedule = p.build()
    ready = prepare(schedule, network)
    assert [network.nodes[node] for node in ready.placement.nodes] == [*(f"gpu{i}" for i in range(8)), "memory0"]
    busiest = ready.predict(1e9).link_bytes
    crossing = (network.src == network.nodes.index("cpu1")) & (network.dst == network.nodes.index("cpu0"))
    assert busiest[crossing] == pytest.approx(4e9)


def test_a_helper_on_an_nvswitch_that_reduces_halves_what_a_gpu_sends():
    network = load_network("dgx-h100")
    p = Program(8, 1, n_helpers=1)
    p.reduce(0, src=range(8), dst=8)
    p.copy(0, src=8, dst=range(8))
    placement = Placement([*range(8), network.nodes.index("nvswitch0")])
    result = predict(p.build(), network, 370.8e9, placement=placement, overhead="0us")
    assert result.time == pytest.approx(2.0, rel=1e-4)
    sent = result.link_bytes[network.dst == network.nodes.index("nvswitch0")]
    assert sent == pytest.approx([370.8e9] * 8)


def test_unequal_machines_make_unequal_groups():
    network = load_network("dgx-h100@star:machines=2")
    ready = prepare(hierarchical_all_reduce(12), network, n_ranks=12)
    assert ready.schedule.n_ranks == 12
    (noted,) = prepare("hierarchical_all_reduce", network, n_ranks=12).notes
    assert noted.text == "hierarchical_all_reduce: groups are the 2 machines, of 4 or 8 ranks each"


def test_a_schedule_without_groups_is_placed_on_gpus_too():
    assert predict(ring_all_reduce(4), "dgx-a100", "1GiB", overhead="0us").busbw == pytest.approx(240e9, rel=0.01)
