"""A schedule's chunks are counted by the largest piece of any channel."""

from dataclasses import replace

from collectives.nccl.pieces import FINENESS, pieces_of
from collectives.nccl.rules import ChannelPart

WHOLE = ChannelPart(n_bytes=1600, chunk=800, last_chunk=800, n_loops=2, by_loop=1, slices=1, last_slices=1, n_steps=2)


def test_a_channel_with_small_pieces_has_fewer_chunks_than_one_with_large_ones():
    small = replace(WHOLE, n_bytes=1000, chunk=800, last_chunk=200)
    first, last = pieces_of([WHOLE, small], 1).loops
    assert [loop.count for loop in first] == [FINENESS, FINENESS]
    assert [loop.count for loop in last] == [FINENESS, FINENESS // 4]


def test_the_largest_piece_may_be_another_channels():
    short = replace(WHOLE, n_bytes=200, chunk=200, last_chunk=200, n_loops=1)
    (first, _) = pieces_of([short, WHOLE], 1).loops
    assert [loop.count for loop in first] == [FINENESS // 4, FINENESS]


def test_loops_that_go_on_in_equal_steps_are_one_run_and_others_their_own():
    longer = replace(WHOLE, n_bytes=4000, n_loops=5)
    found = pieces_of([longer, replace(longer, last_chunk=200)], 1)
    assert [(run.times, run.step) for run in found.runs] == [(4, FINENESS), (1, 0)]
    assert [loop.first for loops in found.loops for loop in loops[:1]] == [FINENESS * k for k in range(5)]
    uneven = pieces_of([longer, replace(longer, chunk=400, last_chunk=400)], 1)
    assert [(run.times, run.step) for run in uneven.runs] == [(1, 0)] * 5
    assert [loop.first - FINENESS * 5 for _, loop in uneven.loops] == [FINENESS // 2 * k for k in range(5)]
