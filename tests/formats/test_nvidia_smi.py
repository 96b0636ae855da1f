"""The sample machines here are made up for the tests."""

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import CPU, NIC, SWITCH
from commsim.formats.nvidia_smi import read_nvidia_smi
from commsim.routing.routing import find_routes

BOX = """
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV12\tNV12\tNV12\tPXB\tSYS\t0-31\t0\tN/A
GPU1\tNV12\t X \tNV12\tNV12\tPXB\tSYS\t0-31\t0\tN/A
GPU2\tNV12\tNV12\t X \tNV12\tSYS\tPIX\t32-63\t1\tN/A
GPU3\tNV12\tNV12\tNV12\t X \tSYS\tPIX\t32-63\t1\tN/A
NIC0\tPXB\tPXB\tSYS\tSYS\t X \tSYS
NIC1\tSYS\tSYS\tPIX\tPIX\tSYS\t X

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
"""


def read(tmp_path, text, **options):
    (tmp_path / "box.txt").write_text(text)
    return read_nvidia_smi(tmp_path / "box.txt", **options)


def rate(network, a, b):
    link = (network.src == network.nodes.index(a)) & (network.dst == network.nodes.index(b))
    assert np.count_nonzero(link) == 1, (a, b)
    return network.bandwidth[link][0] / 1e9


def path(network, a, b):
    routes = find_routes(network, network.nodes.index(a), network.nodes.index(b))
    return [network.nodes[network.dst[link]] for link in routes.link]


def square(*rows):
    """A matrix of GPUs only, without columns of affinity."""
    names = [f"GPU{i}" for i in range(len(rows))]
    lines = [" ".join(names), *(" ".join((name, *row.split())) for name, row in zip(names, rows, strict=True))]
    return "\n".join(lines)


def test_a_matrix_gives_switches_sockets_and_an_nvswitch(tmp_path):
    network = read(tmp_path, BOX)
    assert sorted(network.nodes) == sorted(
        ["gpu0", "gpu1", "gpu2", "gpu3", "nic0", "nic1", "cpu0", "cpu1", "pcie0", "pcie1", "nvswitch0"]
    )
    assert rate(network, "gpu0", "nvswitch0") == pytest.approx(12 * 20)
    assert rate(network, "gpu0", "pcie0") == pytest.approx(24)
    assert rate(network, "cpu0", "cpu1") == pytest.approx(16)
    assert path(network, "gpu0", "gpu3") == ["nvswitch0", "gpu3"]
    assert path(network, "gpu3", "nic1") == ["pcie1", "nic1"]
    assert path(network, "gpu3", "nic0") == ["pcie1", "cpu1", "cpu0", "pcie0", "nic0"]


def test_rates_can_be_given(tmp_path):
    network = read(tmp_path, BOX, sm=90, pcie=48e9, nic=25e9)
    assert network.hardware == "gpu=hopper"
    assert rate(network, "gpu0", "nvswitch0") == pytest.approx(12 * 20.6)
    assert rate(network, "gpu0", "pcie0") == pytest.approx(48)
    assert rate(network, "nic0", "pcie0") == pytest.approx(25)


def test_gpus_with_links_enough_for_all_others_are_joined_directly(tmp_path):
    network = read(tmp_path, square("X NV4 NV4 NV4", "NV4 X NV4 NV4", "NV4 NV4 X NV4", "NV4 NV4 NV4 X"))
    assert path(network, "gpu0", "gpu3") == ["gpu3"]
    assert rate(network, "gpu0", "gpu3") == pytest.approx(4 * 20)
    assert not (network.kind == SWITCH).any()
    assert not network.forwards[network.endpoints].any()


def test_more_links_than_a_gpu_has_mean_a_switch_and_its_generation(tmp_path):
    rows = [" ".join("X" if i == k else "NV18" for i in range(4)) for k in range(4)]
    network = read(tmp_path, square(*rows))
    assert rate(network, "gpu2", "nvswitch0") == pytest.approx(18 * 20.6)


def test_in_a_mesh_with_holes_gpus_forward(tmp_path):
    network = read(tmp_path, square("X NV2 PHB", "NV2 X NV2", "PHB NV2 X"))
    assert path(network, "gpu0", "gpu2") == ["gpu1", "gpu2"]


def test_without_nvlink_everything_goes_by_pcie(tmp_path):
    network = read(tmp_path, square("X PIX NODE SYS", "PIX X NODE SYS", "NODE NODE X SYS", "SYS SYS SYS X"))
    assert path(network, "gpu0", "gpu1") == ["pcie0", "gpu1"]
    assert path(network, "gpu0", "gpu2") == ["pcie0", "cpu0", "gpu2"]
    assert path(network, "gpu0", "gpu3") == ["pcie0", "cpu0", "cpu1", "gpu3"]


def test_affinity_says_which_socket_when_nvlink_hides_it(tmp_path):
    rows = ["GPU0 GPU1 CPU Affinity NUMA Affinity", "GPU0 X NV4 0-7 0", "GPU1 NV4 X 0-7 0"]
    assert int((read(tmp_path, "\n".join(rows)).kind == CPU).sum()) == 1
    assert int((read(tmp_path, "\n".join(rows).replace("X 0-7 0", "X 8-15 1")).kind == CPU).sum()) == 2


def test_names_of_adapters_are_nics(tmp_path):
    network = read(tmp_path, "GPU0 mlx5_0 CPU Affinity\nGPU0 X PIX 0-7\nmlx5_0 PIX X\n")
    assert int((network.kind == NIC).sum()) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("GPU0\tGPU1\tGPU2", "CPU0\tGPU1\tGPU2", ": no matrix of nvidia-smi topo -m: no line names its columns"),
        ("PXB\tSYS\t0-31\t0\tN/A\nGPU1", "PZB\tSYS\t0-31\t0\tN/A\nGPU1", ", line 3: 'PZB' is not one of X, NV#"),
        ("NIC1\tSYS\tSYS", "NIC1\tSYS", ", line 8: 5 cells, but there are 6 columns"),
        ("NIC1\tSYS\tSYS", "NIC1\tPIX\tSYS", ", line 3: GPU0 is SYS to NIC1, but NIC1 is PIX to GPU0"),
        ("NIC1\tSYS\tSYS", "NIC2\tSYS\tSYS", ", line 2: there is a column NIC1, but no row"),
        ("NIC1\tSYS\tSYS", "NIC0\tSYS\tSYS", ", line 8: a second row NIC0"),
        ("GPU1\tNV12\t X ", "GPU1\tNV12\tNV12", ", line 4: GPU1 is NV12 to GPU1"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path, old, new, message):
    assert old in BOX
    with pytest.raises(InputError) as refusal:
        text = BOX.replace(old, new, 1)
        read(tmp_path, text)
    assert str(refusal.value).startswith(f"{tmp_path / 'box.txt'}{message}")


def test_a_missing_file_and_one_that_is_no_text_are_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_nvidia_smi(tmp_path / "none.txt")
    (tmp_path / "x.txt").write_bytes(b"GPU0 \xff")
    with pytest.raises(InputError, match="not UTF-8 text at byte 5"):
        read_nvidia_smi(tmp_path / "x.txt")
