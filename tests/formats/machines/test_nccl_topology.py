"""The sample machines here are made up for the tests."""

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import CPU, GPU, NIC, SWITCH
from commsim.formats.machines.nccl_topology import read_nccl_topology
from commsim.routing.network_metrics import measure
from commsim.routing.routing import find_routes


def pci(bus, code, inside="", speed="16.0 GT/s PCIe", width="16"):
    return f'<pci busid="{bus}" class="{code}" link_speed="{speed}" link_width="{width}">{inside}</pci>\n'


def gpu(dev, links="", sm=90):
    return f'<gpu dev="{dev}" sm="{sm}" rank="{dev}" gdr="1">{links}</gpu>'


def net(dev, speed=400000, gdr=1):
    return f'<nic><net name="mlx5_{dev}" dev="{dev}" speed="{speed}" port="1" gdr="{gdr}"/></nic>'


def cpu(inside, numaid=0, vendor="AuthenticAMD", family=25, model=1):
    return (f'<cpu numaid="{numaid}" arch="x86_64" vendor="{vendor}" familyid="{family}" modelid="{model}">\n'
            f"{inside}</cpu>\n")  # fmt: skip


def read(tmp_path, *cpus, **options):
    path = tmp_path / "box.xml"
    path.write_text(f'<system version="1">\n{"".join(cpus)}</system>\n')
    return read_nccl_topology(path, **options)


def rate(network, a, b):
    """Bandwidth of the one link between two nodes, in GB/s."""
    link = (network.src == network.nodes.index(a)) & (network.dst == network.nodes.index(b))
    assert np.count_nonzero(link) == 1, (a, b)
    return network.bandwidth[link][0] / 1e9


def path(network, a, b):
    routes = find_routes(network, network.nodes.index(a), network.nodes.index(b))
    return [network.nodes[network.dst[link]] for link in routes.link]


NVS = "".join(f'<nvlink target="0000:c{i}:00.0" count="9" tclass="0x068000"/>' for i in range(2))


def full(tmp_path):
    def side(k):
        devices = pci(f"0000:{k}1:00.0", "0x030200", gpu(2 * k, NVS), "32.0 GT/s PCIe")
        devices += pci(f"0000:{k}2:00.0", "0x020700", net(2 * k), "32.0 GT/s PCIe")
        devices += pci(f"0000:{k}3:00.0", "0x030200", gpu(2 * k + 1, NVS), "32.0 GT/s PCIe")
        devices += pci(f"0000:{k}4:00.0", "0x020700", net(2 * k + 1, 200000), "32.0 GT/s PCIe")
        return cpu(pci(f"0000:{k}0:00.0", "0x060400", devices), k)

    return read(tmp_path, side(0), side(1))


def test_a_whole_file_gives_gpus_nics_switches_and_sockets_with_nccl_s_rates(tmp_path):
    network = full(tmp_path)
    assert [int((network.kind == kind).sum()) for kind in (GPU, NIC, CPU)] == [4, 4, 2]
    assert rate(network, "gpu0", "nvswitch0") == pytest.approx(18 * 20.6)
    assert rate(network, "gpu0", "pcie0.0") == pytest.approx(48)
    assert rate(network, "pcie0.0", "nic0") == pytest.approx(48)  # the lane, not the 50 GB/s of the port
    assert rate(network, "pcie0.1", "nic1") == pytest.approx(25)
    assert rate(network, "cpu0", "pcie0") == pytest.approx(24)
    assert rate(network, "cpu0", "cpu1") == pytest.approx(24)  # Zen 3
    assert measure(network).no_path is None


def test_the_oldest_gpu_and_the_cpu_are_known_to_who_asks_for_them(tmp_path):
    assert full(tmp_path).hardware == "gpu=hopper,cpu=amd"
    devices = pci("0000:01:00.0", "0x030200", gpu(0, sm=89)) + pci("0000:02:00.0", "0x030200", gpu(1, sm=120))
    assert read(tmp_path, cpu(devices, vendor="GenuineIntel", family=6, model=143)).hardware == "gpu=ada,cpu=intel"
    assert read(tmp_path, cpu(pci("0000:01:00.0", "0x030200"), vendor="")).hardware == "cpu=other"


