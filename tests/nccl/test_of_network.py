import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.placement import Placement, place
from commsim.nccl.choice import ranges
from commsim.nccl.intervals import EVERY, NODE
from commsim.nccl.machine_links import port_rate
from commsim.nccl.of_network import NcclOptions, setting_of
from commsim.nccl.site import as_plugin_sets
from commsim.nccl.tuning_table import cells
from commsim.prediction.bounds.limited_by import limit_of
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from commsim.report.answer import largest


def derive(text, n_ranks=None, **given):
    network = load_network(text)
    n_ranks = n_ranks or len(network.endpoints)
    return setting_of(network, place(network, n_ranks), n_ranks, NcclOptions(**given))


def test_one_machine_is_one_node_with_nvlink_and_nvls():
    found = derive("dgx-h100")
    assert (found.n_ranks, found.n_nodes, found.gpu, found.cpu) == (8, 1, "hopper", "intel")
    ring = found.channels["ring"]
    assert (ring.n, ring.intra, ring.path_intra) == (12, 30e9, "NVL")
    assert found.channels["nvls"].n == 8
    assert found.channels["nvls"].inter == 60e9  # what the search begins with, as NCCL logs it: bw 40.0/60.0
    assert any("12 channels of 30 GB/s" in one.what for one in found.assumed)


def test_an_older_machine_has_other_channels_and_no_nvls():
    found = derive("dgx-a100")
    assert (found.gpu, found.cpu) == ("ampere", "amd")
    assert (found.channels["ring"].n, found.channels["ring"].intra) == (12, 20e9)
    assert "nvls" not in found.channels


@pytest.mark.parametrize(
    ("n_nodes", "per_node", "simple"),
    [
        (2, 8, (70.0, 409.6)), (4, 8, (145.6, 396.4)), (32, 8, (1204.0, 385.5)), (2, 4, (42.8, 219.4)),
        (8, 1, (106.4, 54.9)),
    ],
)  # fmt: skip
def test_rings_of_h100_have_the_latencies_and_rates_of_tuning_logs(n_nodes, per_node, simple):
    # us and GB/s of all-gathers with NCCL 2.27.5: nccl_cost_model.py of meta-pytorch/autoparallel
    some = f"n_gpus={per_node},n_nics={per_node},n_pcie_switches={per_node},n_cpus=1," if per_node < 8 else ""
    found = derive(f"hgx-h100:{some}net=roce@star:machines={n_nodes}", version=(2, 27))
    (ring,) = [cell for cell in cells(found, "all_gather") if cell.name == "ring/simple"]
    assert (round(ring.latency * 1e6, 1), round(ring.bandwidth / 1e9, 1)) == simple


def test_machines_on_a_fabric_are_nodes_and_their_nics_limit_the_channels():
    found = derive("dgx-h100@star:machines=4,bandwidth=400Gbps")
    assert (found.n_ranks, found.n_nodes, found.per_node) == (32, 4, 8)
    ring = found.channels["ring"]
    assert (ring.n, ring.inter) == (8, 48e9)  # 7 of 8 rings leave a GPU by NVLink: 336 of its 370.8 GB/s
    assert ring.path_inter == "PIX"
    assert found.one_nic_tree  # no second GPU is near a NIC, and since Hopper a tree then goes both ways by one
    assert not derive("dgx-a100@star:machines=4").one_nic_tree
    assert not derive("gb200-nvl72@star:machines=2").one_nic_tree  # behind the CPU of two GPUs
    faster = derive("dgx-h100@star:machines=4,bandwidth=400Gbps", nic=25e9)
    assert faster.channels["ring"].inter == 24e9


