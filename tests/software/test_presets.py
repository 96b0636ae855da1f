import numpy as np
import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.network import NIC
from commsim.scenario import prepare, with_costs
from commsim.software.presets import known_software, software

SIZE = 1e9


def rate(name, gbps, n):
    network = with_costs(cs.load_network(f"star:n_hosts={n},bandwidth={gbps}Gbps"), software=name)
    return SIZE / 4e6 / prepare("ring_all_reduce", network).predict(SIZE).time


@pytest.mark.parametrize(
    ("name", "gbps", "n", "published"),
    [("nccl-rdma", 100, 8, 1280), ("nccl-rdma", 10, 8, 160), ("nccl-tcp", 100, 8, 290), ("nccl-tcp", 10, 8, 163),
     ("gloo", 100, 8, 110), ("gloo", 10, 8, 85), ("nccl-tcp", 100, 4, 330), ("nccl-rdma", 100, 4, 1370)],
)  # fmt: skip
def test_rings_reach_the_rates_that_were_measured(name, gbps, n, published):
    # rows of 8 workers are those that the presets were fitted to; those of 4 are predicted
    assert rate(name, gbps, n) == pytest.approx(published, rel=0.01 if n == 8 else 0.1)


@pytest.mark.parametrize(
    ("machines", "us", "within"),
    [("ndv4@star:machines=2,bandwidth=200Gbps", 23071.5, 0.01),
     ("dgx-h100@star:machines=2,bandwidth=400Gbps", 11076.24, 0.05)],
)  # fmt: skip
def test_kernels_of_mscclpp_over_infiniband(machines, us, within):
    """MSCCL++'s baselines of its CI, 16 ranks, 1 GiB: that of NDv4 is what the preset is fitted to, NDv5's is not."""
    network = with_costs(cs.load_network(machines), software="mscclpp")
    assert cs.predict("direct_all_to_all", network, 2**30).time == pytest.approx(us * 1e-6, rel=within)


@pytest.mark.parametrize(
    ("machine", "kib", "us", "within"),
    [("ndv4", 24, 7.24, 0.001), ("ndv4", 8, 6.51, 0.1), ("ndv4", 48, 7.91, 0.1), ("ndv4", 72, 8.28, 0.1),
     ("dgx-h100", 24, 6.18, 0.17), ("dgx-h100", 48, 6.62, 0.17), ("dgx-h100", 72, 6.91, 0.17)],
)  # fmt: skip
def test_kernels_of_mscclpp_in_one_machine(machine, kib, us, within):
    """The same baselines, 8 ranks: 24 KiB on NDv4 is what the fixed time is fitted to, the others are not."""
    network = with_costs(cs.load_network(machine), software="mscclpp")
    found = software("mscclpp").fixed + cs.predict("recursive_doubling_all_reduce", network, kib * 1024).time
    assert found == pytest.approx(us * 1e-6, rel=within)


def test_only_ports_of_the_fabric_are_slower():
    network = cs.load_network("dgx-h100@star:machines=2")
    slowed = software("nccl-rdma").on(network)
    changed = slowed.bandwidth != network.bandwidth
    assert np.all((network.kind[network.src] == NIC) | (network.kind[network.dst] == NIC), where=changed)
    assert np.count_nonzero(changed) == 2 * 2 * 8
    assert np.all(slowed.bandwidth[changed] == pytest.approx(71.7e9 / 8))


def test_every_preset_says_where_it_is_from_and_what_it_was_fitted_to():
    for one in known_software().values():
        assert one.source
        assert one.fitted
        assert one.source in one.told
        assert 0 < one.efficiency <= 1 < one.rate


def test_an_unknown_one_is_refused():
    with pytest.raises(InputError, match="unknown software 'mpi'; known: nccl-rdma"):
        software("mpi")


def test_hosts_of_omnireduce_add_at_the_rate_of_their_threads_and_switches_as_fast_as_before():
    network = cs.load_network("star:n_hosts=4,bandwidth=100Gbps")
    preset = software("omnireduce-gdr")
    slowed = preset.on(network)
    assert np.allclose(slowed.gamma[network.endpoints], preset.gamma)
    assert preset.gamma == pytest.approx(1 / 7.52e9)
    switches = np.setdiff1d(np.arange(len(network.kind)), network.endpoints)
    assert np.array_equal(slowed.gamma[switches], network.gamma[switches])
    assert "adding" not in software("nccl-gdr").told.split(";")[0]
    assert "adding 0.133 ns a byte" in preset.told
