import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.files.store import SUFFIXES, save
from commsim.core.placement import Placement, place
from commsim.prediction.inputs import load_network, load_placement
from topologies.leaf_spine import leaf_spine
from topologies.star import star


def test_a_registered_topology_is_built_from_its_arguments():
    text = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=400Gbps,oversubscription=2,latency=1us"
    assert load_network(text) == leaf_spine(4, 2, 8, 50e9, oversubscription=2.0, latency=1e-6)


def test_the_last_parameter_of_a_topology_may_be_a_file(tmp_path):
    machine = tmp_path / "machine.toml"
    save(load_network("dgx-a100"), machine)
    first = load_network(f"rail_optimized:preset={machine},machines=2")
    assert load_network(f"rail_optimized:machines=2,preset={machine}") == first


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_name_that_ends_as_a_file_does_is_a_file(tmp_path, suffix):
    path = str(tmp_path / f"my:star{suffix}")
    save(star(3), path)
    assert load_network(path) == star(3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fat_tre:k=4", r"unknown topology 'fat_tre'; did you mean fat_tree\? \d+ are known \(commsim topo list\)"),
        ("h100", r"unknown topology 'h100'; did you mean dgx-h100 or hgx-h100\? \(commsim topo presets\)"),
        ("DGX-H101", r"unknown topology 'DGX-H101'; did you mean dgx-h100\?"),
        ("p5.48xlarge", r"unknown topology 'p5\.48xlarge'; did you mean p5\?"),
        ("p5.48xlarge@star:machines=2", r"unknown machine 'p5\.48xlarge'; did you mean p5\? \d+ are known"),
        (
            "h200@star:machines=2",
            r"unknown machine 'h200'; did you mean dgx-h200 or hgx-h200 or ndv5-h200\? \d+ are known",
        ),
        ("dgx-h100:machines=0", "star: machines must be a whole number of at least 1, got '0'"),
        ("fat_tree:k=3", "fat_tree needs an even k of at least 2, got k=3"),
        ("fat_tree:k=4,bandwidth=100Gb", "fat_tree: bandwidth must be a rate .* did you mean 100Gbps"),
        ("fat_tree", "fat_tree needs k"),
        ("star:n_hosts=4,n_hosts=5", "n_hosts is given twice"),
        ("none.toml", "none.toml: No such file"),
        ("some/where.dat", r"not a file of a network; commsim's end with \.toml, \.json, \.npz"),
        ("", "expected name:key=value"),
    ],
)
def test_what_is_no_network_is_refused_in_one_line(text, message):
    with pytest.raises(InputError, match=message) as refusal:
        load_network(text)
    assert "\n" not in str(refusal.value)


