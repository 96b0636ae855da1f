"""Trees of switches that add for NCCL: proved by the checker, counted by hand, and what is no tree is refused."""

import itertools

import numpy as np
import pytest

from collectives import COLLECTIVES
from collectives.nccl.sharp_trees import below_switches, read_sharp_trees
from commsim.core.checking.check import check
from commsim.core.errors import InputError

ALGORITHMS = ("nvls", "collnet_chain", "collnet_direct")
MACHINES = ((0, 1), (2, 3), (4, 5), (6, 7))
# Two leaves (0, 1) with two machines each below two roots (2, 3), one for each of two rails.
TWO_LEVELS = ((0, 0, 1, 1, 2, 2, -1, -2), (0, 0, 1, 1, 3, 3, -2, -1))
# Three levels, and a machine that is alone below the topmost.
THREE_LEVELS = ((0, 0, 1, 3, 1, 3, -2, -1), (0, 0, 2, 3, 2, -2, 3, -1))


def sent_of(schedule):
    """Parts of the array that each participant sends to each."""
    sent = np.zeros((schedule.n_participants, schedule.n_participants))
    for row in itertools.chain(*schedule.rounds()):
        sent[row["src"], row["dst"]] += row["count"] / schedule.n_chunks
    return sent


def build(algorithm, sharp):
    return COLLECTIVES["nccl_all_reduce"].build(
        8, algorithm=algorithm, protocol="simple", channels=2, n_bytes=2**20, machines=MACHINES, sharp=sharp
    )


@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter"])
@pytest.mark.parametrize("algorithm", ["nvls", "collnet_direct"])
def test_halves_cross_a_network_that_adds_once(operation, algorithm):
    """Of 8 ranks a leaf has 4 parts: it passes them to the others, and gets theirs; each rail has its own root."""
    build = COLLECTIVES[f"nccl_{operation}"].build
    for sharp in (None, TWO_LEVELS, THREE_LEVELS):
        schedule = build(8, algorithm=algorithm, channels=2, n_bytes=2**20, machines=MACHINES, sharp=sharp)
        check(schedule)
    sent = sent_of(build(8, algorithm=algorithm, channels=2, n_bytes=2**20, machines=MACHINES, sharp=TWO_LEVELS))
    first = len(sent) - 4
    for leaf in (first, first + 1):
        assert sent[leaf, first + 2 :] == pytest.approx([2 / 8, 2 / 8])
        assert sent[first + 2 :, leaf] == pytest.approx([2 / 8, 2 / 8])
    # Of its rail a member gives its own part to the network and gets the 3 others, or the reverse.
    own, others = (1 / 8, 3 / 8) if operation == "all_gather" else (3 / 8, 1 / 8)
    assert sent[:8, first:].sum(axis=1) == pytest.approx([own] * 8)
    assert sent[first:, :8].sum(axis=0) == pytest.approx([others] * 8)
    # With NVLink SHARP each GPU gives (or gets) the 4 parts of its rail once; else for each other GPU, here one.
    inside = sent[:8, 8:first].sum(axis=1) if algorithm == "nvls" else sent[:8, :8].sum(axis=1)
    assert inside == pytest.approx([4 / 8] * 8)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("sharp", [None, TWO_LEVELS, THREE_LEVELS])
def test_every_rank_gets_every_input_once(algorithm, sharp):
    check(build(algorithm, sharp))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_leaf_sends_to_its_root_once_what_its_machines_have_and_each_root_half_of_the_array(algorithm):
    """Two rails share the array equally: each root gets a half from each of two leaves, and returns a half to each."""
    sent = sent_of(build(algorithm, TWO_LEVELS))
    first = len(sent) - 4
    leaves, roots = [first, first + 1], [first + 2, first + 3]
    assert sent[np.ix_(leaves, roots)] == pytest.approx(np.full((2, 2), 0.5))
    assert sent[np.ix_(roots, leaves)] == pytest.approx(np.full((2, 2), 0.5))
    # Of each machine both members together give the whole array to their leaf, and to no root.
    assert sent[:8, leaves].sum() == pytest.approx(4)
    assert sent[:8, roots].sum() == 0


def test_the_parents_are_those_of_all_participants():
    trees = read_sharp_trees("x", TWO_LEVELS, 4)
    assert below_switches(trees[1], [1, 3, 5, 7], 8, 12).tolist() == [-2, 8, -2, 8, -2, 9, -2, 9, 11, 11, -2, -1]


@pytest.mark.parametrize(
    ("sharp", "message"),
    [
        (((0, 0, 0, 0),), "must have for each rail the switch above each of 4 machines and each switch, got rails of"),
        ((1,), r"machines with sharp=on \(dgx-h100:sharp=on@...\) have SHARP; sharp of a collective must have"),
        (1, "above each of 4 machines and each switch, got 1"),
        (((0, 0, 0, 0, -1), (0, 0, 0, 0, -1, -2)), r"got rails of \[5, 6\] numbers"),
        (((0, 0, 0, 1, -1),), r"of 0..0, and -1 above exactly one; rail 0 has"),
        (((0, 0, 1, 1, -1, -1),), r"of 0..1, and -1 above exactly one; rail 0 has"),
        (((0, 0, -2, 0, -1),), "of 0..0, and -1 above exactly one; rail 0 has"),
        (((0, 0, 0, 0, 1, 0, -1),), "rail 0 has a switch that never reaches the topmost"),
        (((0, 0, 0, 0, 1, -2, -1),), "rail 0 has a switch that never reaches the topmost"),
    ],
)
def test_what_is_no_tree_above_the_machines_is_refused(sharp, message):
    with pytest.raises(InputError, match=message):
        build("collnet_chain", sharp)
