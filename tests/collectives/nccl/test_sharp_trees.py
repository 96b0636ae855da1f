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


def build(algorithm, sharp):
    return COLLECTIVES["nccl_all_reduce"].build(
        8, algorithm=algorithm, protocol="simple", channels=2, n_bytes=2**20, machines=MACHINES, sharp=sharp
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("sharp", [None, TWO_LEVELS, THREE_LEVELS])
def test_every_rank_gets_every_input_once(algorithm, sharp):
    check(build(algorithm, sharp))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_leaf_sends_to_its_root_once_what_its_machines_have_and_each_root_half_of_the_array(algorithm):
    """Two rails share the array equally: each root gets a half from each of two leaves, and returns a half to each."""
    schedule = build(algorithm, TWO_LEVELS)
    sent = np.zeros((schedule.n_participants, schedule.n_participants))
    for row in itertools.chain(*schedule.rounds()):
        sent[row["src"], row["dst"]] += row["count"] / schedule.n_chunks
    first = schedule.n_participants - 4
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
