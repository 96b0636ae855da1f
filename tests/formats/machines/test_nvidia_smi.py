"""The sample machines here are made up for the tests."""

import gzip

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.machines.hardware import net_of
from commsim.core.network import CPU, NIC, SWITCH
from commsim.formats.machines.nvidia_smi import read_nvidia_smi
from commsim.formats.recognise import format_of_file
from commsim.prediction.inputs import load_network
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


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: "])
def test_a_matrix_behind_a_launcher_s_prefix_is_the_same_machine(tmp_path, prefix):
    network = read(tmp_path, BOX)
    (tmp_path / "run.txt").write_text("".join(f"{prefix}{line}\n" for line in BOX.splitlines()))
    assert format_of_file(str(tmp_path / "run.txt")) == "nvidia-smi"
    again = read_nvidia_smi(tmp_path / "run.txt")
    assert (again.nodes, again.bandwidth.tolist()) == (network.nodes, network.bandwidth.tolist())


def _same(one, other):
    return (one.nodes, one.src.tolist(), one.dst.tolist(), one.bandwidth.tolist(), one.hardware) == (
        other.nodes, other.src.tolist(), other.dst.tolist(), other.bandwidth.tolist(), other.hardware
    )  # fmt: skip


@pytest.mark.parametrize(
    "pasted",
    [
        BOX.replace("NV12\tPXB\tSYS\t0", "NV12\tPXBSYS\t0"),  # a line that was wrapped
        BOX.replace("NV12\tNV12\tNV12", "NV12NV12\tNV12").replace(" X \tSYS\n", " XSYS\n"),
        "\n".join(f"> {line}" for line in BOX.splitlines()),
        "\n".join(f"> > {line}" for line in BOX.splitlines()),
        BOX.replace("\n", "\r\n"),
    ],
    ids=["wrapped", "glued NVLinks", "quoted", "quoted twice", "Windows"],
)
def test_a_matrix_that_a_paste_has_changed_is_the_same_machine(tmp_path, pasted):
    plain = read(tmp_path, BOX)
    (tmp_path / "box.txt").write_text(pasted, newline="")
    assert format_of_file(str(tmp_path / "box.txt")) == "nvidia-smi"
    assert _same(read_nvidia_smi(tmp_path / "box.txt"), plain)


@pytest.mark.parametrize("edge", ["", "| "])
def test_a_matrix_in_markdown_is_the_same_machine(tmp_path, edge):
    words = [line.split() for line in BOX.replace("\x1b[4m", "").splitlines()[1:8]]
    cells = [["", *words[0][:6]], *(row[:7] for row in words[1:])]
    lines = [edge + " | ".join(row) + (" |" if edge else "") for row in cells]
    lines.insert(1, edge + " | ".join(["--"] * 7) + (" |" if edge else ""))
    (tmp_path / "box.txt").write_text("\n".join(lines) + "\n")
    assert format_of_file(str(tmp_path / "box.txt")) == "nvidia-smi"
    network = read_nvidia_smi(tmp_path / "box.txt")
    plain = read(tmp_path, BOX)
    assert (network.nodes, network.bandwidth.tolist()) == (plain.nodes, plain.bandwidth.tolist())


def test_rows_of_nics_may_be_left_out_since_columns_say_the_same(tmp_path):
    plain = read(tmp_path, BOX)
    without = "\n".join(line for line in BOX.splitlines() if not line.startswith("NIC"))
    assert _same(read(tmp_path, without), plain)
    with pytest.raises(InputError, match="line 2: there is a column GPU3, but no row"):
        read(tmp_path, "\n".join(line for line in BOX.splitlines() if not line.startswith("GPU3")))


