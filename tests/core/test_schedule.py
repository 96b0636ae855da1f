import contextlib
import copy
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import BUFFERS, SCRATCH, STEPPED, TRANSFER, Block, Schedule


def naive_expand(schedule):
    """One transfer at a time, from the words of Block's docstring."""
    rows = []
    hop = stage = 0
    for block in schedule.blocks:
        for i in range(block.times):
            for t in block.body:
                row = {name: int(t[name]) for name in TRANSFER.names}
                for field, step in zip(STEPPED, block.step, strict=True):
                    shift = (block.first + i) * step
                    if not step:
                        continue
                    if block.xor:
                        row[field] ^= shift
                    elif field in ("src", "dst"):
                        row[field] = (row[field] + shift) % schedule.n_ranks
                    else:
                        scratch = row[field.replace("chunk", "buffer")] == SCRATCH
                        row[field] = (row[field] + shift) % (schedule.n_scratch if scratch else schedule.n_chunks)
                row["hop"] += hop
                row["stage"] += stage
                rows.append(tuple(row.values()))
            hop += block.n_hops
            stage += block.n_fences
    return np.array(rows, TRANSFER)


@st.composite
def affine(draw):
    n_ranks, n_chunks, n_scratch = draw(st.integers(1, 6)), draw(st.integers(1, 6)), draw(st.integers(0, 3))
    p = Program(n_ranks, n_chunks, n_helpers=1, n_scratch=n_scratch)
    step, rank, buffer = st.integers(-7, 7), st.integers(0, n_ranks - 1), st.sampled_from([0, 2] if n_scratch else [0])
    for _ in range(draw(st.integers(1, 3))):
        with p.repeat(
            draw(st.integers(1, 5)), src=draw(step), dst=draw(step), src_chunk=draw(step), dst_chunk=draw(step),
            first=draw(st.integers(0, 3)),
        ):  # fmt: skip
            for _ in range(draw(st.integers(1, 3))):
                ends = draw(buffer), draw(buffer)
                chunks = [draw(st.integers(0, (n_scratch if b == SCRATCH else n_chunks) - 1)) for b in ends]
                p.copy(
                    src=draw(rank), dst=draw(rank), src_chunk=chunks[0], dst_chunk=chunks[1],
                    src_buffer=ends[0], dst_buffer=ends[1],
                )  # fmt: skip
                if draw(st.booleans()):
                    p.fence()
    return p.build()


@st.composite
def exclusive_or(draw):
    bits = draw(st.integers(0, 4))
    n = 2**bits
    p = Program(n, n)
    rank = st.integers(0, n - 1)
    with p.repeat(draw(st.integers(1, n)), dst=1, src_chunk=1, xor=True):
        p.copy(src=draw(rank), dst=draw(rank), src_chunk=draw(rank), dst_chunk=draw(rank))
    return p.build()


@given(schedule=affine() | exclusive_or())
def test_expansion_is_what_the_words_say(schedule):
    wanted = naive_expand(schedule)
    assert np.array_equal(schedule.expand(), wanted)
    assert np.array_equal(np.concatenate(list(schedule.rounds())), wanted)
    assert schedule.n_transfers == len(wanted)
    assert schedule.n_hops >= len(np.unique(wanted["hop"]))


def of(**columns):
    body = np.zeros(1, TRANSFER)
    body["count"] = 1
    for name, value in columns.items():
        body[name] = value
    return body


def one(block=None, n_ranks=3, n_chunks=4, **columns):
    blocks = (Block(of(**columns), 1) if block is None else block,)
    return Schedule("one", "custom", n_ranks, 1, n_chunks, 2, blocks)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"src": 4}, "src must be 0..3, got 4"),
        ({"dst": -1}, "dst must be 0..3, got -1"),
        ({"src_chunk": 4}, "src_chunk 4 with count 1 is outside the 4 chunks of input"),
        ({"dst_chunk": 2, "count": 3}, "dst_chunk 2 with count 3 is outside the 4 chunks of input"),
        ({"dst_chunk": 2, "dst_buffer": 2}, "dst_chunk 2 with count 1 is outside the 2 chunks of scratch"),
        ({"src_chunk": -1}, "src_chunk -1 with count 1 is outside"),
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"src_chunk": 2**31 - 1, "count": 2**31 - 1}, "is outside the 4 chunks of input"),
        ({"hop": 1}, "hop must rise from 0 to at most 0 within a block"),
        ({"hop": -1}, "hop must rise from 0"),
        ({"stage": 1}, "stage must rise from 0 to at most 0"),
    ],
)
def test_a_transfer_that_names_what_does_not_exist_is_refused(columns, message):
    with pytest.raises(ScheduleError, match=f"^one: .*{message.replace('..', '[.][.]')}"):
        one(**columns)


def test_a_helper_may_be_named_but_not_stepped():
    one(dst=3)
    with pytest.raises(ScheduleError, match=r"dst must be 0\.\.2, got 3"):
        one(Block(of(dst=3), 1, times=2, step=(0, 1, 0, 0)))


def test_a_message_of_several_chunks_must_not_wrap_around_in_any_repetition():
    one(Block(of(count=2), 1, times=5, step=(0, 0, 2, 2)))
    with pytest.raises(ScheduleError, match="src_chunk 3 with count 2 is outside"):
        one(Block(of(count=2), 1, times=4, step=(0, 0, 1, 0)))


