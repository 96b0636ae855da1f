"""The kernels that tell connections apart, against dictionaries of neighbourhoods."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from commsim.engine.flow_state import FLOW_ROW
from commsim.engine.symmetry.symmetry_kernel import colour_flows, refine_connections
from commsim.routing.classes_kernel import number_colours


@given(colours=st.lists(st.integers(0, 5)))
def test_colours_are_numbered_in_the_order_in_which_they_come(colours: list[int]) -> None:
    number, first = number_colours(np.array(colours, np.uint64) << np.uint64(40))
    order = list(dict.fromkeys(colours))
    assert number.tolist() == [order.index(c) for c in colours]
    assert first.tolist() == [colours.index(c) for c in order]


def slow_classes(
    connection: NDArray[np.int32], place: NDArray[np.int32], waits: list[list[tuple[int, bool]]], colour: list[int]
) -> list[int]:
    """One step of refinement with tuples in place of hashes."""
    around = [
        (colour[w], tuple(tuple(sorted((colour[connection[p]], int(place[p]), c) for p, c in waits[i]))
                          for i in np.flatnonzero(connection == w)))
        for w in range(len(colour))
    ]  # fmt: skip
    order = list(dict.fromkeys(around))
    return [order.index(a) for a in around]


@given(seed=st.integers(0, 2**32))
def test_a_step_of_refinement_tells_apart_what_waits_for_different_things(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_connections = int(rng.integers(1, 6))
    connection = np.sort(np.concatenate((np.arange(n_connections), rng.integers(0, n_connections, 6)))).astype(np.int32)
    place = np.concatenate([np.arange(n) for n in np.bincount(connection)]).astype(np.int32)
    waits = [
        [(int(rng.integers(len(connection))), bool(rng.integers(2))) for _ in range(rng.integers(3))]
        for _ in connection
    ]
    first = np.cumsum([0, *map(len, waits)])
    pred = np.array([p for row in waits for p, _ in row], np.int32)
    complete = np.array([c for row in waits for _, c in row], np.bool_)
    colour, slow = rng.integers(0, 2, n_connections).astype(np.uint64), [0] * n_connections
    slow = [int(c) for c in colour]
    for _ in range(3):
        colour = refine_connections(colour, (connection, place), (first, pred, complete))
        slow = slow_classes(connection, place, waits, slow)
        assert number_colours(colour)[0].tolist() == slow


def test_flows_of_different_classes_on_one_resource_each_have_different_colours() -> None:
    """Class 2 on the first kind of resource and class 5 on the second had the xor of two equal hashes."""
    kinds, classes = (each.ravel().astype(np.int32) for each in np.meshgrid(np.arange(9), np.arange(27)))
    flow = np.zeros(len(kinds), FLOW_ROW)
    flow["begin"] = flow["data"] = flow["port"] = np.arange(len(kinds))
    flow["end"] = flow["begin"] + 1
    colour = colour_flows(flow, np.arange(len(kinds), dtype=np.int32), classes, kinds)
    assert len(np.unique(colour)) == len(kinds)
