import numpy as np
import pytest

from collectives.dense.ring import ring_all_reduce
from commsim.core.errors import InputError
from commsim.core.network import NIC
from commsim.core.placement import place
from commsim.core.units import parse_bandwidth
from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes
from topologies.hosts.load import is_machine, load_machine
from topologies.presets import PRESETS

SMALL = [name for name in PRESETS if name not in ("meta-24k", "tpu-v4", "tpu-v5p")]


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_has_a_source_and_at_least_one_value(name):
    preset = PRESETS[name]
    assert preset.sources
    for rate in preset.rates:
        assert rate.source
        assert rate.spec or rate.effective
        for value in (rate.spec, rate.effective):
            assert value is None or parse_bandwidth(value) > 0
        if rate.spec and rate.effective:
            assert parse_bandwidth(rate.effective) < parse_bandwidth(rate.spec)


@pytest.mark.sample(20)
@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_every_preset_is_built_and_its_ranks_reach_each_other(name):
    network = load_network(name)
    assert network.name == name
    n = len(network.endpoints)
    src, dst = np.arange(n), np.random.default_rng(0).permutation(n)
    routes = find_routes(network, src, dst)
    assert (np.diff(routes.first)[src != dst] > 0).all()
    place(network, n).check(network, n)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("rates", ["effective", "spec"])
def test_a_preset_is_short_for_what_it_shows(name, rates):
    short, long = load_network(f"{name}:rates={rates}"), load_network(PRESETS[name].text(rates))
    assert (short.nodes, short.src.tolist()) == (long.nodes, long.src.tolist())
    assert np.array_equal(short.bandwidth, long.bandwidth)
    assert load_network(short.name) == short
    assert short.hardware == long.hardware


def test_meta_s_cluster_has_its_24576_gpus_in_1536_racks():
    network = load_network("meta-24k")
    assert len(network.endpoints) == 24576
    assert sum(name.startswith("rack") for name in network.nodes) == 192 * 8
    routes = find_routes(network, [0, 0, 0], [15, 16, 24575])
    assert [network.nodes[network.dst[k]].rstrip("0123456789") for k in routes.link[routes.first[2] :]] == [
        "m0.pcie", "m0.nic", "rack", "pod", "core", "pod", "rack", "m3071.nic", "m3071.pcie", "m3071.gpu",
    ]  # fmt: skip
    assert np.diff(routes.first).tolist() == [6, 8, 10]


def test_the_largest_slice_of_v5p_has_6144_chips():
    network = load_network("tpu-v5p")
    assert (len(network.endpoints), network.n_links) == (6144, 6 * 6144)
    assert (network.bandwidth == 100e9).all()
    assert len(load_network("tpu-v5p:dims=4x4x4").endpoints) == 64


def test_the_segment_of_hpn_has_16_tors_of_two_planes():
    network = load_network("hpn7-segment")
    leaves = np.array([name.startswith("leaf") for name in network.nodes])
    down = leaves[network.src] & ~leaves[network.dst] & (network.machine[network.dst] >= 0)
    assert leaves.sum() == 16
    assert np.bincount(network.src[down], minlength=network.n_nodes)[leaves].tolist() == [128] * 16
    assert network.bandwidth[down] == pytest.approx(25e9)
    up = leaves[network.src] & (network.machine[network.dst] < 0)
    assert np.bincount(network.src[up], minlength=network.n_nodes)[leaves].tolist() == [60] * 16
    assert network.bandwidth[up] == pytest.approx(50e9)


@pytest.mark.parametrize(
    ("name", "nvlink"), [("dgx-h100", 18 * 20.6e9), ("dgx-a100", 12 * 20e9), ("gb200-nvl72", 18 * 40.1e9)]
)
def test_gpu_to_gpu_runs_at_the_effective_rate_of_all_nvlinks(name, nvlink):
    network = load_network(name)
    routes = find_routes(network, 0, len(network.endpoints) - 1)
    assert network.bandwidth[routes.link] == pytest.approx([nvlink, nvlink])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dgx-h100:rates=best", "preset dgx-h100: rates must be effective or spec, got 'best'"),
        ("dgx-h100:n_gpu=4", r"dgx-h100 has no parameter 'n_gpu'; did you mean n_gpus\?"),
        (
            "dgx-h100:nic=200Gbps@star:nic=400Gbps,machines=6",
            "dgx-h100:nic=200Gbps@star has nic twice: 200Gbps and 400Gbps",
        ),
        ("dgx-h100:gpus=4,n_gpus=4@star:machines=6", "n_gpus is given twice: 4 and 4"),
        ("dgx-h100@", "expected name:key=value"),
        ("@star:n_hosts=8", "expected name:key=value"),
        (
            "dgx-h101@star:n_hosts=8",
            r"unknown machine 'dgx-h101'; did you mean dgx-h100\? \d+ are known \(commsim topo presets\), .* a file",
        ),
        ("meta-24k@star:n_hosts=8", "preset meta-24k is a whole network, not a machine"),
        (
            "dgx-h100@rail_optimized:machines=4,preset=hgx-h100",
            "dgx-h100@rail_optimized:machines=4,preset=hgx-h100 names machines twice: dgx-h100 and hgx-h100",
        ),
        ("dgx-h100@dgx-h100", "dgx-h100 cannot join machines: gpu0 is a gpu"),
        (
            "dgx-h100@leaf_spine:n_leaves=3,n_spines=1,hosts_per_leaf=3",
            "leaf_spine:.* has 9 ports for hosts, which is not a multiple of the 8 NICs of dgx-h100",
        ),
        ("none.xml@star:n_hosts=8", "none.xml: No such file"),
        ("none.txt", "none.txt: No such file"),
        ("none.txt:sn=8", r"none.txt has no parameter 'sn'; known: gpu, sm, nvlink, nvls, .*, net, "),
    ],
)
def test_what_is_no_machine_or_does_not_fit_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        load_network(text)


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(InputError, match=r"unknown preset 'quux'; \d+ are known: a3-high, .* \(commsim topo presets\)"):
        PRESETS["quux"]