def test_paths_are_by_nvlink_and_by_the_nic_beside(tmp_path):
    network = full(tmp_path)
    assert path(network, "gpu0", "gpu3") == ["nvswitch0", "gpu3"]
    assert path(network, "gpu3", "nic3") == ["pcie1.1", "nic3"]
    assert path(network, "gpu0", "gpu1") == ["nvswitch0", "gpu1"]


PARTIAL = cpu(
    pci("ffff:ff:01.0", "0x060400", pci("0000:10:1c.0", "0x030200", speed="8 GT/s") +
        pci("0000:10:1d.0", "0x030200", speed="8 GT/s") + pci("0000:10:1b.0", "0x020000", speed="8 GT/s"), "8 GT/s"),
    vendor="GenuineIntel", family=6, model=85,
)  # fmt: skip


def test_a_partial_file_says_by_class_what_a_leaf_is(tmp_path):
    network = read(tmp_path, PARTIAL)
    assert [int((network.kind == kind).sum()) for kind in (GPU, NIC, CPU)] == [2, 1, 1]
    assert rate(network, "gpu0", "pcie0") == pytest.approx(12)
    assert rate(network, "cpu0", "pcie0") == pytest.approx(12 * 5 / 6)  # GPU to GPU through an Intel root complex
    assert path(network, "gpu0", "gpu1") == ["pcie0", "gpu1"]


def _eight(device=""):
    """Eight GPUs as a cloud lists them for a virtual machine: two and a NIC on each of four PCIe switches."""
    said = f'vendor="0x10de" device="{device}" ' if device else ""
    gpus = [pci(f"0:{i}:0.0", "0x030200").replace("class=", said + "class=") for i in range(8)]
    return [
        cpu(pci(f"ff:{i}:0.0", "0x060400", "".join(gpus[2 * i : 2 * i + 2]) + pci(f"1:{i}:0.0", "0x020700")))
        for i in range(4)
    ]


@pytest.mark.parametrize(
    ("device", "options", "rated"),
    [
        ("0x20b0", {}, 12 * 20.0),  # A100 SXM4, sold with 12 NVLinks; NCCL counts 20 GB/s for each
        ("0x2330", {}, 18 * 20.6),  # H100 SXM5
        ("", {"gpu": "ampere"}, 12 * 20.0),
        ("", {"sm": 90}, 18 * 20.6),
    ],
)
def test_gpus_that_a_file_leaves_to_the_driver_have_the_nvlinks_of_their_board(tmp_path, device, options, rated):
    """NCCL fills in NVLinks of a file that has none below its GPUs; a PCIe machine would be 15 times slower."""
    network = read(tmp_path, *_eight(device), **options)
    assert rate(network, "gpu7", "nvswitch0") == pytest.approx(rated)


def test_eight_v100_that_a_file_leaves_to_the_driver_are_a_hybrid_cube_mesh(tmp_path):
    network = read(tmp_path, *_eight(), gpu="volta")
    assert rate(network, "gpu0", "gpu3") == pytest.approx(2 * rate(network, "gpu0", "gpu1"))


def test_cards_have_no_nvlinks_of_a_board(tmp_path):
    assert "nvswitch0" not in read(tmp_path, *_eight("0x26b9")).nodes  # L40S
    assert "nvswitch0" not in read(tmp_path, *_eight(), sm=86).nodes  # A10G


def test_eight_gpus_that_may_be_anything_are_asked_for(tmp_path):
    with pytest.raises(InputError, match=r"8 GPUs as PCI devices alone.* give gpu=ampere, hopper or another"):
        read(tmp_path, *_eight())


def test_an_nvlink_of_a_gpu_to_itself_is_no_link(tmp_path):
    """A virtual machine that does not see where its links lead names the GPU itself (Azure NC A100 v4)."""
    network = read(tmp_path, cpu(pci("0:1", "0x0302", gpu(0, '<nvlink target="0:1" count="12" tclass="0x030200"/>'))))
    assert len(network.src) == 2


def test_the_controller_of_a_screen_is_no_gpu_unless_the_file_says_so(tmp_path):
    vga = pci("0:3:0.0", "0x030000")
    network = read(tmp_path, cpu(pci("0:1:0.0", "0x030200") + vga + pci("0:2:0.0", "0x020000")))
    assert [int((network.kind == kind).sum()) for kind in (GPU, NIC, CPU)] == [1, 1, 1]
    with pytest.raises(InputError, match="neither a <gpu> nor a PCI device of class 0x0302"):
        read(tmp_path, cpu(vga))
    said = read(tmp_path, cpu(pci("0:3:0.0", "0x030000", gpu(0))))  # a card of a workstation that NCCL found
    assert (said.kind == GPU).sum() == 1