def test_nccl_reads_the_rate_that_a_port_is_sold_with():
    """An HDR port delivers 23.5 GB/s; NCCL reads 200 Gb/s: four rings of 24 GB/s fit, and large calls take them."""
    found = derive("abci-a100@star:machines=2", version=(2, 18))
    assert (found.channels["ring"].n, found.channels["ring"].inter) == (4, 24e9)
    assert "NCCL takes a NIC to have the 25 GB/s of the network (--nic)" in map(str, found.assumed)
    assert ranges(found, "all_reduce", 2**31)[-1].cell.name == "ring/simple"
    slower = derive("abci-a100@star:machines=2,bandwidth=160Gbps")  # no port is sold with it, so that it is as it is
    assert slower.channels["ring"].inter == 20e9
    assert [port_rate(gbps / 8 * 1e9) * 8e-9 for gbps in (388, 400, 359, 94, 99)] == [400, 400, 359, 100, 100]


@pytest.mark.parametrize(("version", "n", "rate"), [((2, 19), 16, 12e9), ((2, 20), 8, 24e9), ((2, 29), 8, 24e9)])
def test_nccl_joins_the_ports_of_a_nic_since_2_20(version, n, rate):
    found = derive("oci-a100@star:machines=2", version=version)
    assert (found.channels["ring"].n, found.channels["ring"].inter) == (n, rate)
    last = ranges(found, "all_reduce", 2**33)[-1].cell.name
    assert last == ("ring/simple" if n == 8 else "tree/simple")  # logs of 2.29.3 have what a ring of 8 NICs takes
    one = derive("oci-a100:nic_ports=1@star:machines=2", version=version)
    assert one.channels["ring"].n == 8
    plugin = derive("oci-a100:net=efa@star:machines=2", version=(2, 29))  # only NCCL's own transport joins them
    assert plugin.channels["ring"].n == 16


@pytest.mark.parametrize("machine", [0, 1, 3])
def test_the_machine_with_the_fewest_live_nics_decides(machine):
    """Seven NICs of one machine leave seven rings to all, wherever it is: about 8/7 of the time."""
    topology, dead = "dgx-h100@star:machines=4", f"link:m{machine}.nic2:switch0"
    network = cs.with_faults(load_network(topology), fail=[dead])
    found = setting_of(network, place(network, 32), 32, NcclOptions())
    assert (found.channels["ring"].n, found.channels["ring"].inter) == (7, 48e9)
    healthy, hurt = (cs.predict("nccl_all_gather", topology, "1GiB", fail=fail).time for fail in ((), (dead,)))
    assert 1.13 < hurt / healthy < 1.22


def test_plain_hosts_are_nodes_with_one_gpu():
    found = derive("star:n_hosts=4,bandwidth=400Gbps")
    assert (found.n_nodes, found.per_node, found.one_nic_tree) == (4, 1, True)
    # one NIC of 50 GB/s: one channel of 48, doubled since there are few
    assert (found.channels["ring"].n, found.channels["ring"].inter) == (2, 24e9)
    assert "GPUs are Hopper (--gpu)" in map(str, found.assumed)
    assert "CPUs are Intel's (--cpu)" in map(str, found.assumed)


def test_a_machine_without_nvlink_goes_over_pcie():
    found = derive("pcie_host:n_gpus=4,n_nics=1,n_pcie_switches=1,n_cpus=1", gpu="ampere")
    assert found.channels["ring"].path_intra == "PHB"
    assert found.channels["ring"].intra * found.channels["ring"].n <= 24e9


def test_what_is_given_is_not_assumed():
    full = derive("dgx-h100@star:machines=2", gpu="blackwell", cpu="amd", channels=(4, 10e9), nvls=(16, 20e9),
                  nic=50e9, path_inter="PXN", net_latency=2e-6)  # fmt: skip
    assert full.assumed == ()
    assert (full.gpu, full.cpu) == ("blackwell", "amd")
    assert (full.channels["tree"].n, full.channels["tree"].latency) == (4, 2e-6)
    # the NVLS channels share the same NICs
    assert full.channels["nvls"].inter * 16 == pytest.approx(40e9)
    assert "collnet" in derive("dgx-h100@star:machines=2", collnet=True).channels