@pytest.mark.parametrize("text", ["quux@star:machines=2", "h100@star:machines=2", "aws@star:machines=2", "aws"])
def test_an_unknown_machine_is_answered_in_a_short_line(text):
    """All machines are 300 letters, of which a reader needs those like the name."""
    with pytest.raises(InputError, match="commsim topo") as refusal:
        load_network(text)
    assert len(str(refusal.value)) < 240
    assert str(refusal.value).count(" or ") < 5


@pytest.mark.parametrize(
    ("name", "like", "facts", "nic"),
    [
        ("dgx-h200", "hgx-h200", {"gpu": "hopper", "net": "infiniband"}, "400Gbps"),
        ("dgx-b200", "hgx-b200", {"gpu": "blackwell", "net": "infiniband"}, "400Gbps"),
        ("dgx-b300", "hgx-b300", {"gpu": "blackwell", "net": "infiniband"}, "800Gbps"),
        ("ndv5-h200", "ndv5", {"gpu": "hopper", "net": "infiniband"}, "400Gbps"),
        ("p5e", "p5", {"gpu": "hopper", "net": "efa", "cpu": "amd"}, "400Gbps"),
        ("p5en", "p5", {"gpu": "hopper", "net": "efa3", "cpu": "intel"}, "400Gbps"),
        ("p6-b200", "hgx-b200", {"gpu": "blackwell", "net": "efa3", "cpu": "intel"}, "400Gbps"),
        ("a3-ultra", "hgx-h200", {"gpu": "hopper", "net": "roce", "cpu": "intel"}, "400Gbps"),
    ],
)
def test_a_machine_by_the_name_that_its_maker_or_provider_gives_it(name, like, facts, nic):
    preset, model = PRESETS[name], PRESETS[like]
    assert facts.items() <= preset.hardware.items()
    # aws-ofi-nccl src/platform-aws.cpp: two GPUs and two NICs on a PCIe switch of P5en and P6-B200.
    shared = {"n_pcie_switches": "4"} if name in ("p5en", "p6-b200") else {}
    assert dict(preset.arguments) == {**model.arguments, **shared}
    assert {rate.parameter: rate.spec for rate in preset.rates}["nic"] == nic


@pytest.mark.parametrize(
    ("name", "nvlink", "pcie", "memory"),
    [
        ("dgx-h200", 18 * 25e9, "63GB/s", 8 * 4800e6 * 8),  # NVLink 4 and PCIe 5: MLPerf 4.1, H200-SXM-141GBx8
        ("dgx-b200", 14.4e12 / 8 / 2, "63GB/s", 8 * 5600e6 * 8),  # DGX B200 user guide: 14.4 TB/s, Xeon 8570
        ("dgx-b300", 18 * 50e9, "126GB/s", 8 * 6400e6 * 8),  # heise.de 10395118: Xeon 6776P, 8 x DDR5-6400
        ("p5en", 18 * 25e9, "63GB/s", 8 * 4800e6 * 8),
        ("p6-b200", 18 * 50e9, "63GB/s", 8 * 5600e6 * 8),
        ("a3-ultra", 18 * 25e9, "63GB/s", 8 * 5600e6 * 8),
    ],
)
def test_a_machine_has_the_links_that_its_maker_states(name, nvlink, pcie, memory):
    spec = {rate.parameter: rate.spec for rate in PRESETS[name].rates}
    assert parse_bandwidth(spec["nvlink"]) == nvlink
    assert spec["pcie"] == pcie
    assert parse_bandwidth(spec["memory"]) == memory


@pytest.mark.parametrize("name", [name for name in PRESETS if PRESETS[name].builder.endswith("_host")])
def test_two_cpus_have_the_rate_that_nccl_gives_their_kind(name):
    """NCCL 2.30.7, src/graph/topo.h and topo.cc: one rate for AMD, ERP_QPI_BW from model 0xCF on, SRP from 0x8F."""
    preset = PRESETS[name]
    rates = {rate.parameter: rate.effective for rate in preset.rates}
    of = {"amd": ("16GB/s",), "intel": ("10GB/s", "22GB/s", "40GB/s"), "arm": ("6GB/s",)}[preset.hardware["cpu"]]
    assert rates.get("inter_cpu", of[0]) in of
    if name == "dgx-b300":  # Granite Rapids is model 0xAD
        assert rates["inter_cpu"] == "22GB/s"


