"""Rings found in blocks: the same messages as the expanded schedule's, and no condition of its order left out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives import COLLECTIVES
from collectives.dense.hierarchical import hierarchical_all_reduce
from collectives.dense.ring import ring_all_reduce
from collectives.dense.torus import torus_all_reduce
from commsim.core.data_order.dependencies import connections, dependencies
from commsim.core.data_order.dependencies_kernel import WRITE_AFTER_READ
from commsim.core.program import Program
from commsim.core.schedule import REDUCE, SCRATCH, Schedule
from commsim.engine.recurrence.between_phases import MAX_MEETINGS, find_all_waits, find_waits
from commsim.engine.recurrence.ring_phases import RingPhase, find_ring_phases

RINGS = ["ring_all_reduce", "ring_reduce_scatter", "ring_all_gather", "multi_ring_all_reduce",
         "hierarchical_all_reduce", "torus_all_reduce"]  # fmt: skip
Message = tuple[int, ...]


def messages(schedule: Schedule) -> list[list[Message]]:
    """Messages of each hop: source, destination, channel, first address, chunks, whether reduced."""
    rows = schedule.expand()
    address = schedule.src_address(rows)
    hops: dict[int, list[Message]] = {}
    for row, at in zip(rows, address, strict=True):
        message = (*(int(row[f]) for f in ("src", "dst", "channel")), int(at), int(row["count"]), row["op"] == REDUCE)
        hops.setdefault(int(row["hop"]), []).append(message)
    return [sorted(hops[hop]) for hop in sorted(hops)]


def unrolled(phases: tuple[RingPhase, ...]) -> list[list[Message]]:
    """The same, from phases: in each round messages move on by one connection."""
    hops = []
    for phase in phases:
        address, reduces = phase.address, [r for n, r in phase.rounds for _ in range(n)]
        for adds in reduces:
            columns = (phase.src, phase.dst, phase.channel, address, phase.count)
            hops.append(sorted((*map(int, row), adds) for row in zip(*(c.ravel() for c in columns), strict=True)))
            address = np.roll(address, 1, axis=0)
    return hops


@given(name=st.sampled_from(RINGS), n_ranks=st.integers(2, 24))
def test_phases_send_what_the_schedule_sends(name: str, n_ranks: int) -> None:
    schedule = COLLECTIVES[name].build(n_ranks)
    phases = find_ring_phases(schedule)
    assert phases is not None
    assert unrolled(phases) == messages(schedule)


def slow_finish(schedule: Schedule, cost: np.ndarray) -> list[int]:
    """Finish of each transfer, where connection w takes cost[w, 0] to send, cost[w, 1] to arrive."""
    rows = schedule.expand()
    connection, _ = connections(schedule, rows)
    waits = dependencies(schedule, rows)
    sent, done, free = [0] * len(rows), [0] * len(rows), [0] * len(cost)
    for i in range(len(rows)):
        begin = free[connection[i]]
        for k in range(waits.first[i], waits.first[i + 1]):
            p = waits.pred[k]
            begin = max(begin, sent[p] if waits.kind[k] == WRITE_AFTER_READ else done[p])
        sent[i] = free[connection[i]] = begin + int(cost[connection[i], 0])
        done[i] = sent[i] + int(cost[connection[i], 1])
    return done


def finish_by_phases(schedule: Schedule, cost: np.ndarray) -> int | None:
    """Last finish by the rule of phases, in plain Python; None if a wait that was not assumed was not kept."""
    phases = find_ring_phases(schedule)
    assert phases is not None
    rows = schedule.expand()
    _, lead = connections(schedule, rows)
    number = {tuple(int(rows[f][i]) for f in ("src", "dst", "channel")): w for w, i in enumerate(lead)}
    free = [0] * len(cost)
    sent: list[list[int]] = []
    done: list[list[int]] = []
    for t, phase in enumerate(phases):
        mine = [number[int(a), int(b), int(c)] for a, b, c in
                zip(phase.src.ravel(), phase.dst.ravel(), phase.channel.ravel(), strict=True)]  # fmt: skip
        begin, n = [free[w] for w in mine], phase.src.shape[1]
        kept: list[tuple[int, int]] = []
        for before in range(t):
            waits = find_waits(phase, phases[before], schedule.n_addresses)
            for a, b, only_sent, certain in zip(waits.mine, waits.theirs, waits.sent, waits.certain, strict=True):
                end = (sent if only_sent else done)[before][b]
                begin[a] = max(begin[a], end) if certain else begin[a]
                kept.append((int(a), end))
        if any(begin[a] < end for a, end in kept):
            return None
        for _ in range(phase.n_rounds):
            gone = [b + int(cost[w, 0]) for b, w in zip(begin, mine, strict=True)]
            come = [g + int(cost[w, 1]) for g, w in zip(gone, mine, strict=True)]
            begin = [max(gone[i], come[i - n]) for i in range(len(mine))]
        for w, g in zip(mine, gone, strict=True):
            free[w] = g
        sent.append(gone)
        done.append(come)
    return max(max(d) for d in done)


@given(name=st.sampled_from(RINGS), n_ranks=st.integers(2, 18), seed=st.integers(0, 999), uneven=st.booleans())
def test_the_waits_that_phases_leave_out_are_kept_all_the_same(
    name: str, n_ranks: int, seed: int, uneven: bool
) -> None:
    schedule = COLLECTIVES[name].build(n_ranks)
    n_connections = len(connections(schedule, schedule.expand())[1])
    rng = np.random.default_rng(seed)
    cost = rng.integers(1, 30, (n_connections, 2)) if uneven else np.tile(rng.integers(1, 30, 2), (n_connections, 1))
    ours = finish_by_phases(schedule, cost)
    if ours is not None:
        assert ours == max(slow_finish(schedule, cost))
    else:
        assert uneven, "with equal costs nothing is refused"


def test_a_hierarchy_is_three_phases_and_a_ring_is_one() -> None:
    groups = tuple(tuple(range(i, i + 4)) for i in range(0, 12, 4))
    phases = find_ring_phases(hierarchical_all_reduce(12, groups))
    assert phases is not None
    assert [(t.src.shape, t.rounds) for t in phases] == [
        ((4, 3), ((3, True),)),
        ((3, 4), ((2, True), (2, False))),
        ((4, 3), ((3, False),)),
    ]
    (phase,) = find_ring_phases(ring_all_reduce(5)) or ()
    assert (phase.src.shape, phase.rounds) == ((5, 1), ((4, True), (4, False)))


def test_phases_in_which_all_meet_all_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = tuple(tuple(range(i, i + 4)) for i in range(0, 12, 4))
    schedule = hierarchical_all_reduce(12, groups)
    phases = find_ring_phases(schedule)
    assert phases is not None
    met = 3 * 12 * 3  # each of three pairs of phases: what reads and what writes of a rank, on one connection each
    assert met < MAX_MEETINGS
    monkeypatch.setattr("commsim.engine.recurrence.between_phases.MAX_MEETINGS", met)
    assert find_all_waits(phases, schedule.n_addresses) is not None
    monkeypatch.setattr("commsim.engine.recurrence.between_phases.MAX_MEETINGS", met - 1)
    assert find_all_waits(phases, schedule.n_addresses) is None


def test_a_torus_of_three_sides_is_five_phases() -> None:
    phases = find_ring_phases(torus_all_reduce(24, (2, 4, 3)))
    assert phases is not None
    assert [t.n_rounds for t in phases] == [2, 3, 2, 3, 2]


def test_a_ring_of_a_hundred_thousand_is_found_in_little_memory() -> None:
    phases = find_ring_phases(ring_all_reduce(131072))
    assert phases is not None
    assert [(t.src.shape, t.n_rounds) for t in phases] == [((131072, 1), 262142)]


def one_round(*, times: int = 3, fence: bool = False, **changed: object) -> Schedule:
    """A ring of four whose block is changed."""
    p = Program(4, 4, n_scratch=4)
    rank = np.arange(4)
    columns: dict[str, object] = {"src": rank, "dst": (rank + 1) % 4, "src_chunk": rank, "dst_chunk": rank}
    with p.repeat(times, chunk=-1):
        p.copy(**(columns | changed))  # type: ignore[arg-type]
        if fence:
            p.fence()
    return p.build()


@pytest.mark.parametrize(
    "schedule",
    [
        one_round(fence=True),
        one_round(dst_buffer=SCRATCH),
        one_round(dst_chunk=(np.arange(4) + 1) % 4),
        one_round(dst=np.arange(4)),
        one_round(dst=(np.arange(4) + 2) % 4),
        one_round(dst=np.array([1, 0, 3, 2])),
    ],
    ids=["fences", "other buffer", "other chunk", "to itself", "what it does not have", "cycles of two"],
)
def test_what_is_no_ring_is_not_taken_for_one(schedule: Schedule) -> None:
    assert find_ring_phases(one_round()) is not None
    assert find_ring_phases(schedule) is None


def test_rounds_that_repeat_several_hops_are_no_phase() -> None:
    assert find_ring_phases(COLLECTIVES["double_tree_all_reduce"].build(8, 4)) is None
