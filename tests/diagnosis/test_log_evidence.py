"""Which causes the facts of a log make more or less likely, beside what healthy machines say."""

import pytest

from commsim.diagnosis.causes.ground import ground_of
from commsim.diagnosis.log_evidence import Due, due_of, evidence_of, numbers_of_log
from commsim.diagnosis.log_facts import log_facts
from commsim.prediction.build import plan_collective
from commsim.prediction.read import scenario_of

DUE = Due(nics=8, nic=50e9, net="infiniband", channels=16, pcie=48e9, choices={2**23: ("ring", "ll128")})


def said(*lines):
    return evidence_of(log_facts(f"n:1:2 [0] NCCL INFO {line}" for line in lines), DUE)


@pytest.mark.parametrize(("line", "label"), [
    ("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>", "half_or_fewer_nics_used"),
    ("NCCL_IB_HCA set by environment to mlx5_0,mlx5_1", "half_or_fewer_nics_used"),
    ("NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=200000 context=0x7f", "nic_rate_degraded"),
    ("NET/IB : Using [0]mlx5_bond_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", "wrong_interface_or_ethernet"),
    ("Using network Socket", "ib_disabled_tcp_sockets"),
    ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0", "ib_disabled_tcp_sockets"),
    ("NCCL_IB_DISABLE set by environment to 1.", "ib_disabled_tcp_sockets"),
    ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0", "gpudirect_rdma_off"),
    ("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", "gpudirect_rdma_off"),
    ("GPU Direct RDMA Disabled for GPU 2 / HCA 0 (distance 9 > 4)", "numa_or_affinity"),
    ("Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "pcie_p2p_or_acs"),
    ("NCCL_P2P_DISABLE set by environment to 1.", "pcie_p2p_or_acs"),
    ("              + PCI[12.0] - GPU/0-1b000 (0)", "pcie_gen_or_width"),
    ("NCCL_NVLS_ENABLE set by environment to 0.", "nvls_off_or_unavailable"),
    ("4 coll channels, 4 collnet channels, 0 nvls channels, 4 p2p channels", "too_few_channels_or_qps"),
    ("AllReduce: 8388608 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..3}", "wrong_algorithm_or_protocol_forced"),
    ("NCCL_PROTO set by environment to LL", "wrong_algorithm_or_protocol_forced"),
    ("Hypervisor vendor: KVM", "virtualisation_or_topology_file_missing"),
])  # fmt: skip
def test_a_line_speaks_for_its_cause(line, label):
    assert said(line)[label] > 1


@pytest.mark.parametrize(("line", "label"), [
    ("NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=0x7f", "nic_rate_degraded"),
    ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA", "gpudirect_rdma_off"),
    ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA", "numa_or_affinity"),
    ("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", "pcie_p2p_or_acs"),
    ("16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels", "too_few_channels_or_qps"),
    ("AllReduce: 8388608 Bytes -> Algo RING proto LL128", "wrong_algorithm_or_protocol_forced"),
    ("GPU Direct RDMA Disabled for GPU 2 / HCA 0 (distance 9 > 4)", "gpudirect_rdma_off"),
])  # fmt: skip
def test_a_line_speaks_against_a_cause(line, label):
    assert said(line)[label] < 1


def test_a_list_of_fewer_nics_than_there_are_decides_before_any_time():
    """No ratio of two likelihoods of times speaks against what NCCL itself lists; a variable only suggests it."""
    listed = said("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>")
    wished = said("NCCL_IB_HCA set by environment to mlx5_0,mlx5_1")
    assert listed["half_or_fewer_nics_used"] > 1e6 > 100 > wished["half_or_fewer_nics_used"]


def test_numbers_of_nics_are_taken_from_the_log():
    line = "n:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>"
    assert numbers_of_log(log_facts([line])) == {"half_or_fewer_nics_used": 2}
    assert numbers_of_log(log_facts(["no line of NCCL"])) == {}


def test_what_nccl_says_that_it_uses_comes_before_a_variable():
    assert said("NCCL_IB_DISABLE set by environment to 1.", "Using network IB")["ib_disabled_tcp_sockets"] < 1


def test_two_releases_speak_for_a_regression_and_one_against_it():
    old, new = (log_facts([f"NCCL version {release}"]) for release in ("2.19.3", "2.20.5"))
    assert evidence_of(new, DUE, old)["version_regression"] > 1
    assert evidence_of(new, DUE, new)["version_regression"] < 1


def test_what_is_due_follows_the_machines():
    plan = plan_collective(scenario_of("nccl_all_reduce", "hgx-h100@star:machines=2"))
    facts = log_facts(["x NCCL INFO AllReduce: 1024 Bytes -> Algo TREE proto LL"])
    due = due_of(ground_of(plan.launch, 16), facts)
    assert (due.nics, due.channels) == (8, 16)
    assert due.nic == pytest.approx(50e9, rel=0.05)
    assert due.choices.keys() == {1024}
