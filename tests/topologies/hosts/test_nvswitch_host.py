import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import CPU, GPU, MEMORY, NIC, SWITCH
from commsim.routing.routing import find_routes
from topologies.hosts.nvswitch_host import nvswitch_host


@settings(max_examples=settings().max_examples * 2 // 3)
@given(n_cpus=st.integers(1, 2), switches=st.integers(1, 2), nics=st.integers(0, 2), gpus=st.integers(1, 3))
def test_counts_are_as_asked(n_cpus, switches, nics, gpus):
    n_switches = n_cpus * switches
    machine = nvswitch_host(
        n_gpus=gpus * n_switches, n_nics=nics * n_switches, n_pcie_switches=n_switches, n_cpus=n_cpus
    )
    counts = [int((machine.kind == kind).sum()) for kind in (GPU, NIC, CPU, MEMORY)]
    assert counts == [gpus * n_switches, nics * n_switches, n_cpus, n_cpus]
    # A switch with several NICs and GPUs is drawn as one node per NIC, or per GPU if these are fewer, and a hub.
    slots = min(nics, gpus) * n_switches if min(nics, gpus) > 1 else 0
    assert int((machine.kind == SWITCH).sum()) == 1 + n_switches + slots
    cables = 2 * gpus * n_switches + nics * n_switches + slots + n_switches + n_cpus + n_cpus * (n_cpus - 1) // 2
    assert machine.n_links == 2 * cables


def test_two_gpus_reach_each_other_at_the_rate_of_all_nvlinks_in_the_time_of_two():
    machine = nvswitch_host(nvlink=370.8e9, nvlink_latency=1e-7)
    routes = find_routes(machine, [0, 7], [5, 1])
    assert np.diff(routes.first).tolist() == [2, 2]
    assert (machine.bandwidth[routes.link] == 370.8e9).all()
    assert routes.latency == pytest.approx([2e-7, 2e-7])


def test_only_an_nvswitch_that_reduces_takes_a_helper():
    switch = nvswitch_host().nodes.index("nvswitch0")
    assert not nvswitch_host().aggregates[switch]
    assert nvswitch_host(nvls=True).aggregates[switch]


def test_gpus_pass_on_traffic_only_with_pxn():
    assert not nvswitch_host().forwards[:8].any()
    assert nvswitch_host(pxn=True).forwards[:8].all()


def test_a_single_gpu_has_one_nic_one_pcie_switch_and_one_socket():
    machine = nvswitch_host(n_gpus=1)
    assert [int((machine.kind == kind).sum()) for kind in (GPU, NIC, CPU)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_gpus": 0}, "nvswitch_host needs n_gpus of at least 1, got n_gpus=0"),
        ({"n_gpus": 7, "n_pcie_switches": 8}, "needs n_gpus to be a multiple of n_pcie_switches, got n_gpus=7"),
        ({"n_nics": 3}, "needs n_nics to be a multiple or a divisor of n_pcie_switches, got n_nics=3"),
        ({"n_cpus": 3}, "needs n_pcie_switches to be a multiple of n_cpus, got n_pcie_switches=8, n_cpus=3"),
        ({"n_cpus": 0, "n_pcie_switches": 0}, "has GPUs or NICs, so it needs n_pcie_switches or n_cpus of at least 1"),
        ({"n_cpus": 3, "n_pcie_switches": 0}, "needs n_gpus to be a multiple of n_cpus, got n_gpus=8, n_cpus=3"),
    ],
)
def test_a_tree_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        nvswitch_host(**arguments)


def test_fewer_gpus_have_as_many_nics_and_pcie_switches():
    machine = nvswitch_host(n_gpus=4)
    assert machine == nvswitch_host(n_gpus=4, n_nics=4, n_pcie_switches=4)
    assert "n_nics=4,n_pcie_switches=4" in machine.name
    assert "n_nics=8" in nvswitch_host(n_gpus=16).name  # more GPUs: as before
    assert "n_nics=2" in nvswitch_host(n_gpus=4, n_nics=2).name
