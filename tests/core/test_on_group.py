import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives import COLLECTIVES
from commsim.core.checking.check_order import check_order
from commsim.core.checking.reference import expected, run_reference
from commsim.core.errors import InputError
from commsim.core.on_group import on_group

pytestmark = pytest.mark.nojit


@pytest.mark.parametrize("name", COLLECTIVES)
@given(others=st.integers(0, 4), n=st.integers(1, 7), data=st.data())
@settings(deadline=None, max_examples=15)
def test_the_group_gets_its_result_and_the_others_keep_what_they_have(name, others, n, data):
    few = {"n_chunks": 3} if "n_chunks" in COLLECTIVES[name].parameters else {}
    schedule = COLLECTIVES[name].build(n, **few)
    ranks = data.draw(st.permutations(range(n + others)))[:n]
    inputs = np.arange((n + others) * 2 * schedule.n_chunks).reshape(n + others, -1)
    outputs = run_reference(on_group(schedule, ranks, n + others), inputs)
    promised = expected(schedule.operation, inputs[ranks], schedule.root, schedule.layout)
    for rank, (part, values) in zip(ranks, promised, strict=True):
        np.testing.assert_array_equal(outputs[rank, part], values)
    outside = [r for r in range(n + others) if r not in ranks]
    np.testing.assert_array_equal(outputs[outside], inputs[outside])


@pytest.mark.parametrize("name", ["bruck_all_to_all", "pairwise_all_to_all", "ring_all_reduce"])
def test_no_order_of_arrival_changes_the_result(name):
    check_order(on_group(COLLECTIVES[name].build(4), (5, 0, 2, 3), 6), seeds=(0, 1, 2))


@pytest.mark.parametrize("ranks", [(0, 1, 1), (0, 1, 5), (-1, 0, 1)])
def test_groups_of_no_such_ranks_are_refused(ranks):
    with pytest.raises(InputError, match=r"a group must be different ranks 0\.\.4"):
        on_group(COLLECTIVES["ring_all_reduce"].build(3), ranks, 5)


def test_a_group_of_another_size_is_refused():
    with pytest.raises(InputError, match="the schedule has 3 ranks, got a group of 2"):
        on_group(COLLECTIVES["ring_all_reduce"].build(3), (0, 1), 5)