def test_a_file_with_another_suffix_is_not_taken_for_a_topology(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.dat").write_text("")
    with pytest.raises(InputError, match=r"net\.dat: unknown format, an empty file"):
        load_network("net.dat")


def test_a_strategy_places_as_place_does():
    network = leaf_spine(3, 1, 4)
    assert load_placement("spread", network, 6) == place(network, 6, "spread")
    assert load_placement("random", network, 6, seed=7) == place(network, 6, "random", 7)


def test_a_file_places_as_it_says_if_the_number_is_right(tmp_path):
    save(Placement([2, 0]), tmp_path / "x.json", network=star(3))
    assert load_placement(str(tmp_path / "x.json"), star(3), 2) == Placement([2, 0])
    with pytest.raises(
        InputError, match=r"x\.json: places 2 participants, but there are 3: --ranks 2 takes those of the file"
    ):
        load_placement(str(tmp_path / "x.json"), star(3), 3)


@pytest.mark.parametrize("text", ["tight", "", "x"])
def test_an_unknown_placement_lists_the_known_ones(text):
    with pytest.raises(InputError, match=f"unknown placement '{text}'; known: .*muri, packed, .*or a file"):
        load_placement(text, star(3), 2)


def test_a_network_of_astra_sim_is_read_as_it_is(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "net.yml"
    path.write_text("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n")
    network = load_network(str(path))
    assert len(network.endpoints) == 4
    assert set(network.bandwidth.tolist()) == {50 * 2**30}  # GB/s of ASTRA-sim
    assert set(network.latency.tolist()) == {500e-9}
    with pytest.raises(InputError, match="no such file"):
        load_network(str(tmp_path / "none.yml"))


def test_so_many_of_a_machine_are_on_one_switch():
    assert load_network("dgx-h100:pxn=false,machines=2").name == "dgx-h100:pxn=false@star:machines=2"
    assert load_network("dgx-h100:machines=1").name == "dgx-h100"


def test_a_text_that_is_too_long_for_a_file_name_is_refused_as_a_network():
    """It ended in an OSError of Python."""
    with pytest.raises(InputError, match="leaf"):
        load_network("leaf_" * 100 + "spine:n_leaves=2")


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("star:n_hosts=4,pxn=true", "nvswitch_host:n_gpus=1,pxn=true@star:"),
        ("star:n_hosts=4,gpu=hopper", "nvswitch_host:n_gpus=1,gpu=hopper@star:"),
    ],
)
def test_what_belongs_to_machines_is_refused_with_the_words_that_say_it(text, how):
    with pytest.raises(InputError, match="machines") as refused:
        load_network(text)
    assert how in str(refused.value)
    assert load_network(f"{how}machines=2")


@pytest.mark.parametrize(
    ("preset", "joined"),
    [("", "dgx-h100:pxn=true"), (",preset=hgx-h100", "hgx-h100:pxn=true"),
     (",preset=dgx-h100:n_nics=4", "dgx-h100:n_nics=4,pxn=true")],
)  # fmt: skip
def test_what_belongs_to_machines_is_theirs_on_a_fabric_that_holds_machines(preset, joined):
    network = load_network(f"rail_optimized:machines=2{preset},pxn=true")
    assert network.name == f"{joined}@rail_optimized:machines=2"


def test_facts_of_machines_are_said_beside_a_saved_network(tmp_path):
    path = tmp_path / "net.toml"
    save(load_network("dgx-h100@star:machines=2"), path)
    network = load_network(f"{path}:gpu=blackwell,net=roce")
    assert network.hardware == "gpu=blackwell,cpu=intel,net=roce"
    with pytest.raises(InputError, match=r"net\.toml has no parameter 'pcie', since its links have rates"):
        load_network(f"{path}:pcie=48GB/s")


def test_a_generation_that_the_matrix_leaves_open_is_a_remark_of_an_answer(tmp_path):
    header = "\t" + "\t".join(f"GPU{i}" for i in range(8)) + "\tCPU Affinity\tNUMA Affinity"
    rows = ["\t".join([f"GPU{i}", *(" X " if i == j else "NV18" for j in range(8)), "0-31", "0"]) for i in range(8)]
    path = tmp_path / "smi.txt"
    path.write_text("\n".join([header, *rows]) + "\n")
    remarks = cs.predict("nccl_all_reduce", str(path), "1MiB").remarks
    (guessed,) = (one for one in remarks if one.code == "hardware-guessed")
    assert guessed.text == "guessed: hopper GPUs (gpu=)"
    said = cs.predict("nccl_all_reduce", f"{path}:gpu=hopper", "1MiB").remarks
    assert "hardware-guessed" not in [one.code for one in said]


@pytest.mark.parametrize(("device", "is_said"), [("mlx5_0", True), ("rdmap79s0", False)])
def test_a_transport_that_the_file_leaves_open_is_said(tmp_path, device, is_said):
    path = tmp_path / "smi.txt"
    path.write_text(f"\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n\nNIC Legend:\n\n  NIC0: {device}\n")
    remarks = cs.predict("nccl_all_reduce", f"{path}:gpu=hopper@star:machines=2", "1MiB").remarks
    assert ("transport-unknown" in [one.code for one in remarks]) is is_said