@pytest.mark.parametrize(("machine", "latency"), [("p4d", 75e-6), ("p5", 75e-6), ("p3dn", 0.0), ("dgx-h100", 0.0)])
def test_the_plugin_of_efa_reports_a_latency_by_which_nccl_chooses(machine, latency):
    found = derive(f"{machine}@star:n_hosts=2" if machine == "p3dn" else f"{machine}@star:machines=2")
    assert {channels.latency for channels in found.channels.values()} == {latency}
    says = "reports a latency of 75 us" if latency else "adds no latency"
    assert f"the network plugin {says} (--net-latency)" in map(str, found.assumed)


def test_a_mesh_gives_two_of_its_four_gpus_a_third_of_the_links():
    four, two = derive("mn5").channels["ring"], derive("mn5", 2).channels["ring"]
    assert four.n * four.intra <= 18 * 20.6e9
    assert two.n * two.intra <= 6 * 20.6e9
    assert (four.path_intra, two.path_intra) == ("NVL", "NVL")


def test_bridged_pairs_are_joined_by_pcie():
    assert derive("nc-a100").channels["ring"].path_intra == "PHB"
    assert derive("nc-a100", 2).channels["ring"].path_intra == "NVL"


def test_makes_that_nccl_has_no_row_of_take_that_of_their_kin_and_amd_is_refused():
    assert (derive("l40s").gpu, derive("g4dn@star:n_hosts=2").gpu) == ("ampere", "volta")
    assert derive("alps").cpu == "other"
    with pytest.raises(InputError, match="NCCL runs on NVIDIA's GPUs, mi300x has cdna3"):
        derive("mi300x")
    assert derive("mi300x", gpu="hopper").gpu == "hopper"


@pytest.mark.parametrize(("n_gpus", "version", "has"), [(2, (2, 27), False), (2, (2, 28), True), (3, (2, 27), True)])
def test_two_gpus_of_a_machine_have_nvlink_sharp_since_2_28(n_gpus, version, has):
    assert ("nvls" in derive("dgx-h100", n_gpus, version=version).channels) is has
    asked = f"nccl_all_reduce:algorithm=nvls,version={version[0]}.{version[1]}"
    if has:
        assert cs.predict(asked, "dgx-h100", "1MiB", n_ranks=n_gpus).time > 0
    else:
        with pytest.raises(InputError, match="needs 3 GPUs of a machine before NCCL"):
            cs.predict(asked, "dgx-h100", "1MiB", n_ranks=n_gpus)


@pytest.mark.parametrize("version", ["2.19", "2.23"])
def test_nvlink_sharp_that_is_forced_where_there_is_none_leaves_the_ring_before_2_24(version):
    """Public: 8 H100 with NCCL_ALGO=NVLS reach a ring's rate with 2 GPUs (NVIDIA/nccl issue 1455, September 2024)."""
    time, ring = (
        cs.predict(f"nccl_all_reduce:algorithm={name},version={version}", "dgx-h100", "4GiB", n_ranks=2).time
        for name in ("nvls", "ring")
    )
    assert time == ring
    plan = prepare(f"nccl_all_reduce:algorithm=nvls,version={version}", "dgx-h100", n_ranks=2)
    assert any(remark.code == "library-fallback" for remark in plan.launch.notes)


def test_a_rack_of_72_gpus_has_32_heads_of_nvlink_sharp():
    nvls = derive("gb200-nvl72").channels["nvls"]
    assert nvls.n == 32
    assert 32 * nvls.intra <= 721.8e9


def read_matrix(tmp_path, off=(), islands=8):
    """A box of eight GPUs on NVSwitch as nvidia-smi says it, some of them off it."""
    from commsim.formats.machines.nvidia_smi import read_nvidia_smi

    rows = [
        " ".join("X" if a == b else "NV18" if a // islands == b // islands and not {a, b} & set(off) else "SYS"
                 for b in range(8))
        for a in range(8)
    ]  # fmt: skip
    text = "\n".join([" ".join(f"GPU{i}" for i in range(8)), *(f"GPU{i} {row}" for i, row in enumerate(rows))])
    (tmp_path / "box.txt").write_text(text + "\nNVIDIA H100\n")
    return read_nvidia_smi(tmp_path / "box.txt")