@pytest.mark.parametrize(("gdr", "said"), [((0, 0), True), ((0, 1), False), ((1, 1), False)])
def test_machines_whose_nics_all_lack_gpudirect_say_so(tmp_path, gdr, said):
    nics = "".join(pci(f"0:{i + 2}:0.0", "0x020000", net(i, gdr=flag)) for i, flag in enumerate(gdr))
    network = read(tmp_path, cpu(pci("0:1:0.0", "0x030200", gpu(0)) + nics))
    assert ("gpudirect=no" in network.hardware) is said


def test_a_file_of_more_devices_than_a_machine_has_is_refused(tmp_path):
    with pytest.raises(InputError, match="a machine has up to 64"):
        read(tmp_path, *[cpu(pci("0:1:0.0", "0x030200"))] * 65)
    with pytest.raises(InputError, match="has 1025 GPUs and NICs; a machine has up to 1024"):
        read(tmp_path, cpu("".join(pci(f"0:{i}:0.0", "0x030200") for i in range(1025))))


def test_nvlinks_that_a_partial_file_does_not_know_can_be_given_and_known_ones_cannot(tmp_path):
    network = read(tmp_path, PARTIAL, nvlink=240e9)
    assert rate(network, "gpu1", "nvswitch0") == pytest.approx(240)
    whole = cpu(pci("0:0:0.0", "0x030200", gpu(0, NVS)))
    with pytest.raises(InputError, match="the file has the rate of the NVLinks"):
        read(tmp_path, whole, nvlink=1e9)


@pytest.mark.parametrize(
    ("speed", "width", "expected"),
    [
        ("2.5 GT/s", "16", 3), ("5.0 GT/s PCIe", "16", 6), ("8 GT/s", "8", 6), ("16 GT/s", "16", 24),
        ("32.0 GT/s PCIe", "16", 48), ("64.0 GT/s PCIe", "16", 96), ("", "", 12), ("Unknown speed", "0", 12),
    ],
)  # fmt: skip
def test_pcie_is_width_times_the_rate_of_a_lane(tmp_path, speed, width, expected):
    network = read(tmp_path, cpu(pci("0:1:0.0", "0x030200", speed=speed, width=width)))
    assert rate(network, "gpu0", "cpu0") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("vendor", "family", "model", "expected"),
    [
        ("GenuineIntel", 6, 79, 6), ("GenuineIntel", 6, 85, 10), ("GenuineIntel", 6, 0x8F, 22),
        ("GenuineIntel", 6, 0xCF, 40), ("GenuineIntel", 6, 0xAD, 40), ("AuthenticAMD", 23, 49, 16),
        ("AuthenticAMD", 25, 1, 24), ("AuthenticAMD", 26, 2, 32), ("Somebody", 1, 1, 10),
    ],
)  # fmt: skip
def test_sockets_are_joined_at_the_rate_of_their_generation(tmp_path, vendor, family, model, expected):
    options = {"vendor": vendor, "family": family, "model": model}
    network = read(tmp_path, cpu(pci("0:1:0.0", "0x030200"), 0, **options), cpu("", 1, **options))
    assert rate(network, "cpu0", "cpu1") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("sm", "expected"), [(60, 18), (70, 20), (80, 20), (86, 12), (89, 20), (90, 20.6), (100, 40.1)]
)
def test_an_nvlink_is_as_fast_as_its_gpu(tmp_path, sm, expected):
    links = [f'<nvlink target="0:{2 - i}:0.0" count="4" tclass="0x030200"/>' for i in range(2)]
    boxes = "".join(pci(f"0:{1 + i}:0.0", "0x030200", gpu(i, links[i], sm)) for i in range(2))
    network = read(tmp_path, cpu(boxes))
    assert rate(network, "gpu0", "gpu1") == pytest.approx(4 * expected)
    assert not network.forwards[network.nodes.index("gpu0")]


