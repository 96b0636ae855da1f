"""What lines of NCCL and nccl-tests say, and which causes they make more or less likely."""

import pytest

from commsim.diagnosis.log_facts import evidence_of, log_facts

LINES = """\
#  Rank  0 Group  0 Pid  10 on     node1 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  8 Group  0 Pid  11 on     node2 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
node1:10:10 [0] NCCL INFO NCCL version 2.26.2+cuda12.8
node1:10:20 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>
node1:10:20 [0] NCCL INFO Using network IB
node1:10:20 [0] NCCL INFO NCCL_ALGO set by environment to Ring
node1:10:20 [0] NCCL INFO NVLS multicast support is not available on dev 0
node1:10:30 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA
node1:10:30 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
"""


def test_lines_are_read():
    facts = log_facts(LINES.splitlines())
    assert facts.hosts == ("node1", "node2")
    assert (facts.release, facts.nics, facts.network) == ((2, 26, 2), 2, "ib")
    assert facts.environment == {"NCCL_ALGO": "Ring"}
    assert (facts.direct, facts.staged, facts.peers, facts.shared, facts.nvls) == (1, 0, 1, 0, "off")


def test_fewer_nics_than_the_machine_has_speak_for_it_and_gpudirect_against_a_path_over_the_host():
    found = evidence_of(log_facts(LINES.splitlines()), n_nics=8)
    assert found["half_or_fewer_nics_used"] > 1
    assert found["wrong_algorithm_or_protocol_forced"] > 1
    assert found["nvls_off_or_unavailable"] > 1
    assert found["gpudirect_rdma_off"] < 1
    assert found["ib_disabled_tcp_sockets"] < 1
    assert found["pcie_p2p_or_acs"] < 1


@pytest.mark.parametrize(("line", "label"), [
    ("x NCCL INFO Using network Socket", "ib_disabled_tcp_sockets"),
    ("x NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0", "gpudirect_rdma_off"),
    ("x NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "pcie_p2p_or_acs"),
    ("x NCCL INFO NCCL_NVLS_ENABLE set by environment to 0.", "nvls_off_or_unavailable"),
])  # fmt: skip
def test_a_line_speaks_for_its_cause(line, label):
    assert evidence_of(log_facts([line]), n_nics=8)[label] > 1


def test_two_releases_speak_for_a_regression_and_one_against_it():
    old, new = (log_facts([f"NCCL version {release}"]) for release in ("2.19.3", "2.20.5"))
    assert evidence_of(new, 8, old)["version_regression"] > 1
    assert evidence_of(new, 8, new)["version_regression"] < 1