def setting_on(network, gpus):
    return setting_of(network, Placement(gpus), len(gpus), NcclOptions())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"off": [2]}, "no NVLink joins gpu2 to other GPUs"),
        ({"islands": 4}, "NVLinks join only gpu0 to gpu3; gpu4 to gpu7"),
        (
            {"off": [5], "islands": 4},
            "no NVLink joins gpu5 to other GPUs, and NVLinks join only gpu0 to gpu3; gpu4, gpu6, gpu7",
        ),
    ],
)
def test_gpus_that_no_nvlink_joins_to_the_others_are_named_and_slow_all_down(tmp_path, options, told):
    network = read_matrix(tmp_path, **options)
    setting = setting_on(network, range(8))
    assert any(one.what.startswith(told) for one in setting.assumed)
    assert "nvls" not in setting.channels
    ring = setting.channels["ring"]
    assert ring.path_intra == "PHB"
    assert ring.n * ring.intra <= 48e9


def test_a_gpu_off_nvlink_is_said_beside_the_time_not_among_what_was_assumed(tmp_path):
    healthy, faulty = (
        cs.predict("nccl_all_reduce", read_matrix(tmp_path, off=off), "1GiB").remarks for off in ([], [2])
    )
    (islands,) = [remark for remark in faulty if remark.code == "nvlink-islands"]
    assert islands in largest(faulty)
    assert not any("NVLink joins" in str(remark) for remark in faulty if remark is not islands)
    assert not any(remark.code == "nvlink-islands" for remark in healthy)


def test_cables_that_are_faster_than_nics_leave_the_interval_as_it_is():
    asked = "nccl_all_reduce", "dgx-h100@star:machines=2,bandwidth={}Gbps", "1GiB"
    usual, fast = (cs.predict(asked[0], asked[1].format(rate), asked[2]) for rate in (400, 800))
    assert any(remark.code == "cable-above-nic" for remark in fast.remarks)
    assert usual.interval is not None
    assert fast.interval is not None


def test_no_interval_is_known_of_a_machine_with_a_gpu_off_nvlink(tmp_path):
    healthy, faulty = (cs.predict("nccl_all_reduce", read_matrix(tmp_path, off=off), "1GiB") for off in ([], [2]))
    assert healthy.interval is not None
    assert faulty.interval is None
    whole, part = (cs.expect(read_matrix(tmp_path, off=off), ["all_reduce"], ["1GiB"]) for off in ([], [2]))
    assert (whole.errors.kind, part.errors.kind) == (NODE, EVERY)


def test_cables_above_what_nics_carry_are_said_with_their_effect_beside_the_time():
    found = {}
    for gbps in (200, 400):  # the PCIe links of an A100 carry 200 Gb/s and little more
        network = f"dgx-a100@star:machines=2,bandwidth={gbps}Gbps"
        found[gbps] = cs.predict("nccl_all_reduce", network, "1GiB").remarks
    (faster,) = [remark for remark in found[400] if remark.code == "cable-above-nic"]
    assert faster in largest(found[400])
    assert "cables carry 50 GB/s" in faster.text
    assert faster.text.endswith("a higher bandwidth changes nothing")
    nic = float(faster.text.split("links ")[1].split(":")[0])
    assert faster.effect == pytest.approx(1 - nic / 50, abs=0.01)
    assert not any(remark.code == "cable-above-nic" for remark in found[200])