def test_in_a_chain_of_nvlinks_gpus_forward(tmp_path):
    def links(*targets):
        return "".join(f'<nvlink target="0:{t}:0.0" count="1" tclass="0x030200"/>' for t in targets)

    boxes = "".join(pci(f"0:{i}:0.0", "0x030200", gpu(i, links(*t), 70)) for i, t in ((0, [1]), (1, [0, 2]), (2, [1])))
    assert path(read(tmp_path, cpu(boxes)), "gpu0", "gpu2") == ["gpu1", "gpu2"]


def test_bridges_over_one_device_are_drawn_with_it_and_the_slower_link_counts(tmp_path):
    one = pci("0:0:1.0", "0x060400", pci("0:1:0.0", "0x030200", gpu(0)), "8 GT/s")
    two = pci("0:0:2.0", "0x060400", pci("0:2:0.0", "0x020000", net(0, 100000)))
    network = read(tmp_path, cpu(pci("0:0:0.0", "0x060400", one + two) + pci("0:9:0.0", "0x060400")))
    assert sorted(network.nodes) == ["cpu0", "gpu0", "nic0", "pcie0"]
    assert rate(network, "gpu0", "pcie0") == pytest.approx(12)
    assert rate(network, "nic0", "pcie0") == pytest.approx(12.5)


def test_switches_below_switches_are_kept(tmp_path):
    pair = [
        pci(f"0:{k}:0.0", "0x060400", pci(f"0:{k}:1.0", "0x030200") + pci(f"0:{k}:2.0", "0x030200")) for k in (1, 2)
    ]
    network = read(tmp_path, cpu(pci("0:0:0.0", "0x060400", "".join(pair))))
    assert path(network, "gpu0", "gpu3") == ["pcie1", "pcie0", "pcie2", "gpu3"]


def test_the_ports_of_a_nic_share_its_pcie_link(tmp_path):
    ports = '<nic><net dev="0" speed="100000"/><net dev="1" speed="100000"/></nic>'
    network = read(tmp_path, cpu(pci("0:1:0.0", "0x030200") + pci("0:2:0.0", "0x020000", ports, "8 GT/s")))
    assert int((network.kind == NIC).sum()) == 2
    assert rate(network, "cpu0", "pcie0") == pytest.approx(12)
    assert rate(network, "pcie0", "nic1") == pytest.approx(12)


def test_a_link_between_chips_joins_a_gpu_to_its_socket(tmp_path):
    network = read(tmp_path, cpu(pci("0:1:0.0", "0x030200", gpu(0, '<c2c bw="37500" count="10"/>'))))
    assert 375e9 in network.bandwidth[network.src == network.nodes.index("gpu0")]


def test_numbers_of_devices_are_those_of_the_file(tmp_path):
    boxes = pci("0:1:0.0", "0x030200", gpu(1), "8 GT/s") + pci("0:2:0.0", "0x030200", gpu(0), "16 GT/s")
    network = read(tmp_path, cpu(boxes))
    assert rate(network, "gpu0", "cpu0") == pytest.approx(24)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<graphs/>", "line 1: <graphs> is not the topology of a machine: expected <system>"),
        ("<system>\n</system>", "line 1: <system> has no <cpu>"),
        ("<system>\n<cpu/></system>", "line 1: <system> has no GPU"),
        ("<system>\n<cpu><gpuu/></cpu></system>", "line 2: <gpuu> is not known inside <cpu>; known: c2c, cpu, gin"),
        ('<system><cpu>\n<pci class="0x0302"/></cpu></system>', "line 2: <pci> needs the attribute busid"),
        (
            '<system><cpu>\n<pci busid="0" class="0x0302" link_width="x"/></cpu></system>',
            "line 2: <pci> link_width must be",
        ),
        ('<system><cpu host_hash="1"/>\n<cpu host_hash="2"/></system>', "line 2: <cpu> is of another host"),
        (
            f"<system><cpu>{pci('0:1', '0x0302')}{pci('0:1', '0x0302')}</cpu></system>",
            "line 2: <pci> has the busid of another",
        ),
        (
            '<system><cpu><pci busid="0:1" class="0x0302"><gpu>\n<nvlink target="0:7" count="1" tclass="0x0302"/></gpu>'
            "</pci></cpu></system>",
            "line 2: <nvlink> leads to 0:7, which is no GPU of this file",
        ),
        (
            '<system><cpu><pci busid="0:1" class="0x0302"><gpu>\n<nvlink target="1" count="0"/>'
            "</gpu></pci></cpu></system>",
            "line 2: <nvlink> count must be a whole number of at least 1, got '0'",
        ),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "box.xml"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        read_nccl_topology(path)
    assert str(refusal.value).startswith(f"{path}, {message}")


