import pytest

from commsim.comparison.pairs import of_one_algorithm, several_algorithms
from commsim.core.errors import InputError
from commsim.formats.measured import Measured


def row(algorithm, operation="all_reduce"):
    return Measured(operation, 8, 1.0, 4, algorithm, source="r.json")


RING, TREE = row("ring_all_reduce"), row("tree:n_chunks=4")


def test_an_algorithm_is_chosen_by_its_name_with_or_without_parameters():
    assert of_one_algorithm([RING, TREE], "tree") == [TREE]
    assert of_one_algorithm([RING, TREE], "tree:n_chunks=4") == [TREE]
    assert of_one_algorithm([RING, row("ring_all_gather", "all_gather")], None)[0] == RING


def test_of_several_none_is_taken_without_being_told():
    assert several_algorithms([RING, TREE, row("x", "all_gather")]) == {
        "all_reduce": ("ring_all_reduce", "tree:n_chunks=4")
    }
    with pytest.raises(InputError, match=r"r.json: has several algorithms of all_reduce: ring.*; choose, as in --coll"):
        of_one_algorithm([RING, TREE], None)
    with pytest.raises(InputError, match=r"has no rows of sharp; of ring_all_reduce, tree:n_chunks=4"):
        of_one_algorithm([RING, TREE], "sharp")
