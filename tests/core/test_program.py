import numpy as np
import pytest

from collectives.servers.parameter_server import parameter_server
from commsim.core import program
from commsim.core.errors import InputError, ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import COPY, INPUT, OUTPUT, REDUCE, SCRATCH


def test_one_call_is_one_hop_and_arguments_broadcast():
    p = Program(4, n_chunks=4)
    p.reduce([0, 1, 2], src=[0, 1, 2], dst=3)
    p.copy(0, src=3, dst=[0, 1, 2], count=4, channel=1)
    transfers = p.build().expand()
    assert transfers["hop"].tolist() == [0, 0, 0, 1, 1, 1]
    assert transfers["op"].tolist() == [REDUCE] * 3 + [COPY] * 3
    assert transfers["dst"].tolist() == [3, 3, 3, 0, 1, 2]
    assert transfers["count"].tolist() == [1, 1, 1, 4, 4, 4]
    assert transfers["channel"].tolist() == [0, 0, 0, 1, 1, 1]


def test_chunks_may_differ_at_the_two_ends():
    p = Program(2, n_chunks=3, n_scratch=2)
    p.copy(src=0, dst=1, src_chunk=2, dst_chunk=1, src_buffer=INPUT, dst_buffer=SCRATCH)
    t = p.build().expand()[0]
    assert (t["src_chunk"], t["dst_chunk"], t["src_buffer"], t["dst_buffer"]) == (2, 1, INPUT, SCRATCH)


def test_a_transfer_without_a_chunk_is_refused():
    with pytest.raises(ScheduleError, match="needs a chunk, or both src_chunk and dst_chunk"):
        Program(2, 1).copy(src=0, dst=1, src_chunk=0)


def test_a_repeat_is_kept_once_and_expanded():
    p = Program(5, n_chunks=5)
    with p.repeat(3, src=1, chunk=-1, first=1):
        p.copy(0, src=0, dst=4)
    schedule = p.build()
    assert [len(b.body) for b in schedule.blocks] == [1]
    transfers = schedule.expand()
    assert transfers["src"].tolist() == [1, 2, 3]
    assert transfers["src_chunk"].tolist() == [4, 3, 2]
    assert transfers["dst_chunk"].tolist() == [4, 3, 2]
    assert transfers["hop"].tolist() == [0, 1, 2]


def test_the_chunk_step_of_one_end_may_be_given_apart():
    p = Program(2, n_chunks=4)
    with p.repeat(2, chunk=2, dst_chunk=0):
        p.copy(0, src=0, dst=1)
    transfers = p.build().expand()
    assert transfers["src_chunk"].tolist() == [0, 2]
    assert transfers["dst_chunk"].tolist() == [0, 0]


def test_what_stands_around_a_repeat_keeps_its_place():
    p = Program(3, n_chunks=3)
    p.copy(0, src=0, dst=1)
    with p.repeat(2, chunk=1):
        p.copy(0, src=1, dst=2)
    p.copy(2, src=0, dst=2)
    transfers = p.build().expand()
    assert transfers["hop"].tolist() == [0, 1, 2, 3]
    assert transfers["src"].tolist() == [0, 1, 1, 0]


def test_a_repeat_of_no_times_is_left_out():
    p = Program(2, 1)
    with p.repeat(0):
        p.copy(0, src=0, dst=1)
    assert p.build().blocks == ()


def test_a_repeat_inside_a_repeat_is_refused():
    p = Program(2, 1)
    with p.repeat(2), pytest.raises(ScheduleError, match="repeats cannot be nested"), p.repeat(2):
        pass


def test_fences_count_through_repeats():
    p = Program(4, n_chunks=4)
    p.copy(0, src=0, dst=1)
    p.fence()
    with p.repeat(2, chunk=1):
        p.copy(0, src=1, dst=2)
        p.fence()
        p.copy(0, src=2, dst=3)
    p.copy(3, src=0, dst=3)
    assert p.build().expand()["stage"].tolist() == [0, 1, 2, 2, 3, 3]


def test_a_hop_of_nothing_is_no_hop():
    p = Program(2, 1)
    p.copy(0, src=np.empty(0, int), dst=np.empty(0, int))
    p.copy(0, src=0, dst=1)
    assert p.build().n_hops == 1


@pytest.mark.parametrize(
    ("n_ranks", "n_chunks", "message"),
    [(0, 1, "at least 1 rank, got n_ranks=0"), (1, 0, "at least 1 chunk, got n_chunks=0")],
)
def test_a_program_needs_ranks_and_chunks(n_ranks, n_chunks, message):
    with pytest.raises(ScheduleError, match=message):
        Program(n_ranks, n_chunks)


def test_helpers_are_numbered_after_the_ranks():
    p = Program(2, 1, n_helpers=1)
    p.reduce(0, src=[0, 1], dst=2)
    assert p.build().n_participants == 3
    p.reduce(0, src=0, dst=3)
    with pytest.raises(ScheduleError, match=r"dst must be 0\.\.2, got 3"):
        p.build()


def test_the_output_is_other_memory_in_an_all_to_all_only():
    p = Program(2, 2, n_scratch=1)
    p.copy(src=[0, 1], dst=[1, 0], src_chunk=[1, 0], dst_chunk=[0, 1], dst_buffer=OUTPUT)
    schedule = p.build("swap", "all_to_all")
    assert schedule.dst_address(schedule.expand()).tolist() == [2, 3]
    assert schedule.n_addresses == 5
    schedule = p.build("swap", "custom")
    assert schedule.dst_address(schedule.expand()).tolist() == [0, 1]
    assert schedule.n_addresses == 3


def test_more_transfers_than_can_be_listed_are_refused_before_their_columns_are_made(monkeypatch):
    """`schedule check zen --ranks 9000` took 11 GB for them."""
    with pytest.raises(InputError, match="at most 33554432 transfers one by one, and this one has 162000000 for 9000"):
        parameter_server(9000, colocated=True)
    p = Program(2, 1)
    monkeypatch.setattr(program, "MAX_LISTED", 2)
    with p.repeat(1000):
        p.reduce(0, src=0, dst=1)
        p.copy(0, src=1, dst=0)
    with pytest.raises(InputError, match="and this one has 3 for 2 ranks"):
        p.copy(0, src=0, dst=1)
    assert p.build().n_transfers == 2000