@pytest.mark.parametrize(("n_ranks", "times"), [(3, 4), (4, 5)])
def test_an_exclusive_or_must_not_leave_the_ranks(n_ranks, times):
    with pytest.raises(ScheduleError, match=rf"dst must be 0\.\.{n_ranks - 1}, got {n_ranks}"):
        Schedule("x", "custom", n_ranks, 0, 4, 0, (Block(of(), 1, times=times, step=(0, 1, 0, 0), xor=True),))


def test_an_exclusive_or_that_stays_inside_is_found_so_without_looking_at_each_repetition():
    n = 2**17
    body = np.zeros(n, TRANSFER)
    body["count"], body["src"], body["dst"] = 1, np.arange(n), np.arange(n)
    schedule = Schedule("x", "custom", n, 0, n, 0, (Block(body, 1, times=n, step=(0, 1, 1, 0), xor=True),))
    assert schedule.n_transfers == n * n  # all repetitions together: 1.7e10 transfers, hours to look at


def test_an_exclusive_or_with_a_negative_number_is_refused():
    with pytest.raises(ScheduleError, match=r"dst must be 0\.\.3, got -1"):
        Schedule("x", "custom", 4, 0, 4, 0, (Block(of(), 1, times=3, first=-1, step=(0, 1, 0, 0), xor=True),))


def test_hops_must_not_go_backwards():
    body = np.concatenate((of(hop=1), of(hop=0)))
    with pytest.raises(ScheduleError, match="hop must rise"):
        one(Block(body, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_ranks": 0}, "needs at least 1 rank and 1 chunk"),
        ({"n_chunks": 0}, "needs at least 1 rank and 1 chunk"),
        ({"root": 3}, r"root must be a rank 0\.\.2, got 3"),
        ({"operation": "all_redcue"}, "unknown operation 'all_redcue'"),
        ({"operation": "all_gather"}, "all_gather needs a multiple of 3 chunks, got 4"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(change, message):
    with pytest.raises(ScheduleError, match=message):
        dataclasses.replace(one(), **change)


def test_a_block_repeats_at_least_once():
    with pytest.raises(ScheduleError, match="repeats at least once, got 0"):
        one(Block(of(), 1, times=0))


def test_schedules_are_compared_by_value():
    assert one(src=1) == one(src=1)
    assert hash(one(src=1)) == hash(one(src=1))
    assert one(src=1) != one(src=2)
    assert one() != dataclasses.replace(one(), name="two")
    assert copy.copy(one(src=1)) == one(src=1)


def test_a_schedule_cannot_be_changed():
    schedule = one()
    with pytest.raises(dataclasses.FrozenInstanceError):
        schedule.n_ranks = 5
    with pytest.raises(ValueError, match="read-only"):
        schedule.blocks[0].body["src"] = 1
    body = of()
    block = Block(body, 1)
    body["src"] = 2  # the caller's array is the caller's
    assert block.body["src"].tolist() == [0]


def test_buffers_have_names_for_messages():
    assert BUFFERS[SCRATCH] == "scratch"


def test_volumes_are_those_of_a_ring_and_leave_local_copies_out():
    program = Program(2, 2, n_scratch=1)
    program.copy([0, 1], src=[0, 1], dst=[1, 0])
    program.copy(0, src=0, dst=0, dst_buffer=SCRATCH)
    sent, received, messages = program.build("exchange", "all_gather").volumes()
    assert (sent.tolist(), received.tolist(), messages.tolist()) == ([1, 1], [1, 1], [1, 1])


def test_a_repetition_that_wraps_is_found_as_by_looking_at_each_one():
    draw, refused = np.random.default_rng(3), 0
    for _ in range(300):
        n_chunks, times, first = (int(n) for n in draw.integers((6, 1, 0), (14, 6, 3)))
        body = np.zeros(3, TRANSFER)
        body["dst"], body["count"] = 1, draw.integers(1, 4, 3)
        for chunk in ("src_chunk", "dst_chunk"):
            body[chunk] = draw.integers(0, n_chunks - 3, 3)
        step = (0, 0, *(int(n) for n in draw.integers(-4, 5, 2)))
        block = Block(body, 1, 0, times, first, step)
        wraps = any(
            (body[chunk].astype(int) + turn * by) % n_chunks + count > n_chunks
            for chunk, by in (("src_chunk", step[2]), ("dst_chunk", step[3]))
            for turn in range(first, first + times)
            for body, count in zip(block.body, block.body["count"], strict=True)
        )
        refused += wraps
        with pytest.raises(ScheduleError, match="outside") if wraps else contextlib.nullcontext():
            Schedule("moved", "custom", 2, 0, n_chunks, 0, (block,))
    assert 20 < refused < 280


def test_a_block_that_was_checked_is_checked_again_in_other_spaces_and_when_it_changes(monkeypatch):
    p = Program(4, 4)
    with p.repeat(3, dst=1, first=1):
        p.copy(np.arange(4), src=np.arange(4), dst=np.arange(4))
    schedule = p.build()
    (block,) = schedule.blocks
    with pytest.raises(ScheduleError, match="src_chunk 2 with count 1 is outside the 2 chunks"):
        dataclasses.replace(schedule, n_chunks=2)
    with pytest.raises(ScheduleError, match=r"src must be 0\.\.2, got 3"):
        dataclasses.replace(schedule, n_ranks=3)
    with pytest.raises(ScheduleError, match="a block repeats at least once, got 0"):
        dataclasses.replace(schedule, blocks=(dataclasses.replace(block, times=0),))
    monkeypatch.setattr("commsim.core.schedule._check_block", None)  # the same under another name is not
    assert dataclasses.replace(schedule, name="other").blocks == schedule.blocks
