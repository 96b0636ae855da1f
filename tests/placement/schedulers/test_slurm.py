import pytest
from fabric_trees import blocks, trees
from hypothesis import given

from commsim.core.errors import InputError
from commsim.placement.schedulers.fabric_tree import Blocks, Switch, Tree
from commsim.placement.schedulers.slurm import read_slurm_conf, sbatch_options, write_slurm_conf

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
    assert read_slurm_conf(TEXT) == Tree(
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
    tree = Tree((Switch("a", nodes=("n0",)), Switch("t", ("a",), ("n1",))))
    with pytest.raises(InputError, match="switch t must have either nodes or switches"):
        write_slurm_conf(tree)


TREE = Tree((Switch("a", nodes=("n0", "n1")), Switch("b", nodes=("n2",)), Switch("t", ("a", "b"))))


def test_a_placement_is_nodes_and_leaf_switches():
    assert sbatch_options(TREE, ["n0", "n0", "n1", "n1"]) == "--nodes=2 --nodelist=n[0-1] --switches=1"
    assert sbatch_options(TREE, ["n2", "n1"]) == "--nodes=2 --nodelist=n[2,1] --switches=2"


def test_a_host_that_the_tree_does_not_have_is_refused():
    with pytest.raises(InputError, match="'x', which is not a node of the tree"):
        sbatch_options(TREE, ["x"])