@pytest.mark.parametrize("name", [name for name in SMALL if name != "hpn7-segment" and "tpu" not in name])
def test_a_preset_of_a_machine_says_who_made_its_parts_and_a_fabric_keeps_it(name, tmp_path):
    from commsim.core.files.store import SUFFIXES, read_network, save
    from commsim.core.machines.hardware import maker_of, read_hardware

    machine = load_network(name)
    facts = read_hardware(machine.hardware)
    assert maker_of(machine.hardware) == ("amd" if name.startswith("mi") else "nvidia")
    assert {"gpu", "cpu"} <= set(facts)
    assert ("net" in facts) == bool((machine.kind == NIC).any())
    if "net" in facts:
        assert load_network(f"{name}@star:machines=2").hardware == machine.hardware
        assert len(load_network(f"{name}@star:machines=2").endpoints) == 2 * len(machine.endpoints)
    for suffix in SUFFIXES if name == "dgx-h100" else ():
        save(machine, tmp_path / f"x{suffix}")
        assert read_network(tmp_path / f"x{suffix}").hardware == machine.hardware


def test_facts_of_a_machine_may_be_given_and_are_checked(tmp_path):
    path = tmp_path / "box.xml"
    path.write_text(
        '<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">'
        '<pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" sm="90" rank="0"/></pci></cpu></system>'
    )
    assert load_network(f"{path}:net=roce,cpu=intel").hardware == "gpu=hopper,cpu=intel,net=roce"
    assert load_network("nvswitch_host:gpu=hopper").hardware == "gpu=hopper"
    assert load_network("dgx-h100:net=roce").hardware == "gpu=hopper,cpu=intel,net=roce"
    assert load_network("meta-24k").hardware == load_network("dgx-h100:net=roce").hardware  # as Meta says
    with pytest.raises(InputError, match=r"gpu must be one of volta, turing, .*, got 'h100'"):
        load_network("nvswitch_host:gpu=h100")


def test_a_saved_machine_stands_in_front_of_a_fabric(tmp_path):
    from commsim.core.files.store import save

    save(load_machine("dgx-a100"), tmp_path / "box.toml")
    network = load_network(f"{tmp_path / 'box.toml'}@star:machines=2")
    assert len(network.endpoints) == 16
    assert load_network(network.name) == network


def test_names_of_machines_are_told_from_those_of_networks():
    assert is_machine("dgx-h100:rates=spec")
    assert is_machine("pcie_host")
    assert is_machine("box.xml")
    assert not is_machine("meta-24k")
    assert not is_machine("star:n_hosts=4")


def test_a_preset_takes_a_collective():
    from commsim import predict

    result = predict(ring_all_reduce(8), "dgx-h100", "1GiB", overhead="0us")
    assert 0.99 < result.busbw / 370.8e9 <= 1


def test_machines_on_a_fabric_that_holds_machines_are_its_preset():
    joined, own = (load_network(text) for text in (
        "hgx-h100@rail_optimized:machines=4,oversubscription=2:1",
        "rail_optimized:machines=4,oversubscription=2:1,preset=hgx-h100",
    ))  # fmt: skip
    assert joined.name.startswith("hgx-h100@")
    assert (list(joined.nodes), joined.kind.tolist()) == (list(own.nodes), own.kind.tolist())
    assert joined.bandwidth.tolist() == own.bandwidth.tolist()
    few = load_network("hgx-h100:n_gpus=4,n_nics=2@rail_optimized:machines=4")  # two parameters, as no preset= can have
    assert len(few.endpoints) == 16


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("pcie_host:n_nics=2@star:n_gpus=4,machines=6", "pcie_host:n_nics=2,n_gpus=4@star:machines=6"),
        ("dgx-h100@star:gpus=4,nics=4,machines=6", "dgx-h100:n_gpus=4,n_nics=4@star:machines=6"),
        ("dgx-h100@leaf_spine:machines=4,leaves=2,n_spines=8,nic=200Gbps,net=roce",
         "dgx-h100:nic=200Gbps,net=roce@leaf_spine:machines=4,n_leaves=2,n_spines=8"),
        ("dgx-h100@rail_optimized:machines=4,n_gpus=4,nics=4", "dgx-h100:n_gpus=4,n_nics=4@rail_optimized:machines=4"),
        ("rail_optimized:machines=4,preset=hgx-h100,gpus=4", "hgx-h100:n_gpus=4@rail_optimized:machines=4"),
        ("star:hosts=4", "star:n_hosts=4"),
    ],
)  # fmt: skip
def test_a_parameter_of_the_machine_may_stand_behind_its_fabric_and_a_count_lack_its_prefix(text, same):
    found, wanted = load_network(text), load_network(same)
    assert (found.nodes, found.name, found.hardware) == (wanted.nodes, wanted.name, wanted.hardware)
    assert np.array_equal(found.bandwidth, wanted.bandwidth)