def test_two_machines_in_one_paste_are_read_only_if_they_are_alike(tmp_path):
    other = BOX.replace("NV12", "NV18").replace("mlx5_0", "mlx5_4")
    assert _same(read(tmp_path, f"node1:\n{BOX}\nnode2:\n{BOX}\nGPU0 NVIDIA A100\n"), read(tmp_path, BOX))
    with pytest.raises(InputError, match="the matrix from line 22 on is of another machine than that from line 3 on"):
        read(tmp_path, f"node1:\n{BOX}\nnode2:\n{other}")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n\nLegend:\n  OK   = Status Ok\n", "is nvidia-smi topo -p2p"),
        (
            "       GPU0    GPU1\nGPU0   0       XGMI\nGPU1   XGMI    0\n",
            "rocm-smi's table has no 'Link Type between two GPUs'; print it with --showtopo",
        ),
    ],
)
def test_tables_that_begin_alike_are_named(tmp_path, text, what):
    with pytest.raises(InputError, match=what):
        read(tmp_path, text)


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
        ("NIC1\tSYS\tSYS", "NIC2\tSYS\tSYS", ", line 8: there is a row NIC2, but no column"),
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


def matrix(*relations, columns=("0-31 0 N/A",), names=None):
    """A matrix with columns of affinity; `columns` are those of each GPU, the last for all that follow."""
    names = names or [f"GPU{i}" for i in range(len(relations))]
    lines = [" ".join((*names, "CPU Affinity NUMA Affinity GPU NUMA ID"))]
    for i, (name, row) in enumerate(zip(names, relations, strict=True)):
        tail = columns[min(i, len(columns) - 1)] if name.startswith("GPU") else ""
        lines.append(" ".join((name, *row, tail)))
    return "\n".join(lines) + "\n"


def joined(n, links, off=(), islands=None):
    """Relations of n GPUs on a switch, without those of `off`, or with islands of so many."""
    island = islands or n
    return [
        ["X" if a == b else links if a // island == b // island and not {a, b} & set(off) else "SYS" for b in range(n)]
        for a in range(n)
    ]


@pytest.mark.parametrize(
    ("n", "links", "columns", "hardware", "gb"),
    [
        (8, "NV18", "0-31 0 N/A", "gpu=hopper,guessed=gpu", 18 * 20.6),  # H100, H200, H20; B200 has as many
        (8, "NV12", "0-31 0 N/A", "gpu=ampere", 12 * 20),  # A100
        (8, "NV8", "0-31 0 N/A", "gpu=hopper,guessed=gpu", 8 * 20.6),  # H800; A800 has as many
        (16, "NV6", "0-31 0 N/A", "gpu=volta", 6 * 20),  # DGX-2
        (4, "NV18", "0-71 0,3-9 2", "gpu=blackwell,cpu=arm", 18 * 40.1),  # a tray of GB200
        (4, "NV18", "0-71 0,3-9 N/A", "gpu=hopper,guessed=gpu", 18 * 20.6),  # half of an HGX
        (2, "NV18", "0-71 0,3-9 1", "gpu=blackwell,cpu=arm", 18 * 40.1),
    ],
)
def test_the_generation_follows_from_the_links_or_is_a_guess_that_is_said(tmp_path, n, links, columns, hardware, gb):
    network = read(tmp_path, matrix(*joined(n, links), columns=(columns,)))
    assert network.hardware == hardware
    assert rate(network, "gpu1", "nvswitch0") == pytest.approx(gb)


@pytest.mark.parametrize(
    ("name", "hardware", "gb"),
    [
        ("GPU 0: NVIDIA H20 (UUID: GPU-1)", "gpu=hopper", 18 * 20.6),
        ("| NVIDIA B200  On |", "gpu=blackwell", 18 * 40.1),
        ("GPU 0: NVIDIA B300 SXM6 AC", "gpu=blackwell", 18 * 40.1),
        ("NVIDIA A800-SXM4-80GB", "gpu=ampere", 18 * 20.0),
        ("Tesla V100-SXM3-32GB", "gpu=volta", 18 * 20.0),
        ("node-h100: L2 cache of T4", "gpu=hopper,guessed=gpu", 18 * 20.6),  # names nothing
    ],
)
def test_a_name_in_the_text_decides_the_generation(tmp_path, name, hardware, gb):
    network = read(tmp_path, f"{name}\n{matrix(*joined(8, 'NV18'))}")
    assert network.hardware == hardware
    assert rate(network, "gpu0", "nvswitch0") == pytest.approx(gb)


@pytest.mark.parametrize(
    ("name", "hardware", "pcie"),
    [
        ("NVIDIA L40S", "gpu=ada", 24), ("NVIDIA RTX 6000 Ada Generation", "gpu=ada", 24),
        ("Tesla T4", "gpu=turing", 12),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "gpu=blackwell", 48), ("NVIDIA H100 PCIe", "gpu=hopper", 48),
        ("NVIDIA RTX A6000", "gpu=ampere", 24), ("Quadro RTX 8000", "gpu=turing", 12),
        ("NVIDIA H200 NVL", "gpu=hopper", 48), ("unnamed", "gpu=ada,guessed=gpu", 24),
    ],
)  # fmt: skip
def test_boxes_without_nvlink_have_the_pcie_of_their_gpu(tmp_path, name, hardware, pcie):
    network = read(tmp_path, matrix(*joined(4, "NODE")) + f"\n{name}\n")
    assert network.hardware == hardware
    assert rate(network, "gpu0", "cpu0") == pytest.approx(pcie)
    assert not network.aggregates[network.kind == SWITCH].any()


