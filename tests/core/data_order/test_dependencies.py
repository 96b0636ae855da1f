import numpy as np
import pytest
from flow_cases import random_schedule
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives.dense.halving_doubling import halving_doubling_all_reduce, recursive_doubling_all_gather
from commsim.core.data_order import dependencies as chunk_intervals
from commsim.core.data_order import dependencies as module
from commsim.core.data_order.dependencies import CELLS, connections, dependencies, fence_waits
from commsim.core.data_order.dependencies_kernel import (
    FENCE,
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    counting_order,
    find_dependencies,
    successor_rows,
)
from commsim.core.errors import InputError, ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import REDUCE, Schedule


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


@given(schedule=schedules())
def test_edges_are_those_of_the_definition(schedule):
    got, wanted = edges(schedule), naive_edges(schedule)
    assert got.keys() == wanted.keys()
    for pair, kinds in got.items():
        must_be_complete = wanted[pair] & {READ_AFTER_WRITE, WRITE_AFTER_WRITE}
        assert bool(kinds & {READ_AFTER_WRITE, WRITE_AFTER_WRITE}) == bool(must_be_complete)
        assert kinds <= wanted[pair]


def test_a_sum_that_all_fetch_has_the_square_of_its_writers_in_the_order_of_the_lists():
    # more than there is room for at first, twice
    p = Program(14, n_chunks=2)
    others = np.arange(1, 14)
    for chunk in (0, 1):
        p.reduce(chunk, src=others, dst=0)
        p.copy(chunk, src=0, dst=others)
    schedule = p.build()
    order = dependencies(schedule, schedule.expand())
    last = slice(order.first[-2], order.first[-1])
    assert order.pred[last].tolist() == [*range(38, 25, -1)]
    assert set(order.kind[last].tolist()) == {READ_AFTER_WRITE}
    assert len(order.pred) == len(order.kind) == order.first[-1] == 2 * 13 * 13
    assert edges(schedule).keys() == naive_edges(schedule).keys()


@st.composite
def long_messages(draw):
    """Messages of many chunks, cut anywhere; no hop writes to a participant twice."""
    n_ranks, n_chunks = draw(st.integers(2, 4)), draw(st.integers(20, 90))
    p = Program(n_ranks, n_chunks)
    for _ in range(draw(st.integers(1, 9))):
        who = draw(st.permutations(range(n_ranks)))
        n = draw(st.integers(1, n_ranks))
        count = draw(st.lists(st.integers(1, n_chunks), min_size=n, max_size=n))
        at = [[draw(st.integers(0, n_chunks - c)) for c in count] for _ in range(2)]
        write = draw(st.sampled_from([p.copy, p.reduce]))
        write(src=draw(st.permutations(who))[:n], dst=who[:n], src_chunk=at[0], dst_chunk=at[1], count=count)
    return p.build()


@pytest.mark.slow
@given(schedule=long_messages())
@settings(max_examples=settings().max_examples // 2)
def test_cells_give_the_rows_that_looking_at_every_chunk_gives(schedule):
    transfers = schedule.expand()
    chunks = np.empty(len(transfers), CELLS)
    for end, address in (("src", schedule.src_address), ("dst", schedule.dst_address)):
        first = transfers[end] * np.int64(schedule.n_addresses) + address(transfers)
        touches = "read" if end == "src" else "write"
        chunks[touches], chunks[f"{touches}_end"] = first, first + transfers["count"]
    wanted = find_dependencies(transfers, chunks, schedule.n_participants * schedule.n_addresses, 10**6)
    got = dependencies(schedule, transfers)
    for ours, theirs in zip((got.first, got.pred, got.kind), wanted, strict=False):
        np.testing.assert_array_equal(ours, theirs)


def test_dependencies_that_are_the_cube_of_the_ranks_are_refused_before_they_fill_the_memory(monkeypatch):
    p = Program(8, n_chunks=1)
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b]
    for _ in range(2):  # to all, and then what came from all to all
        p.reduce(0, src=[a for a, _ in pairs], dst=[b for _, b in pairs])
    schedule = p.build()
    monkeypatch.setattr(module, "MAX_DEPENDENCIES", 400)
    with pytest.raises(InputError, match="its 112 transfers wait for each other in more than 400 ways"):
        dependencies(schedule, schedule.expand())
    monkeypatch.undo()
    assert len(dependencies(schedule, schedule.expand()).pred) > 400


