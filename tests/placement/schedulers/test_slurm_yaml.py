import pytest
from fabric_trees import blocks, trees
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.schedulers.fabric_tree import Switch, Tree
from commsim.placement.schedulers.slurm import NamedTopology, choose_topology, read_slurm_yaml, write_slurm_yaml

TEXT = """
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


def test_a_file_written_by_hand_is_read():
    fabric, nvl = read_slurm_yaml(TEXT)
    leaves = (Switch("s1", (), ("node01", "node02")), Switch("s2", (), ("node03", "node04")))
    assert fabric == NamedTopology("fabric", Tree((Switch("sw_root", ("s1", "s2")), *leaves)), True)
    assert nvl.topology.sizes == (2, 4)
    assert choose_topology((fabric, nvl), None, "f") is fabric.topology
    assert choose_topology((fabric, nvl), "nvl", "f") is nvl.topology


def test_a_topology_must_be_chosen_where_none_is_the_default():
    fabric, nvl = read_slurm_yaml(TEXT.replace("true", "false"))
    with pytest.raises(InputError, match="several topologies and no default; choose one with --topology: fabric, nvl"):
        choose_topology((fabric, nvl), None, "f")
    with pytest.raises(InputError, match="has no topology 'x'; it has fabric, nvl"):
        choose_topology((fabric, nvl), "x", "f")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cluster_default: true", "cluster_default: maybe", "cluster_default must be one of true, false"),
        ("  tree:", "  ring:", "fabric is a ring; only tree and block are read"),
        ("children: s[1-2]", "nodez: s[1-2]", "needs either children or nodes"),
        ("children: s[1-2]", "children: s[1-9]", "has s3 below it"),
        ("children: s[1-2]", "children: [s1, s2]", r"tree.switches\[0\].children must be text"),
        ("block_sizes: [2, 4]", "block_sizes: [2, x]", r"block_sizes\[1\] must be a whole number"),
        ("topology: nvl", "topology: fabric", "topology fabric is there twice"),
        ("  block:", "  blok:", "needs exactly one of"),
        ("- topology: fabric", "- name: fabric", "topology is missing"),
    ],
)
def test_what_is_wrong_is_named(old, new, message):
    assert old in TEXT
    with pytest.raises(InputError, match=message) as caught:
        read_slurm_yaml(TEXT.replace(old, new, 1), "t.yaml")
    assert str(caught.value).startswith("t.yaml")


@pytest.mark.parametrize("text", ["", "a: b", "- 3", "[]"])
def test_what_is_no_list_of_topologies_is_refused(text):
    with pytest.raises(InputError, match=r"expected a list|must be a mapping"):
        read_slurm_yaml(text)
