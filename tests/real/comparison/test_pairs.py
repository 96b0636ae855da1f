import pytest

from commsim.core.errors import InputError
from commsim.formats.measurement import Measurement
from commsim.real.comparison.pairs import (
    of_one_algorithm,
    one_per_size,
    pair_up,
    predictions_of,
    several_algorithms,
    summarise,
)


def row(size, time, n_ranks=8, operation="all_reduce", **more):
    return Measurement(operation, size, time, n_ranks, source="f.txt", **more)


def test_errors_are_relative_to_what_was_measured():
    pairs, alone = pair_up(
        [row(10, 2.0), row(20, 4.0), row(30, 5.0), row(40, 0.0)], lambda m: {10: row(10, 1), 20: row(20, 5)}.get(m.size)
    )
    assert [pair.error for pair in pairs] == [-0.5, 0.25]
    assert [m.size for m in alone] == [30, 40]
    summary = summarise(pairs)
    assert (summary.n, summary.worst, summary.worst_size) == (2, 0.5, 10)
    # by hand: halfway, and nine tenths of the way, from 0.25 to 0.5; the bias is the middle of -0.5 and 0.25
    assert (summary.median, summary.p90, summary.bias) == pytest.approx((0.375, 0.475, -0.125))


def test_measurements_of_one_size_become_their_median_and_whole_spread():
    found = one_per_size([row(10, 3.0, low=2.0, high=4.0), row(10, 1.0), row(10, 2.0), row(20, 9.0)])
    assert [(m.size, m.time, m.low, m.high) for m in found] == [(10, 2.0, 1.0, 4.0), (20, 9.0, None, None)]


def test_out_of_place_counts_unless_in_place_is_asked_for_or_all_there_is():
    rows = [row(10, 1.0), row(10, 2.0, in_place=True)]
    assert [m.time for m in one_per_size(rows)] == [1.0]
    assert [m.time for m in one_per_size(rows, in_place=True)] == [2.0]
    assert [m.time for m in one_per_size(rows[1:])] == [2.0]
    with pytest.raises(InputError, match=r"f.txt: has no times in place"):
        one_per_size(rows[:1], in_place=True)


def test_predictions_are_looked_up_by_operation_ranks_and_nearly_the_size():
    look_up = predictions_of([row(1000, 1.0), row(1001, 2.0), row(4000, 3.0)], [row(1000, 5.0)])
    assert look_up(row(1000.4, 9.0)).time == 1.0  # programs round sizes to whole elements
    assert look_up(row(1001, 9.0)).time == 2.0
    assert look_up(row(2000, 9.0)) is None
    assert look_up(row(1000, 9.0, n_ranks=None)).time == 1.0
    assert look_up(row(1000, 9.0, n_ranks=4)) is None


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InputError, match=r"nothing to compare: f.txt has all_reduce, f.txt has all_gather"):
        predictions_of([row(10, 1.0)], [row(10, 1.0, operation="all_gather")])
    with pytest.raises(InputError, match="all_reduce was predicted for 8 ranks and measured on 4 or 16"):
        predictions_of([row(10, 1.0)], [row(10, 1.0, n_ranks=4), row(10, 1.0, n_ranks=16)])
    with pytest.raises(InputError, match="no measurement has a time that is not 0"):
        summarise(pair_up([row(10, 0.0)], lambda _: row(10, 1.0))[0])


def test_a_prediction_inside_the_spread_is_said():
    pairs, _ = pair_up(
        [row(10, 2.0, low=1.0, high=3.0), row(20, 2.0, low=1.0, high=1.5), row(30, 2.0)], lambda m: row(m.size, 2.0)
    )
    assert [pair.is_within for pair in pairs] == [True, False, None]


def row_of(algorithm, operation="all_reduce"):
    return Measurement(operation, 8, 1.0, 4, algorithm, source="r.json")


RING, TREE = row_of("ring_all_reduce"), row_of("tree:n_chunks=4")


@pytest.mark.nojit
def test_an_algorithm_is_chosen_by_its_name_with_or_without_parameters():
    assert of_one_algorithm([RING, TREE], "tree") == [TREE]
    assert of_one_algorithm([RING, TREE], "tree:n_chunks=4") == [TREE]
    assert of_one_algorithm([RING, row_of("ring_all_gather", "all_gather")], None)[0] == RING


@pytest.mark.nojit
def test_of_several_none_is_taken_without_being_told():
    assert several_algorithms([RING, TREE, row_of("x", "all_gather")]) == {
        "all_reduce": ("ring_all_reduce", "tree:n_chunks=4")
    }
    with pytest.raises(InputError, match=r"r.json: has several algorithms of all_reduce: ring.*; choose one, such as "):
        of_one_algorithm([RING, TREE], None)
    with pytest.raises(InputError, match=r"has no rows of sharp; of ring_all_reduce, tree:n_chunks=4"):
        of_one_algorithm([RING, TREE], "sharp")