@pytest.mark.parametrize("n_ranks", [3, 3000])
def test_a_wire_is_what_shares_source_destination_and_channel(n_ranks):
    p = Program(n_ranks, n_chunks=2)
    p.copy(0, src=[0, 0, 1], dst=[1, n_ranks - 1, 0])
    p.copy(1, src=[0, 0], dst=[1, 1], dst_chunk=[0, 1], channel=[0, 1])
    schedule = p.build()
    number, lead = connections(schedule, schedule.expand())
    assert number.tolist() == [0, 1, 2, 0, 3]
    assert lead.tolist() == [0, 1, 2, 4]


def test_rows_of_predecessors_turn_into_rows_of_successors():
    first = np.array([0, 0, 1, 3])
    pred = np.array([0, 0, 1], np.int32)
    begin, code = successor_rows(first, pred, np.array([True, False, True]))
    assert begin.tolist() == [0, 2, 3, 3]
    assert code.tolist() == [2 * 1 + 1, 2 * 2, 2 * 2 + 1]


@given(st.lists(st.integers(0, 6)))
def test_counting_sorts_stably(key):
    key = np.array(key, np.int32)
    assert counting_order(key, 7).tolist() == np.argsort(key, kind="stable").tolist()


# What transfers touch, cut into cells.
def assert_cells_overlap_where_chunks_do(schedule: Schedule) -> None:
    transfers = schedule.expand()
    of = np.zeros(len(transfers), chunk_intervals.CELLS)
    n_cells = chunk_intervals.cut_cells(schedule, transfers, of)
    count = transfers["count"].astype(np.int64)
    first = np.concatenate((
        transfers["src"] * np.int64(schedule.n_addresses) + schedule.src_address(transfers),
        transfers["dst"] * np.int64(schedule.n_addresses) + schedule.dst_address(transfers),
    ))  # fmt: skip
    end = first + np.tile(count, 2)
    low, high = np.concatenate((of["read"], of["write"])), np.concatenate((of["read_end"], of["write_end"]))
    assert (low >= 0).all()
    assert (high <= n_cells).all()
    assert (low < high).all()
    chunks = (first[:, None] < end) & (first < end[:, None])
    np.testing.assert_array_equal((low[:, None] < high) & (low < high[:, None]), chunks)


@given(seed=st.integers(0, 2**32), n_ranks=st.integers(2, 6), n_hops=st.integers(1, 6))
def test_chunks_are_their_own_cells_where_they_are_few(seed: int, n_ranks: int, n_hops: int) -> None:
    assert_cells_overlap_where_chunks_do(random_schedule(np.random.default_rng(seed), n_ranks, 1, n_hops))


@pytest.mark.nojit
@pytest.mark.parametrize("most", [1024, 0], ids=["by insertion", "by sorting"])
@pytest.mark.parametrize("schedule", [halving_doubling_all_reduce(32), recursive_doubling_all_gather(24)],
                         ids=lambda schedule: str(schedule.name))  # fmt: skip
def test_long_messages_are_cut_where_others_end(schedule: Schedule, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_intervals, "MAX_TOUCHES", most)
    assert_cells_overlap_where_chunks_do(schedule)


def exchange_in_stages(n: int, at_once: int) -> Schedule:
    """Return an all-to-all in which a rank sends to so many peers, and waits before it sends to others."""
    p = Program(n, n_chunks=n)
    for first in range(0, n, at_once):
        with p.repeat(at_once, dst=1, src_chunk=1, first=first):
            rank = np.arange(n)
            p.copy(src=rank, dst=rank, src_chunk=rank, dst_chunk=rank, dst_buffer=1)
        if first + at_once < n:
            p.fence()
    return p.build()


def test_waits_at_fences_are_counted_without_expanding_them():
    staged = exchange_in_stages(64, 16)
    for schedule in (staged, staged.fenced()):
        waits = len(dependencies(schedule, schedule.expand()).pred)
        assert fence_waits(schedule) == pytest.approx(waits, rel=0.15)
    assert fence_waits(halving_doubling_all_reduce(8)) == 0


def test_too_many_waits_at_fences_are_refused_before_they_are_laid_out(monkeypatch):
    schedule = exchange_in_stages(64, 16)
    monkeypatch.setattr(module, "MAX_DEPENDENCIES", int(fence_waits(schedule)) - 1)
    with pytest.raises(InputError, match=r"4096 transfers wait for each other in more than .* take fewer ranks"):
        dependencies(schedule, schedule.expand())