@pytest.mark.parametrize(
    ("operation", "size", "limit"),
    [("all_gather", "1GiB", "the NICs"), ("all_reduce", "1GiB", "NVLink"), ("all_reduce", "64KiB", "messages in turn")],
)
def test_cables_above_nics_have_an_effect_where_the_nics_limit_only(operation, size, limit):
    network = cs.load_network("dgx-h100@star:machines=2,bandwidth=800Gbps")
    solution = solve(scenario_of(f"nccl_{operation}", network), [cs.parse_size(size)])
    assert limit_of(solution.plan, solution.results[0]).what == limit
    (faster,) = [remark for remark in solution.said if remark.code == "cable-above-nic"]
    assert faster.effect == pytest.approx(0.52 if limit == "the NICs" else 0.0, abs=0.01)
    assert faster.is_shown == (limit == "the NICs")


def test_gpus_of_one_island_have_nvlink_sharp(tmp_path):
    network = read_matrix(tmp_path, islands=4)
    for gpus in (range(4), range(4, 8)):
        setting = setting_on(network, gpus)
        assert setting.channels["nvls"].n == 4
        assert setting.channels["ring"].path_intra == "NVL"
        assert not any("NVLink joins" in one.what for one in setting.assumed)


@pytest.mark.parametrize("machine", ["m0", "m1"])
def test_one_slow_cable_does_not_change_what_the_other_nics_are_taken_for(machine):
    question = "nccl_all_reduce", "dgx-h100@star:machines=4", "1GiB"
    healthy, slow = (cs.predict(*question, scale=scale) for scale in ((), (f"link:{machine}.nic0:switch0=0.5",)))
    rates = [
        [str(remark) for remark in found.remarks if "NCCL takes a NIC to have the" in str(remark)]
        for found in (healthy, slow)
    ]
    assert rates[0] == rates[1] != []
    assert slow.time >= healthy.time


def setting_at(topology, more=""):
    return prepare(f"nccl_all_reduce{more}", topology).launch.setting


def test_the_plugin_of_efa_sets_the_sizes_that_the_user_does_not():
    """NCCL_BUFFSIZE, NCCL_P2P_NET_CHUNKSIZE and chunks of NVLink SHARP, as src/platform-aws.cpp of aws-ofi-nccl."""
    for topology in ("p5", "p5@star:machines=2", "p6-b200@star:machines=2"):
        found = setting_at(topology)
        assert (found.buffer, found.net_chunk, found.nvls_chunk) == (8 * 2**20, 2**19, 2**19)
    assert setting_at("p4d@star:machines=2").nvls_chunk == 0  # no NVLink SHARP there
    own = setting_at("p5@star:machines=2", ":buffer=4MiB,net_chunk=128KiB,nvls_chunk=128KiB")
    assert (own.buffer, own.net_chunk, own.nvls_chunk) == (4 * 2**20, 2**17, 2**17)
    elsewhere = setting_at("dgx-h100@star:machines=2")
    assert (elsewhere.buffer, elsewhere.net_chunk, elsewhere.nvls_chunk) == (0, 0, 0)


def test_a_release_of_the_plugin_sets_what_it_knew():
    """Buffers since 1.16, chunks of NVLink SHARP since 1.8."""
    bare = setting_at("dgx-h100@star:machines=2")
    sizes = [as_plugin_sets(bare, "efa2", release) for release in ((1, 7), (1, 8), (1, 16))]
    assert [(one.buffer, one.nvls_chunk) for one in sizes] == [(0, 0), (0, 2**19), (2**23, 2**19)]


def test_the_chunks_that_the_plugin_sets_are_those_of_the_schedule():
    """At 4 GiB 16 channels of 8 heads have chunks of 512 KiB, four times those of 128 KiB."""
    usual, own = (prepare(f"nccl_all_reduce{more}", "p5@star:machines=2") for more in ("", ":nvls_chunk=128KiB"))
    assert [ready.at(2**32).parameters["nvls_chunk"] for ready in (usual, own)] == [2**19, 2**17]
    assert usual.predict(2**32).time < 0.95 * own.predict(2**32).time
