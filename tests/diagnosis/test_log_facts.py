"""What lines of NCCL and nccl-tests say."""

import json

import pytest

from commsim.diagnosis.log_facts import Choice, LogFacts, log_facts, read_log_facts

LINES = """\
#  Rank  0 Group  0 Pid  10 on     node1 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  8 Group  0 Pid  11 on     node2 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
node1:10:10 [0] NCCL INFO NCCL version 2.26.2+cuda12.8
node1:10:20 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>
node1:10:20 [0] NCCL INFO NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=200000 context=0x7f pciPath=/sys/x ar=1
node1:10:20 [0] NCCL INFO Using network IB
node1:10:20 [0] NCCL INFO NCCL_ALGO set by environment to Ring
node1:10:20 [0] NCCL INFO NVLS multicast support is not available on dev 0
node1:10:20 [0] NCCL INFO + PCI[48.0] - PCI/0-15000 (1000c03015ab)
node1:10:20 [0] NCCL INFO               + PCI[12.0] - GPU/0-1b000 (0)
node1:10:30 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0(0)/GDRDMA
node1:10:30 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
node1:10:30 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels
node1:10:30 [0] NCCL INFO AllReduce: 8388608 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..15}
"""


def one(line):
    return log_facts([f"node1:1:2 [0] NCCL INFO {line}"])


def test_lines_are_read():
    facts = log_facts(LINES.splitlines())
    assert (facts.hosts, facts.gpus) == (("node1", "node2"), ("NVIDIA H100 80GB HBM3",))
    assert (facts.release, facts.nics, facts.network) == ((2, 26, 2), 2, "ib")
    assert (facts.layers, facts.speeds, facts.pcie) == (("IB",), (200000,), 12.0)
    assert facts.environment == {"NCCL_ALGO": "Ring"}
    assert (facts.direct, facts.staged, facts.peers, facts.shared, facts.nvls) == (1, 0, 1, 0, "off")
    assert facts.channels == 16
    assert facts.choices == (Choice("all_reduce", 8388608, "ring", "ll128"),)


@pytest.mark.parametrize(("line", "name", "value"), [
    ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0/GDRDMA", "direct", 1),
    ("Channel 00/0 : 0[0] -> 8[0] [receive] via NET/Socket/1", "network", "socket"),
    ("Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "shared", 1),
    ("GPU Direct RDMA Disabled for GPU 2 / HCA 0 (distance 9 > 4)", "far", 1),
    ("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", "unloaded", 1),
    ("NET/IB : Using [0]mlx5_2:1/RoCE [1]mlx5_3:1/RoCE [RO]; OOB eth0:1.2.3.4<0>", "layers", ("RoCE",)),
    ("NET/OFI Selected provider is efa, fabric is efa-direct (found 4 nics)", "nics", 4),
    ("NET/OFI Selected Provider is efa (found 1 nic)", "nics", 1),
    ("Channel 00 : 0[1a000] -> 1[1b000] via direct shared memory", "shared", 1),
    ("Could not enable P2P between dev 0(=1a000) and dev 1(=1b000)", "shared", 1),
    ("P2P is disabled between connected GPUs 1 and 0. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.",
     "shared", 1),
    ("8388608 Bytes -> Algo 1 proto 2 time 143.1", "choices", (Choice("", 8388608, "ring", "simple"),)),
    ("NCCL_IB_HCA set by environment to mlx5_0,mlx5_1", "environment", {"NCCL_IB_HCA": "mlx5_0,mlx5_1"}),
    ("NCCL_NVLS_ENABLE set by environment to 0.", "environment", {"NCCL_NVLS_ENABLE": "0"}),
])  # fmt: skip
def test_a_line_is_a_fact(line, name, value):
    assert getattr(one(line), name) == value


@pytest.mark.parametrize("words", ["1 proto 2 time 28.6", "RING proto SIMPLE channel{Lo..Hi}={0..0}"])
def test_choices_of_old_and_of_new_releases_are_named_alike(words):
    assert one(f"AllGather: 4096 Bytes -> Algo {words}").choices == (Choice("all_gather", 4096, "ring", "simple"),)


def test_names_of_algorithms_with_two_words_are_ours():
    assert one("AllReduce: 4096 Bytes -> Algo NVLSTREE proto SIMPLE").choices[0].algorithm == "nvls_tree"


@pytest.mark.parametrize("line", ["Hypervisor vendor:     KVM", "# H100 SXM (VM)", "DMI: QEMU Standard PC"])
def test_a_virtual_machine_is_one_by_its_words(line):
    assert log_facts([line]).is_virtual


def test_of_a_plain_table_nothing_is_known():
    assert log_facts(["# nThread 1 nGpus 1", "  1048576  262144  float  sum  -1  35.1  29.8  55.9  0"]) == LogFacts()


def test_a_gpu_that_reaches_one_nic_is_far_from_the_others_of_a_healthy_machine():
    near, far = (f"GPU Direct RDMA {word} for GPU 2 / HCA {hca} (distance {distance})" for word, hca, distance in (
        ("Enabled", 2, "4 <= 5), read 0 mode Default"), ("Disabled", 0, "9 > 5")))  # fmt: skip
    lines = [f"node1:1:2 [2] NCCL INFO {text}" for text in (far, near)]
    assert log_facts(lines).far == 0
    assert log_facts([lines[0], lines[1].replace("node1", "node2")]).far == 1


def test_the_release_is_read_from_the_header_of_nccl_tests():
    assert log_facts(["# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22707"]).release == (2, 27, 7)


def test_lines_behind_colours_and_in_docker_s_json_are_read(tmp_path):
    coloured = "\n".join(f"\x1b[32m{line}\x1b[0m" for line in LINES.splitlines())
    wrapped = "\n".join(json.dumps({"log": f"{line}\n", "stream": "stdout"}) for line in LINES.splitlines())
    for text in (coloured, wrapped):
        (tmp_path / "a.log").write_text(text)
        assert read_log_facts(str(tmp_path / "a.log")) == log_facts(LINES.splitlines())
