import pytest

from commsim import predict
from commsim.core.errors import InputError
from commsim.prediction.inputs import load_network, load_placement, placement_of_ranks
from commsim.prediction.node_lists import placement_file, ranks_named

MACHINES = "dgx-h100@rail_optimized:machines=4,hosts_per_group=2,oversubscription=2"


def names_of(text, topology=MACHINES):
    network = load_network(topology)
    return [network.nodes[node] for node in ranks_named(text, network)]


def gpus(*machines):
    return [f"{machine}.gpu{i}" for machine in machines for i in range(8)]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("m[0-1]", gpus("m0", "m1")),
        ("m0-1", gpus("m0", "m1")),
        ("m2,m0", gpus("m2", "m0")),
        ("m[0,2]", gpus("m0", "m2")),
        ("m0x2,m3x1", ["m0.gpu0", "m0.gpu1", "m3.gpu0"]),
        ("m1.gpu2,m0.gpu0-1", ["m1.gpu2", "m0.gpu0", "m0.gpu1"]),
        ("m0,m1,m0", ["m0.gpu0", "m1.gpu0", "m0.gpu1"]),
        ("m0.gpu3,m0x2", ["m0.gpu3", "m0.gpu0", "m0.gpu1"]),
    ],
)
def test_a_machine_stands_for_its_gpus_in_order(text, named):
    assert names_of(text) == named


def test_hosts_without_machines_are_ranks_themselves():
    assert names_of("h[1-2],h0", "star:n_hosts=4") == ["h1", "h2", "h0"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("m0\nm2\n", gpus("m0", "m2")),
        ("# job 7\nm1 slots=2  # two\n\nm0:1\n", ["m1.gpu0", "m1.gpu1", "m0.gpu0"]),
        ("m0\nm0\nm1\n", ["m0.gpu0", "m0.gpu1", "m1.gpu0"]),
        ("m[0-1]\n", gpus("m0", "m1")),
    ],
)
def test_a_host_file_has_one_machine_a_line(text, named, tmp_path):
    path = tmp_path / "hosts.txt"
    path.write_text(text)
    assert names_of(str(path)) == named


def test_the_list_says_how_many_ranks_there_are():
    network = load_network(MACHINES)
    assert len(placement_of_ranks(network, None, "m[0-2]").nodes) == 24
    assert load_placement("m3x2", network, 2).nodes.tolist() == ranks_named("m3x2", network)
    with pytest.raises(InputError, match=r"m\[0-2\]: places 24 participants, but there are 4"):
        load_placement("m[0-2]", network, 4)


def test_a_strategy_or_a_file_of_ours_is_no_list():
    network = load_network(MACHINES)
    assert [ranks_named(text, network) for text in ("spread", "p.toml", "placed.json:job")] == [None] * 3


@pytest.mark.parametrize("name", ["placed", "placed.out", "placed.json"])
def test_json_of_place_is_known_by_what_is_in_it(tmp_path, name):
    """`place --json placed` writes it, and `--placement placed` took it for a list of hosts."""
    network, path = load_network(MACHINES), tmp_path / name
    path.write_text('\n {"candidates": [{"placement": {"a": ["m1.gpu0", "m0.gpu0"], "b": ["m2.gpu0", "m3.gpu0"]}}]}')
    assert ranks_named(f"{path}:b", network) is None
    nodes = load_placement(f"{path}:b", network, 2).nodes.tolist()
    assert [network.nodes[node] for node in nodes] == ["m2.gpu0", "m3.gpu0"]
    with pytest.raises(InputError, match="name one after a colon"):
        load_placement(str(path), network, 2)
    (tmp_path / "hosts").write_text("m1\nm0\n")
    assert placement_file(str(tmp_path / "hosts")) is None


def test_an_alternating_host_file_crosses_the_spines_at_each_step(commsim):
    run = (
        "run",
        "nccl:algorithm=ring",
        "--topology",
        "dgx-h100@rail_optimized:machines=8,hosts_per_group=4,oversubscription=4",
    )
    near, far, alternating = (
        commsim.results(*run, "-b", "1G", "-e", "1G", "--placement", text)["results"][0]
        for text in ("m[0-3]", "m[0-1,4-5]", "m0,m4,m1,m5")
    )
    assert [row["n_ranks"] for row in (near, far, alternating)] == [32, 32, 32]
    assert far["time_s"] == pytest.approx(near["time_s"], rel=0.01)
    # two flows leave a leaf by its one cable, where one flow did
    assert alternating["time_s"] == pytest.approx(2 * near["time_s"], rel=0.15)


@pytest.mark.parametrize(
    "verb", [("nccl", "--operation", "all_reduce"), ("expect", "--size", "1G", "--operation", "all_reduce")]
)
def test_other_verbs_take_the_number_of_ranks_of_a_list_too(commsim, verb):
    topology = (MACHINES,) if verb[0] == "expect" else ("--topology", MACHINES)
    assert "16 ranks" in commsim(*verb, *topology, "--placement", "m[0,3]").out


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("sprad", "unknown placement 'sprad'; did you mean spread?"),
        ("m9", "unknown placement 'm9'; known: "),
        ("m[0-9]", "has no 'm4'; machines are m0 to m3"),
        ("m[0-1", "the brackets of 'm[0-1' do not close"),
        ("m0,m0x3", "m0 takes 8 ranks, got 8 and then 3 more"),
        ("hosts.txt", "hosts.txt: No such file"),
        (",".join(f"node{i}" for i in range(99)), "unknown placement 'node0,"),  # too long for the name of a file
    ],
)
def test_a_wrong_list_is_refused_in_one_line(commsim, text, what):
    assert what in commsim.refuses("run", "nccl", "--topology", MACHINES, "--placement", text)


def test_an_empty_host_file_and_a_wrong_line_are_named(commsim, tmp_path):
    path = tmp_path / "hosts.txt"
    for text, what in (("", "hosts.txt: is empty; it must name machines"), ("m0\nnode7\n", "hosts.txt, line 2: ")):
        path.write_text(text)
        assert what in commsim.refuses("run", "nccl", "--topology", MACHINES, "--placement", str(path))


@pytest.mark.parametrize(
    ("network", "placement", "n_ranks"),
    [
        ("star:n_hosts=4,bandwidth=25Gbps", "h0,h0", 2),
        ("star:n_hosts=4,bandwidth=25Gbps", "h0,h0,h0", 3),
        ("leaf_spine:n_leaves=2,hosts_per_leaf=2,n_spines=2,bandwidth=200Gbps", "h0,h0,h1,h1", 2),
    ],
)
def test_several_ranks_on_a_plain_host_are_answered_with_the_network_that_has_such_hosts(network, placement, n_ranks):
    plain = load_network(network)
    with pytest.raises(InputError, match="h0 takes 1 rank, got 1 and then 1 more; cpu_host:") as refused:
        ranks_named(placement, plain)
    named = load_network(str(refused.value).split("; ")[1].split(" has hosts")[0])
    assert len(named.endpoints) == n_ranks * len(plain.endpoints)
    assert len(ranks_named("m0", named)) == n_ranks
    assert predict("ring_all_reduce", named, "1MiB", placement="m0").time < 100e-6  # 2 x 512 KiB at 22 GB/s are 48 us
