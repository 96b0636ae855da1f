import pytest
from fabric_trees import blocks, trees
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.schedulers.fabric_tree import Blocks, Switch, SwitchTree
from commsim.placement.schedulers.slurm import read_slurm_conf, sbatch_options, write_slurm_conf
from commsim.placement.schedulers.slurm_yaml import NamedTopology, choose_topology, read_slurm_yaml, write_slurm_yaml
from commsim.placement.schedulers.tier_rates import parse_tiers
from commsim.placement.schedulers.tree_network import build_network

TEXT = """
# written by hand
switchname=s0 nodes=dev[0-5]   # the first rack
SwitchName=s1 Nodes=dev[6-11] LinkSpeed=400
SwitchName=top \\
  Switches=s[0-1]
"""


@given(trees())
def test_trees_come_back(tree):
    assert read_slurm_conf(write_slurm_conf(tree, ("a comment",))) == tree


@given(blocks())
def test_blocks_come_back(found):
    assert read_slurm_conf(write_slurm_conf(found)) == found


def test_a_file_written_by_hand_is_read():
    nodes = tuple(f"dev{i}" for i in range(12))
    assert read_slurm_conf(TEXT) == SwitchTree(
        (Switch("s0", (), nodes[:6]), Switch("s1", (), nodes[6:], "400"), Switch("top", ("s0", "s1")))
    )


def test_blocks_written_by_hand_are_read():
    text = "BlockName=b1 Nodes=n[01-04]\nBlockName=b2 Nodes=n[05-08]\nBlockSizes=4,8\n"
    assert read_slurm_conf(text) == Blocks(
        (("b1", ("n01", "n02", "n03", "n04")), ("b2", ("n05", "n06", "n07", "n08"))), (4, 8)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no SwitchName and no BlockName"),
        ("SwitchName=a Nodes=n0 Switches=b", "line 1: a switch has either Switches= or Nodes="),
        ("\nSwitchName=a", "line 2: a switch has either"),
        ("SwitchName=a Nodes=n0 Speed=3", "line 1: speed= is not known"),
        ("SwitchName=a Nodes=n0 nodes=n1", "line 1: expected Key=value once"),
        ("SwitchName=a Nodes n0", "line 1: expected Key=value once for each key, got 'Nodes'"),
        ("SwitchName=a Nodes=n[0-", "line 1: .*do not close"),
        ("RingName=r Nodes=n[0-3]", "line 1: rings are not read"),
        ("Foo=1", "line 1: a line is SwitchName="),
        ("BlockName=b", "line 1: Nodes= is missing"),
        ("BlockName=b Nodes=n0\nBlockSizes=x", "line 2: BlockSizes are whole numbers"),
        ("BlockName=b Nodes=n0\nSwitchName=a Nodes=n0", "switches and blocks"),
        ("SwitchName=a Switches=b\nSwitchName=c Nodes=n0", "has b below it, which is not described"),
        ("SwitchName=" + "a" * 65 + " Nodes=n0", "line 1: the name of a switch has at most 64"),
        ("SwitchName=a Nodes=n[0-99999999]", "line 1: .* more than"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, message):
    with pytest.raises(InputError, match=message) as caught:
        read_slurm_conf(text, "t.conf")
    assert str(caught.value).startswith("t.conf")
    assert "\n" not in str(caught.value)


def test_a_switch_that_slurm_cannot_have_is_not_written():
    tree = SwitchTree((Switch("a", nodes=("n0",)), Switch("t", ("a",), ("n1",))))
    with pytest.raises(InputError, match="switch t must have either nodes or switches"):
        write_slurm_conf(tree)


TREE = SwitchTree((Switch("a", nodes=("n0", "n1")), Switch("b", nodes=("n2",)), Switch("t", ("a", "b"))))


def test_a_placement_is_nodes_and_leaf_switches():
    block = "--nodes=2 --ntasks=4 --ntasks-per-node=2 --gpus-per-node=2 --nodelist=n[0-1] --switches=1"
    assert sbatch_options(TREE, ["n0", "n0", "n1", "n1"]) == block
    for one, gpus, hosts, n_leaves in (
        ("n2 n1", "--gpus-per-node=1", "n[2,1]", 2),
        ("n0 n0 n1", "--gpus-per-task=1", "n[0-1]", 1),
        ("n0 n1 n0 n1", "--gpus-per-node=2", "n[0-1]", 1),
    ):
        lost = f"--ntasks={len(one.split())} --distribution=arbitrary {gpus} --nodelist={hosts} --switches={n_leaves}"
        assert sbatch_options(TREE, one.split()) == f"--nodes=2 {lost}"


def test_slurm_takes_hosts_by_their_numbers():
    tree = SwitchTree((Switch("a", nodes=("n10", "n2")),))
    assert "--ntasks-per-node=1" in sbatch_options(tree, ["n2", "n10"])
    assert "--distribution=arbitrary" in sbatch_options(tree, ["n10", "n2"])


def test_a_host_that_the_tree_does_not_have_is_refused():
    with pytest.raises(InputError, match="'x', which is not a node of the tree"):
        sbatch_options(TREE, ["x"])


YAML_TEXT = """
---
- topology: fabric
  cluster_default: true
  tree:
    switches:
      - switch: sw_root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: node[03-04]
- topology: nvl
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b1, nodes: "node[01-02]"}
      - {block: b2, nodes: "node[03-04]"}
"""


@given(trees(), blocks(), st.booleans())
def test_topologies_come_back(tree, found, is_default):
    topologies = (NamedTopology("007", tree, is_default), NamedTopology("yes", found))
    assert read_slurm_yaml(write_slurm_yaml(topologies, ("a comment",))) == topologies


def test_a_yaml_file_written_by_hand_is_read():
    fabric, nvl = read_slurm_yaml(YAML_TEXT)
    leaves = (Switch("s1", (), ("node01", "node02")), Switch("s2", (), ("node03", "node04")))
    assert fabric == NamedTopology("fabric", SwitchTree((Switch("sw_root", ("s1", "s2")), *leaves)), True)
    assert nvl.topology.sizes == (2, 4)
    assert choose_topology((fabric, nvl), None, "f") is fabric.topology
    assert choose_topology((fabric, nvl), "nvl", "f") is nvl.topology


def test_a_topology_must_be_chosen_where_none_is_the_default():
    fabric, nvl = read_slurm_yaml(YAML_TEXT.replace("true", "false"))
    with pytest.raises(InputError, match="several topologies and no default; choose one with --topology: fabric, nvl"):
        choose_topology((fabric, nvl), None, "f")
    with pytest.raises(InputError, match="has no topology 'x'; it has fabric, nvl"):
        choose_topology((fabric, nvl), "x", "f")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cluster_default: true", "cluster_default: maybe", "cluster_default must be true or false"),
        ("children: s[1-2]", "nodez: s[1-2]", "nodez is not a field"),
        ("children: s[1-2]", "children: s[1-9]", "has s3 below it"),
        ("children: s[1-2]", "children: [s1, s2]", r"tree.switches\[0\].children must be text"),
        ("block_sizes: [2, 4]", "block_sizes: [2, x]", r"block_sizes\[1\] must be a whole number"),
        ("topology: nvl", "topology: fabric", "topology fabric appears twice"),
        ("  block:", "  blok:", "needs exactly one of"),
        ("- topology: fabric", "- name: fabric", "topology is missing"),
    ],
)
def test_what_is_wrong_is_named(old, new, message):
    assert old in YAML_TEXT
    with pytest.raises(InputError, match=message) as caught:
        read_slurm_yaml(YAML_TEXT.replace(old, new, 1), "t.yaml")
    assert str(caught.value).startswith("t.yaml")