def chips(*buses, count=9):
    return "".join(f'<nvlink target="{bus}" count="{count}" tclass="0x068000"/>' for bus in buses)


def box(*links, sm=90, **options):
    """A machine of GPUs on one socket, each with these links."""
    return cpu("".join(pci(f"0:{i}:0.0", "0x030200", gpu(i, link, sm)) for i, link in enumerate(links)), **options)


def test_switches_of_gpus_since_hopper_can_add(tmp_path):
    def adds(sm, **options):
        network = read(tmp_path, box(*[NVS] * 4, sm=sm), **options)
        return bool(network.aggregates[network.nodes.index("nvswitch0")])

    assert [adds(sm) for sm in (80, 90, 100)] == [False, True, True]
    assert not adds(90, nvls=False)
    assert adds(80, nvls=True)
    assert not adds(90, gpu="ampere")


def test_a_gpu_off_the_switch_stays_off_it(tmp_path):
    network = read(tmp_path, box(NVS, NVS, "", NVS))
    assert path(network, "gpu0", "gpu3") == ["nvswitch0", "gpu3"]
    assert path(network, "gpu0", "gpu2") == ["cpu0", "gpu2"]
    assert not network.forwards[network.endpoints].any()


def test_gpus_that_share_no_chip_are_islands(tmp_path):
    left, right = chips("c0", "c1"), chips("d0", "d1")
    network = read(tmp_path, box(left, left, right, right))
    assert path(network, "gpu0", "gpu1") == ["nvswitch0", "gpu1"]
    assert path(network, "gpu2", "gpu3") == ["nvswitch1", "gpu3"]
    assert path(network, "gpu1", "gpu2") == ["cpu0", "gpu2"]


def test_chips_that_only_some_gpus_reach_are_one_switch(tmp_path):
    network = read(tmp_path, box(chips("c0"), chips("c0", "c1"), chips("c1")))
    assert path(network, "gpu0", "gpu2") == ["nvswitch0", "gpu2"]
    assert rate(network, "gpu0", "nvswitch0") == pytest.approx(9 * 20.6)
    assert rate(network, "gpu1", "nvswitch0") == pytest.approx(18 * 20.6)


def test_rates_that_the_user_says_replace_those_of_the_file(tmp_path):
    devices = pci("0:1:0.0", "0x030200", gpu(0, NVS)) + pci("0:2:0.0", "0x020000", net(0))
    network = read(tmp_path, cpu(devices), gpu="blackwell", pcie=63e9, nic=25e9)
    assert network.hardware == "gpu=blackwell,cpu=amd"
    assert rate(network, "gpu0", "nvswitch0") == pytest.approx(18 * 40.1)
    assert rate(network, "gpu0", "cpu0") == pytest.approx(63)
    assert rate(network, "nic0", "cpu0") == pytest.approx(25)


def known(bus, vendor, device, inside="", code="0x030200"):
    return f'<pci busid="{bus}" class="{code}" vendor="{vendor}" device="{device}">{inside}</pci>'


@pytest.mark.parametrize(
    ("device", "hardware"),
    [
        ("0x2330", "gpu=hopper"), ("0x2324", "gpu=hopper"), ("0x2329", "gpu=hopper"), ("0x20b2", "gpu=ampere"),
        ("0x20f3", "gpu=ampere"), ("0x26b9", "gpu=ada"), ("0x1eb8", "gpu=turing"), ("0x1db5", "gpu=volta"),
        ("0x2901", "gpu=blackwell"), ("0x2941", "gpu=blackwell"), ("0x3182", "gpu=blackwell"), ("0xffff", ""),
    ],
)  # fmt: skip
def test_without_sm_the_pci_device_says_which_gpu_it_is(tmp_path, device, hardware):
    network = read(tmp_path, cpu(known("0:1:0.0", "0x10de", device), vendor="GenuineIntel"))
    assert network.hardware == f"{hardware},cpu=intel".lstrip(",")


