import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.dependencies import dependencies, wires
from commsim.core.dependencies_kernel import (
    FENCE,
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    counting_order,
    successor_rows,
)
from commsim.core.errors import ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import REDUCE

pytestmark = pytest.mark.nojit


def edges(schedule):
    """{(predecessor, successor): kinds}."""
    transfers = schedule.expand()
    order = dependencies(schedule, transfers)
    out = {}
    for i in range(len(transfers)):
        for k in range(order.first[i], order.first[i + 1]):
            out.setdefault((int(order.pred[k]), i), set()).add(int(order.kind[k]))
    return out


def naive_edges(schedule):
    """The same from the definition: look back, hop by hop, from every address that a transfer touches."""
    transfers = schedule.expand()
    src, dst = schedule.src_address(transfers), schedule.dst_address(transfers)
    reads = [{(int(t["src"]), int(a) + c) for c in range(t["count"])} for t, a in zip(transfers, src, strict=True)]
    writes = [{(int(t["dst"]), int(a) + c) for c in range(t["count"])} for t, a in zip(transfers, dst, strict=True)]
    out = {}
    for i, t in enumerate(transfers):
        for touched, kind in ((reads[i], READ_AFTER_WRITE), (writes[i], WRITE_AFTER_WRITE)):
            for address in touched:
                earlier = [j for j in range(i) if address in writes[j] and transfers[j]["hop"] < t["hop"]]
                last = max((transfers[j]["hop"] for j in earlier), default=-1)
                for j in earlier:
                    if transfers[j]["hop"] == last:
                        out.setdefault((j, i), set()).add(kind)
        for address in writes[i]:
            written = [transfers[j]["hop"] for j in range(i) if address in writes[j] and transfers[j]["hop"] < t["hop"]]
            since = max(written, default=-1)
            for j in range(i):
                # a read in the hop of the last write saw the state before it, and still may not be sent
                if address in reads[j] and since <= transfers[j]["hop"] < t["hop"]:
                    out.setdefault((j, i), set()).add(WRITE_AFTER_READ)
    return out


def test_a_chunk_that_is_still_being_sent_is_not_overwritten():
    p = Program(3, n_chunks=1)
    p.copy(0, src=0, dst=1)
    p.copy(0, src=2, dst=0)
    assert edges(p.build()) == {(0, 1): {WRITE_AFTER_READ}}


def test_what_is_sent_on_waits_until_it_has_arrived():
    p = Program(3, n_chunks=2)
    p.copy(0, src=0, dst=1)
    p.copy(1, src=0, dst=1)
    p.copy(0, src=1, dst=2)
    assert edges(p.build()) == {(0, 2): {READ_AFTER_WRITE}}


def test_a_second_write_waits_for_the_first():
    p = Program(3, n_chunks=1)
    p.copy(0, src=0, dst=2)
    p.reduce(0, src=1, dst=2)
    assert edges(p.build()) == {(0, 1): {WRITE_AFTER_WRITE}}


def test_transfers_of_one_hop_do_not_wait_for_each_other():
    p = Program(2, n_chunks=1)
    p.reduce(0, src=[0, 1], dst=[1, 0])
    assert edges(p.build()) == {}


def test_a_reader_waits_for_all_that_reduced_in_the_last_writing_hop():
    p = Program(4, n_chunks=1)
    p.reduce(0, src=[1, 2], dst=0)
    p.copy(0, src=0, dst=3)
    assert edges(p.build()) == {(0, 2): {READ_AFTER_WRITE}, (1, 2): {READ_AFTER_WRITE}}


def test_a_message_of_several_chunks_waits_for_the_writers_of_each():
    p = Program(3, n_chunks=3)
    p.copy([0, 2], src=[0, 1], dst=2)
    p.copy(0, src=2, dst=0, count=3)
    assert {pair for pair, kinds in edges(p.build()).items() if READ_AFTER_WRITE in kinds} == {(0, 2), (1, 2)}


