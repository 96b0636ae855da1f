import pytest

from commsim.core.errors import InputError
from commsim.placement.schedulers.fabric_tree import Blocks, Switch, SwitchTree, blocks_of, free_name

LEAVES = (Switch("a", nodes=("n0", "n1", "n2")), Switch("b", nodes=("n3", "n4")))
TREE = SwitchTree((*LEAVES, Switch("top", ("a", "b"))))


def test_a_tree_knows_tiers_and_what_is_above():
    assert TREE.tiers() == {"a": 1, "b": 1, "top": 2}
    assert TREE.layers() == {
        **dict.fromkeys(("n0", "n1", "n2"), ("a", "top")),
        **dict.fromkeys(("n3", "n4"), ("b", "top")),
    }
    assert [s.name for s in TREE.from_below()] == ["a", "b", "top"]


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ((), "at least one switch"),
        ((Switch("a"),), "at least one node"),
        ((*LEAVES, Switch("a", nodes=("x",))), "switch a appears twice"),
        ((*LEAVES, Switch("t", ("a", "c"))), "switch t has c below it, which is not described"),
        ((*LEAVES, Switch("t", ("a",)), Switch("u", ("a",))), "switch a is below t and below u"),
        ((*LEAVES, Switch("t", ("u",)), Switch("u", ("t",))), "below itself"),
        ((*LEAVES, Switch("c", nodes=("a",))), "a is a node and a switch"),
    ],
)
def test_what_is_no_tree_is_refused(switches, message):
    with pytest.raises(InputError, match=message):
        SwitchTree(switches)


def test_a_chain_of_many_switches_is_read_in_linear_time():
    n = 20_000
    chain = [Switch("s0", nodes=("n",)), *(Switch(f"s{i}", (f"s{i - 1}",)) for i in range(1, n))]
    assert SwitchTree(tuple(reversed(chain))).tiers()[f"s{n - 1}"] == n


def test_blocks_are_the_leaves_and_sizes_double_from_the_smallest():
    leaves = tuple(Switch(f"s{i}", nodes=tuple(f"n{i}-{k}" for k in range(4 if i else 3))) for i in range(5))
    found = blocks_of(SwitchTree((*leaves, Switch("top", tuple(s.name for s in leaves)))))
    assert found.sizes == (3, 6, 12)
    assert [name for name, _ in found.blocks] == ["s0", "s1", "s2", "s3", "s4"]
    assert found.tree().above["s3"] == "blocks"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((2, 6), "powers of two times the first"),
        ((2, 2), "rise"),
        ((0,), "powers of two"),
    ],
)
def test_sizes_that_slurm_would_refuse_are_refused(sizes, message):
    with pytest.raises(InputError, match=message):
        Blocks((("a", ("n0", "n1", "n2")), ("b", ("n3", "n4"))), sizes)


def test_a_free_name_is_not_taken():
    assert free_name("top", TREE) == "top1"
    assert free_name("b", Blocks((("b", ("b1",)),))) == "b2"
