import pytest

from collectives import COLLECTIVES
from commsim.core.program import Program
from commsim.real.plan import LOCAL, RECEIVE, SEND, TransferStep, plan_rank
from commsim.real.step_order import order_of


def played(steps: list[TransferStep], look_ahead: int, any_order: bool, last_first: bool) -> list[int]:
    """Count down to the end; of the messages that are under way the oldest or the youngest completes first."""
    order, n = order_of(steps, look_ahead, any_order), len(steps)
    waits, events, under_way = order.waits.copy(), [], []
    ready = [k for k in range(n) if not waits[k]]
    while ready or under_way:
        if ready:
            event = ready.pop(0)
            events.append(event)
            if event < n and steps[event].kind != LOCAL:
                under_way.append(n + event)
            done = order.following[event]
        else:
            done = [under_way.pop(-1 if last_first else 0)]
        for event in done:
            waits[event] -= 1
            if not waits[event]:
                ready.append(event)
    return events


@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("look_ahead", [0, 1, 8])
@pytest.mark.parametrize("name", ["ring_all_reduce", "double_tree_all_reduce", "direct_all_to_all"])
def test_every_step_begins_and_ends_once(name: str, look_ahead: int, any_order: bool, last_first: bool) -> None:
    schedule = COLLECTIVES[name].build(5)
    steps = plan_rank(schedule, 2, 2 * schedule.n_chunks)
    events = played(steps, look_ahead, any_order, last_first)
    assert sorted(events) == list(range(2 * len(steps)))
    at = {event: place for place, event in enumerate(events)}
    for k, step in enumerate(steps):
        assert all(at[len(steps) + p] < at[k] for p in step.needs)
        assert all(at[len(steps) + p] < at[len(steps) + k] for p in step.before)


def test_messages_of_one_wire_begin_in_the_order_of_the_program() -> None:
    schedule = COLLECTIVES["double_tree_all_reduce"].build(4, n_chunks=4)
    steps = plan_rank(schedule, 1, 8)
    events = [event for event in played(steps, 8, True, True) if event < len(steps)]
    assert events != sorted(events)  # there is something to overtake
    for kind in (SEND, RECEIVE):
        for wire in {(step.peer, step.tag) for step in steps}:
            begun = [k for k in events if (steps[k].kind, steps[k].peer, steps[k].tag) == (kind, *wire)]
            assert begun == sorted(begun)


def test_a_receive_waits_for_what_stands_further_before_it_than_the_look_ahead() -> None:
    p = Program(2, n_chunks=2)
    p.copy(0, src=1, dst=0)
    p.copy(0, src=0, dst=1)
    p.copy(1, src=1, dst=0)
    steps = plan_rank(p.build(), 0, 2)
    assert order_of(steps, 1, True).waits[2] == 2  # for the receive before it on its wire, and for the send
    assert order_of(steps, 2, True).waits[2] == 1


def test_what_is_needed_soonest_is_the_first_step_that_waits() -> None:
    p = Program(2, n_chunks=2)
    p.copy([0, 1], src=1, dst=0)
    p.copy(1, src=0, dst=1)
    p.copy(0, src=0, dst=1)
    steps = plan_rank(p.build(), 0, 2)
    assert order_of(steps, 8, False).soonest == [3, 2, 4, 4]


def test_nothing_waits_for_what_stands_before_a_fence() -> None:
    p = Program(2, n_chunks=1)
    p.copy(0, src=0, dst=1)
    p.fence()
    p.copy(0, src=1, dst=0)
    assert order_of(plan_rank(p.build(), 1, 1), 8, True).waits == [0, 0, 1, 1]


def test_channels_to_one_peer_may_be_told_to_keep_the_order_of_the_program() -> None:
    p = Program(2, n_chunks=2)
    p.copy(0, src=0, dst=1, channel=0)
    p.copy(1, src=0, dst=1, channel=1)
    steps = plan_rank(p.build(), 0, 2)
    assert order_of(steps, 8, True).waits[1] == 0
    assert order_of(steps, 8, True, by_channel=False).waits[1] == 1
    assert order_of(steps, 8, True, by_channel=False).following[0] == [1]
