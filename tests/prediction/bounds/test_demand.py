import numpy as np
import pytest

from commsim.core.operations import OPERATIONS
from commsim.prediction.bounds.demand import demand_of

HALVES = np.array([0, 0, 0, 1])


@pytest.mark.parametrize(
    ("operation", "leaving", "entering"),
    [
        ("all_reduce", [1, 1], [1, 1]),
        ("all_gather", [3 / 4, 1 / 4], [1 / 4, 3 / 4]),
        ("reduce_scatter", [1 / 4, 3 / 4], [3 / 4, 1 / 4]),
        ("broadcast", [1, 0], [0, 1]),
        ("reduce", [0, 1], [1, 0]),
        ("all_to_all", [3 / 4, 3 / 4], [3 / 4, 3 / 4]),
        ("scatter", [1 / 4, 0], [0, 1 / 4]),
        ("gather", [0, 1 / 4], [1 / 4, 0]),
        ("barrier", [0, 0], [0, 0]),
        ("send_recv", [1, 1], [1, 1]),
    ],
)
def test_what_must_cross_between_three_ranks_and_one(operation, leaving, entering):
    found = demand_of(operation, 4).crossing(HALVES, 2)
    assert found[0].tolist() == pytest.approx(leaving)
    assert found[1].tolist() == pytest.approx(entering)


def test_groups_need_not_have_all_ranks():
    only_last = np.array([-1, -1, -1, 0])
    for operation in ("all_gather", "all_to_all", "send_recv", "all_reduce"):
        demand = demand_of(operation, 4)
        assert demand.crossing(only_last, 1)[0][0] == demand.crossing(HALVES, 2)[0][1]


def test_blocks_of_a_layout_are_as_long_as_it_says():
    assert demand_of("all_gather_v", 3, layout=(1, 0, 3)).amount.tolist() == [1 / 4, 0, 3 / 4]
    pairs = demand_of("all_to_all_v", 2, layout=(5, 2, 1, 0))
    assert (pairs.src.tolist(), pairs.dst.tolist(), pairs.amount.tolist()) == ([0, 1], [1, 0], [2 / 7, 1 / 7])
    grid = demand_of("neighbour_exchange", 4, layout=(4,))
    assert len(grid.src) == 8
    assert (grid.amount == 1 / 2).all()


def test_messages_between_groups_carry_each_copy_by_itself():
    assert demand_of("broadcast", 9).between(3) == 2
    assert demand_of("all_gather", 9).between(3) == pytest.approx(2)
    assert demand_of("all_reduce", 9).between(3) == 4
    assert demand_of("all_to_all", 9).between(3) == 0


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_has_a_demand(name):
    layouts = {"ranks": (1, 2, 1, 0), "pairs": tuple(range(16)), "grid": (2, 2), "none": (),
               "runs": (0, 1, 0, 1, 0, 2, 0, 1)}  # fmt: skip
    found = demand_of(name, 4, layout=layouts[OPERATIONS[name].layout])
    assert found.n_ranks == 4
    assert (found.sums > 0) == (OPERATIONS[name].reduces and not OPERATIONS[name].signals)