def test_without_sm_and_device_the_number_of_nvlinks_points_to_a_gpu(tmp_path):
    gpus = [pci(f"0:{i}:0.0", "0x030200", f'<gpu dev="{i}">{NVS}</gpu>') for i in range(8)]
    network = read(tmp_path, cpu("".join(gpus)))
    assert network.hardware == "gpu=hopper,cpu=amd,guessed=gpu"
    assert rate(network, "gpu0", "nvswitch0") == pytest.approx(18 * 20.6)
    assert read(tmp_path, cpu("".join(gpus)), sm=100).hardware == "gpu=blackwell,cpu=amd"


def amd(bus, dev, targets=(), gcn="gfx942", sm=304, device="", code="0x120000"):
    """A GPU as RCCL writes it; xGMI to some buses, each with its number of links."""
    links = "".join(f'<xgmi target="{bus}" count="{n}" tclass="0x120000"/>' for bus, n in targets)
    named = f' gcn="{gcn}"' if gcn else ""
    inside = f'<gpu dev="{dev}" sm="{sm}"{named} arch="38911" rank="{dev}" gdr="1">{links}</gpu>'
    return known(bus, "0x1002" if device else "", device, inside, code)


def amd_mesh(n, count=1, **options):
    return cpu("".join(amd(f"0:{i}:0.0", i, [(f"0:{k}:0.0", count) for k in range(n) if k != i], **options)
                       for i in range(n)), vendor="AMD", family=0xAF)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "generation", "gb"),
    [
        ({"gcn": "gfx942"}, "cdna3", 48),  # MI300X, MI308X
        ({"gcn": "940", "sm": 228}, "cdna3", 48),  # MI300A, as older RCCL writes it
        ({"gcn": "gfx950", "sm": 256}, "cdna4", 76.8),
        ({"gcn": "910", "sm": 104}, "cdna2", 36),  # MI250
        ({"gcn": "gfx90a:sramecc+:xnack-", "sm": 104}, "cdna2", 36),
        ({"gcn": "908", "sm": 120}, "cdna1", 24),
        ({"gcn": "906", "sm": 64}, "vega", 24),
        ({"gcn": "", "device": "0x74a2", "sm": 80}, "cdna3", 48),  # MI308X
        ({"gcn": "", "device": "0x740c", "sm": 104}, "cdna2", 36),
    ],
)
def test_dumps_of_rccl_are_machines_of_amd(tmp_path, options, generation, gb):
    network = read(tmp_path, amd_mesh(4, **options))
    assert network.hardware == f"gpu={generation},cpu=amd"
    assert path(network, "gpu0", "gpu3") == ["gpu3"]
    assert rate(network, "gpu0", "gpu3") == pytest.approx(gb)
    assert not (network.kind == SWITCH).any()


def test_the_dies_of_a_package_have_more_links_and_forward(tmp_path):
    rows = [[(1, 4), (2, 1)], [(0, 4), (3, 1)], [(3, 4), (0, 1)], [(2, 4), (1, 1)]]
    gpus = [amd(f"0:{i}:0.0", i, [(f"0:{k}:0.0", n) for k, n in row], "gfx90a", 104) for i, row in enumerate(rows)]
    network = read(tmp_path, cpu("".join(gpus)))
    assert rate(network, "gpu0", "gpu1") == pytest.approx(4 * 36)
    assert rate(network, "gpu0", "gpu2") == pytest.approx(36)
    assert network.forwards[network.endpoints].all()


def test_amd_s_gpus_on_pcie_are_known_by_vendor_or_by_a_number_of_units_that_is_no_capability(tmp_path):
    by_units = cpu(pci("0:1:0.0", "0x030200", '<gpu dev="0" sm="304"/>'))
    assert read(tmp_path, by_units).hardware == "gpu=cdna3,cpu=amd,guessed=gpu"
    by_class = cpu(known("0:1:0.0", "0x1002", "0x74a1", code="0x120000"))
    assert read(tmp_path, by_class).hardware == "gpu=cdna3,cpu=amd"
    assert read(tmp_path, by_units, gpu="cdna2").hardware == "gpu=cdna2,cpu=amd"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": "hopper"}, "box.xml: gpu=hopper is NVIDIA's, and the file has GPUs of AMD"),
        ({"sm": 90}, "box.xml: sm=90 is NVIDIA's, and the file has GPUs of AMD"),
    ],
)
def test_gpus_of_another_maker_are_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, amd_mesh(2), **options)
    with pytest.raises(InputError, match="gpu=cdna3 is AMD's, and the file has GPUs of NVIDIA"):
        read(tmp_path, box(NVS, NVS), gpu="cdna3")
