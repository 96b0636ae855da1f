"""Fabrics that spread packets by default do so here, and those that hash do not."""

import pytest

import commsim as cs
from commsim.cli import main
from commsim.core.machines.hardware import FACTS, SPREADING, transport_of
from commsim.prediction.inputs import load_network

FABRIC = "leaf_spine:machines=4,n_leaves=2,n_spines=4,bandwidth=400Gbps"


@pytest.mark.parametrize("net", FACTS["net"])
def test_the_network_of_the_machines_says_whether_packets_are_spread(net):
    routing = load_network(f"dgx-h100:net={net}@{FABRIC}").routing
    assert routing == ("spray" if net in SPREADING else "ecmp")


def test_a_fabric_without_machines_hashes_and_one_with_a_routing_of_its_own_keeps_it():
    assert load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4").routing == "ecmp"
    assert load_network("dgx-h100@dragonfly:p=8,a=2,h=1").routing == "minimal"
    assert load_network("hpn7-segment").routing == "ecmp"


def test_nccl_takes_an_ethernet_that_spreads_packets_for_roce():
    assert transport_of("gpu=hopper,net=spectrum-x") == transport_of("net=uec") == transport_of("net=roce") == "roce"
    times = {
        cs.predict("nccl_all_reduce", f"dgx-h100:net={net}@star:machines=2", "16MiB").time
        for net in ("roce", "spectrum-x", "uec")
    }
    assert len(times) == 1


def test_what_hashes_is_a_median_and_what_spreads_is_not_and_the_title_says_which(capsys):
    asked = ("--placement", "spread", "--size", "64M")
    assert main(["run", "halving_doubling_all_reduce", "--topology", f"dgx-h100@{FABRIC}", *asked]) == 0
    shown = capsys.readouterr().out
    assert "infiniband spreads packets" in shown
    assert "hashes of ECMP" not in shown
    hashed, spread = (
        cs.predict("halving_doubling_all_reduce", f"dgx-h100:net={net}@{FABRIC}", "64MiB", placement="spread")
        for net in ("roce", "infiniband")
    )
    assert spread.hashes is None
    assert hashed.hashes.slowest > spread.time
