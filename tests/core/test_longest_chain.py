"""The steps of a schedule are its longest chain of transfers that wait for each other."""

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.data_order import dependencies
from commsim.core.program import Program

N = 8
# Steps by the papers' formulas; hops, which are the lines of the program, are other numbers in the last two.
STEPS = {
    "ring_all_gather": N - 1,
    "ring_all_reduce": 2 * (N - 1),
    "halving_doubling_all_reduce": 2 * 3,
    "direct_all_to_all": 1,
    "double_tree_all_reduce": 2 * 3,
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_those_of_the_formula(name: str) -> None:
    assert dependencies.longest_chain(COLLECTIVES[name].build(N)) == STEPS[name]


@pytest.mark.parametrize("name", STEPS)
def test_chains_are_those_of_walking_from_transfer_to_transfer(name: str) -> None:
    schedule = COLLECTIVES[name].build(6) if name.startswith("ring") else COLLECTIVES[name].build(4)
    waits = dependencies.dependencies(schedule, schedule.expand())
    depth = np.zeros(schedule.n_transfers, np.int64)
    for i in range(len(depth)):
        depth[i] = 1 + depth[waits.pred[waits.first[i] : waits.first[i + 1]]].max(initial=0)
    assert dependencies.longest_chain(schedule) == depth.max()


def test_independent_lines_of_a_program_are_one_step_and_fences_are_waited_for() -> None:
    free, fenced = Program(4, n_chunks=4), Program(4, n_chunks=4)
    for p in (free, fenced):
        for rank in range(1, 4):
            p.copy(rank, src=rank, dst=0)
            if p is fenced:
                p.fence()
    assert dependencies.longest_chain(free.build()) == 1
    assert dependencies.longest_chain(fenced.build()) == 3


def test_nothing_is_zero_steps_and_too_much_is_not_counted(monkeypatch) -> None:
    assert dependencies.longest_chain(Program(2, n_chunks=1).build()) == 0
    monkeypatch.setattr(dependencies, "MAX_TRANSFERS", 10)
    assert dependencies.longest_chain(COLLECTIVES["ring_all_reduce"].build(N)) is None