def test_switches_of_gpus_since_hopper_can_add_and_nvls_says_otherwise(tmp_path):
    def adds(links, **options):
        network = read(tmp_path, matrix(*joined(8, links)), **options)
        return bool(network.aggregates[network.nodes.index("nvswitch0")])

    assert adds("NV18")
    assert not adds("NV12")
    assert not adds("NV18", nvls=False)
    assert not adds("NV18", gpu="ampere")
    assert adds("NV8")
    assert not adds("NV8", sm=80)


def test_what_the_user_says_of_the_gpu_decides_rates_and_generation(tmp_path):
    network = read(tmp_path, matrix(*joined(8, "NV18")), gpu="blackwell")
    assert network.hardware == "gpu=blackwell"
    assert rate(network, "gpu0", "nvswitch0") == pytest.approx(18 * 40.1)
    assert rate(network, "gpu0", "cpu0") == pytest.approx(48)
    assert read(tmp_path, matrix(*joined(8, "NV18")), sm=100) == network
    half = read(tmp_path, matrix(*joined(8, "NV18")), nvlink=300e9)
    assert rate(half, "gpu0", "nvswitch0") == pytest.approx(300)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": "hoper"}, "box.txt: gpu must be one of volta, turing, .*, got 'hoper'"),
        ({"gpu": "cdna3"}, "box.txt: gpu=cdna3 is AMD's, and the file has GPUs of NVIDIA"),
        ({"gpu": "hopper", "sm": 100}, "box.txt: gpu=hopper and sm=100 differ: sm=100 is blackwell"),
        ({"sm": 9}, "box.txt: sm must be a compute capability such as 90 for 9.0, from 60 on, got 9"),
    ],
)
def test_a_gpu_that_is_none_of_the_file_is_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, matrix(*joined(8, "NV18")), **options)


def test_a_gpu_without_nvlinks_is_left_out_of_the_switch(tmp_path):
    network = read(tmp_path, matrix(*joined(8, "NV18", off=[2])))
    assert path(network, "gpu0", "gpu1") == ["nvswitch0", "gpu1"]
    assert "nvswitch0" not in path(network, "gpu2", "gpu3")
    assert "nvswitch0" not in path(network, "gpu0", "gpu2")
    assert not network.forwards[network.endpoints].any()


