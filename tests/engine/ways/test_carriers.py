"""Connections of schedules, and proofs about their routes, are kept: what is kept is never another one's."""

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.data_order.dependencies import connections
from commsim.core.program import Program
from commsim.engine.ways import carriers as module
from commsim.engine.ways.carriers import carriers
from commsim.engine.ways.proof_cache import Examined


@pytest.fixture(autouse=True)
def nothing_is_kept():
    module._kept.clear()


def loops(chunks, times, ends=((0, 1), (1, 2), (2, 0))):
    """Return a schedule of a first block that repeats and a last one, with messages of some chunks."""
    p = Program(3, 3 * chunks * (times + 1))
    src, dst = np.array(ends).T
    for n in (times, 1):
        with p.repeat(n, chunk=3 * chunks if n > 1 else 0):
            p.copy(np.arange(len(src)) * chunks, src=src, dst=dst, count=chunks, channel=np.arange(len(src)))
    return p.build()


def table(schedule):
    """Return the messages' bytes of each connection, in the order of the connections."""
    found = carriers(schedule)
    return list(zip(map(tuple, found.ends.tolist()), found.channel.tolist(), found.on_wire(1.0, None).tolist(),
                    strict=True))  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["ring_all_reduce", "pairwise_all_to_all", "halving_doubling_all_reduce", "nccl_all_to_all", "bruck_all_gather"],
)
def test_connections_are_numbered_as_those_of_all_rows(name):
    schedule = COLLECTIVES[name].build(8)
    transfers = np.concatenate([
        schedule.repetitions(block, [number])
        for block in schedule.blocks
        for number in range(block.times if block.xor or any(block.step[:2]) else 1)
    ])  # fmt: skip
    of_row, lead = connections(schedule, transfers)
    wires = carriers(schedule).wires
    assert wires.ends.tolist() == np.stack((transfers["src"][lead], transfers["dst"][lead]), axis=1).tolist()
    assert wires.channel.tolist() == transfers["channel"][lead].tolist()
    assert wires.ends.dtype == np.int32
    n = len(of_row) // len(wires.of_row)
    assert np.tile(wires.of_row, n).tolist() == of_row.tolist()


def test_another_size_has_the_same_connections_and_its_own_bytes():
    few, more = loops(2, 3), loops(5, 4)
    assert carriers(few).wires is carriers(more).wires
    assert table(few) == [((0, 1), 0, 8.0), ((1, 2), 1, 8.0), ((2, 0), 2, 8.0)]
    assert table(more) == [((0, 1), 0, 25.0), ((1, 2), 1, 25.0), ((2, 0), 2, 25.0)]


def test_a_schedule_that_differs_in_one_end_has_connections_of_its_own():
    schedules = [loops(2, 3), loops(2, 3, ((0, 1), (1, 2), (2, 1))), loops(2, 3, ((0, 1), (1, 2)))]
    fresh = []
    for schedule in schedules:
        module._kept.clear()
        fresh.append(table(schedule))
    assert [table(schedule) for schedule in [*schedules, *schedules[::-1]]] == [*fresh, *fresh[::-1]]


def test_repetitions_that_move_are_told_from_those_of_another_number_or_step():
    def moving(times, first, step):
        p = Program(8, 8)
        with p.repeat(times, dst=step, first=first):
            p.copy(np.arange(8), src=np.arange(8), dst=np.arange(8))
        return p.build()

    schedules = [moving(3, 1, 1), moving(4, 1, 1), moving(3, 2, 1), moving(3, 1, 2), moving(3, 1, 1)]
    fresh = []
    for schedule in schedules:
        module._kept.clear()
        fresh.append(table(schedule))
    assert [table(schedule) for schedule in schedules] == fresh
    assert len({str(one) for one in fresh}) == 4


def test_no_more_than_a_few_are_kept():
    for n in range(3, 20):
        carriers(COLLECTIVES["ring_all_reduce"].build(n))
    assert len(module._kept) == module.MANY


@pytest.mark.parametrize("limit", [0.0, 3.0, 1e40])
def test_a_rate_is_looked_at_only_where_no_higher_one_was_free(limit):
    looked = []

    def look(cap):
        looked.append(cap)
        return -1 if cap <= limit else 7

    examined = Examined(None)
    for cap in (2.0, 1.0, 2.0, 3.0, 2.5, 4.0, 4.0, 1.0, 3.0, 5.0):
        assert examined.full(cap, look) == (-1 if cap <= limit else 7)
    free = [cap for cap in looked if cap <= limit]
    assert free == sorted({*free})