@pytest.mark.parametrize("text", ["", "a: b", "- 3", "[]"])
def test_what_is_no_list_of_topologies_is_refused(text):
    with pytest.raises(InputError, match=r"expected a list|must be a mapping"):
        read_slurm_yaml(text)


TESTS_OF_SLURM = """---
- topology: a
  cluster_default: True
  tree:
    switches:
    - switch: root
      children: s[1-3]
    - switch: s1
      nodes: node[01-02]
    - switch: s2
      nodes: node[03-04]
    - switch: s3
- topology: b
  cluster_default: False
  flat: true
- topology: c
  cluster_default: no
  flat:
    alpha_step_rank: true
- topology: d
  block:
    block_sizes:
      - 2
      - 4
    blocks:
    - block: b1
      nodes: node[01-02]
    - block: b2
      nodes: node03
    - block: b3
- topology: e
  torus3d:
    toruses: []
"""


def test_what_slurms_own_tests_write_is_read():
    read = read_slurm_yaml(TESTS_OF_SLURM, "t.yaml")
    assert [one.kind for one in read] == ["tree", "flat", "flat", "block", "torus3d"]
    assert [one.is_default for one in read] == [True, False, False, False, False]
    tree = choose_topology(read, None, "t.yaml")
    assert [switch.name for switch in tree.switches] == ["root", "s1", "s2"]  # what is empty is left out
    blocks = choose_topology(read, "d", "t.yaml")
    assert (blocks.sizes, [name for name, _ in blocks.blocks]) == ((2, 4), ["b1", "b2"])
    with pytest.raises(InputError, match="c is a flat; only tree and block are read; choose another"):
        choose_topology(read, "c", "t.yaml")


def test_a_node_below_two_switches_has_a_cable_to_each():
    tree = read_slurm_conf("SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[2-3]\nSwitchName=t Switches=s[0-1]\n")
    assert tree.nodes == ("n1", "n2", "n3")
    assert tree.shared == {"n2": ("s0", "s1")}
    network = build_network(tree, parse_tiers("1=100Gbps,2=1:1"))
    names = {network.link_name(i) for i in range(network.n_links // 2)}
    assert {"n2:s0", "n2:s1", "n1:s0", "n3:s1"} <= names
    assert "n1:s1" not in names


def test_block_sizes_of_a_file_are_kept_by_the_cluster(commsim, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4\n"
    (tmp_path / "b.conf").write_text(text)
    given = ("--from", "slurm-conf", "--tier-bandwidth", "1=200Gbps,2=1:1", "--gpus-per-host", 8)
    assert commsim("place", "import", "b.conf", *given, "-o", "c.toml").code == 0
    assert commsim("place", "export", "c.toml", "--to", "slurm-conf", "--plugin", "block").code == 0
    assert commsim.out.splitlines()[1:] == text.splitlines()
    assert commsim("run", "ring_all_reduce", "--topology", "c.toml", "--ranks", 8, "-b", "1M", "-e", "1M").code == 0