def test_islands_have_a_switch_each(tmp_path):
    network = read(tmp_path, matrix(*joined(8, "NV18", islands=4)))
    assert path(network, "gpu0", "gpu3") == ["nvswitch0", "gpu3"]
    assert path(network, "gpu4", "gpu7") == ["nvswitch1", "gpu7"]
    assert not any(node.startswith("nvswitch") for node in path(network, "gpu3", "gpu4"))


def test_pairs_have_bridges(tmp_path):
    network = read(tmp_path, matrix(*joined(4, "NV4", islands=2)))
    assert path(network, "gpu0", "gpu1") == ["gpu1"]
    assert "gpu1" not in path(network, "gpu0", "gpu2")
    assert network.hardware == "gpu=ampere,guessed=gpu"
    assert rate(network, "gpu0", "gpu1") == pytest.approx(4 * 12)  # A40 and the like


def test_a_gpu_with_fewer_links_than_the_others_is_slower_alone(tmp_path):
    rows = [["X" if a == b else "NV9" if 1 in (a, b) else "NV18" for b in range(4)] for a in range(4)]
    network = read(tmp_path, matrix(*rows))
    assert rate(network, "gpu0", "nvswitch0") == pytest.approx(18 * 20.6)
    assert rate(network, "gpu1", "nvswitch0") == pytest.approx(9 * 20.6)


def test_beside_grace_nics_hang_on_the_sockets_of_the_gpus(tmp_path):
    names = ["GPU0", "GPU1", "NIC0", "NIC1"]
    rows = ["X NV18 SYS SYS", "NV18 X SYS SYS", "SYS SYS X SYS", "SYS SYS SYS X"]
    columns = ("0-71 0,3-9 2", "72-143 1,19-25 10")
    network = read(tmp_path, matrix(*map(str.split, rows), columns=columns, names=names))
    assert int((network.kind == CPU).sum()) == 2
    assert path(network, "gpu1", "nic1") == ["cpu1", "nic1"]


def test_nics_whose_rate_nobody_says_are_a_guess(tmp_path):
    rows = ["X PIX SYS", "PIX X SYS", "SYS SYS X"]
    text = "NVIDIA H100\n" + matrix(*map(str.split, rows), names=["GPU0", "mlx5_0", "mlx5_bond_1"])
    assert read(tmp_path, text).hardware == "gpu=hopper,guessed=nic"
    network = read(tmp_path, text, nic=25e9)
    assert network.hardware == "gpu=hopper"
    assert rate(network, "nic1", "cpu1") == pytest.approx(25)


def test_where_one_switch_joins_all_gpus_they_send_by_each_others_nics_unless_said(tmp_path):
    names = ["GPU0", "GPU1", "GPU2", "NIC0"]
    rows = ["X NV18 NV18 PIX", "NV18 X NV18 SYS", "NV18 NV18 X SYS", "PIX SYS SYS X"]
    text = matrix(*map(str.split, rows), names=names)
    network = read(tmp_path, text)
    assert network.forwards[network.endpoints].all()
    assert not read(tmp_path, text, pxn=False).forwards[network.endpoints].any()


@pytest.mark.parametrize(
    ("device", "net"), [("rdmap79s0", "efa"), ("cxi0", "slingshot"), ("bnxt_re0", "roce"), ("mlx5_0", "")]
)
def test_the_names_of_nics_say_their_transport_where_it_is_certain(tmp_path, device, net):
    text = "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n\nNIC Legend:\n\n  NIC0: " + device + "\n"
    assert net_of(read(tmp_path, text).hardware) == net


def test_a_packed_matrix_is_a_machine_alone_and_on_a_fabric(tmp_path):
    plain, packed = tmp_path / "box.txt", tmp_path / "box.txt.gz"
    plain.write_text(BOX)
    packed.write_bytes(gzip.compress(BOX.encode()))
    for more in ("", ":gpu=ampere", "@star:machines=2"):
        a, b = (load_network(f"{path}{more}") for path in (plain, packed))
        assert np.array_equal(a.bandwidth, b.bandwidth)