def test_one_predecessor_that_must_be_complete_is_not_listed_again_as_one_that_must_be_sent():
    p = Program(2, n_chunks=2)
    p.copy(src=0, dst=0, src_chunk=0, dst_chunk=1)
    p.copy(src=0, dst=0, src_chunk=1, dst_chunk=0)  # reads what the first wrote, and overwrites what it read
    assert edges(p.build()) == {(0, 1): {READ_AFTER_WRITE}}


@pytest.mark.parametrize("ops", ["cc", "cr", "rc"])
def test_two_writes_of_a_hop_into_one_chunk_are_refused_unless_both_reduce(ops):
    p = Program(3, n_chunks=1)
    p.reduce(0, src=[0, 1], dst=2)
    both_reduce = p.build()
    dependencies(both_reduce, both_reduce.expand())
    transfers = both_reduce.expand()
    transfers["op"] = [REDUCE if op == "r" else 0 for op in ops]
    with pytest.raises(ScheduleError, match="hop 0 writes chunk 0 of participant 2 twice"):
        dependencies(both_reduce, transfers)


def test_a_fence_makes_both_ends_wait_for_their_earlier_stage_only():
    p = Program(6, n_chunks=4)
    p.copy([0, 1], src=[0, 2], dst=[1, 3])
    p.fence()
    p.copy([2, 3], src=[1, 4], dst=[2, 5])
    assert edges(p.build()) == {(0, 2): {FENCE}, (1, 2): {FENCE}}


def test_a_fence_that_a_participant_sat_out_still_orders_the_stages_around_it():
    p = Program(4, n_chunks=3)
    p.copy(0, src=0, dst=1)
    p.fence()
    p.copy(1, src=2, dst=3)
    p.fence()
    p.copy(2, src=0, dst=1)
    assert edges(p.build()) == {(0, 2): {FENCE}}


@st.composite
def schedules(draw):
    n_ranks, n_chunks = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    p = Program(n_ranks, n_chunks)
    for _ in range(draw(st.integers(1, 7))):
        n = draw(st.integers(1, 3))
        count = draw(st.integers(1, n_chunks))
        at = st.lists(st.integers(0, n_chunks - count), min_size=n, max_size=n)
        who = st.lists(st.integers(0, n_ranks - 1), min_size=n, max_size=n)
        p.reduce(src=draw(who), dst=draw(who), src_chunk=draw(at), dst_chunk=draw(at), count=count)
    return p.build()


@settings(deadline=None, max_examples=150)
@given(schedule=schedules())
def test_edges_are_those_of_the_definition(schedule):
    got, wanted = edges(schedule), naive_edges(schedule)
    assert got.keys() == wanted.keys()
    for pair, kinds in got.items():
        must_be_complete = wanted[pair] & {READ_AFTER_WRITE, WRITE_AFTER_WRITE}
        assert bool(kinds & {READ_AFTER_WRITE, WRITE_AFTER_WRITE}) == bool(must_be_complete)
        assert kinds <= wanted[pair]


@pytest.mark.parametrize("n_ranks", [3, 3000])
def test_a_wire_is_what_shares_source_destination_and_channel(n_ranks):
    p = Program(n_ranks, n_chunks=2)
    p.copy(0, src=[0, 0, 1], dst=[1, n_ranks - 1, 0])
    p.copy(1, src=[0, 0], dst=[1, 1], dst_chunk=[0, 1], channel=[0, 1])
    schedule = p.build()
    number, lead = wires(schedule, schedule.expand())
    assert number.tolist() == [0, 2, 3, 0, 1]
    assert lead.tolist() == [0, 4, 1, 2]


def test_rows_of_predecessors_turn_into_rows_of_successors():
    first = np.array([0, 0, 1, 3])
    pred = np.array([0, 0, 1], np.int32)
    begin, code = successor_rows(first, pred, np.array([True, False, True]))
    assert begin.tolist() == [0, 2, 3, 3]
    assert code.tolist() == [2 * 1 + 1, 2 * 2, 2 * 2 + 1]


@given(st.lists(st.integers(0, 6)))
@settings(deadline=None)
def test_counting_sorts_stably(key):
    key = np.array(key, np.int32)
    assert counting_order(key, 7).tolist() == np.argsort(key, kind="stable").tolist()
