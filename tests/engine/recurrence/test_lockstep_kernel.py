"""Messages of a hop that share links: where the kernel finds rates, they are the max-min fair ones."""

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from slow_sharing import Flow, max_min_rates

from commsim.engine.recurrence.lockstep_kernel import find_lockstep_groups


def lockstep_groups(
    flows: list[Flow], capacity: dict[int, float], held: tuple[bool, ...] = ()
) -> tuple[int, list[float], list[int]]:
    """LockstepGroups of one hop in which every flow is a connection of its own: how many, rates, numbers."""
    alone = [min(capacity[r] / share for r, share in flow.uses.items()) for flow in flows]
    rows = (
        np.cumsum([0, *(len(flow.uses) for flow in flows)]),
        np.array([r for flow in flows for r in flow.uses], np.int32),
        np.array([a * share / capacity[r] for a, f in zip(alone, flows, strict=True) for r, share in f.uses.items()]),
    )
    n = len(flows)
    pace, group = np.ones(n), np.empty(n, np.int32)
    connection, hop = np.arange(n, dtype=np.int32), np.array([0, n])
    found = find_lockstep_groups(
        connection, hop, 1 / np.array(alone), rows, np.array(held, bool), len(capacity), pace, group
    )
    return found, (1 / pace).tolist(), group.tolist()


SHARES = st.sampled_from([1.0, 1.0, 1.0, 0.5])


@given(data=st.data())
def test_rates_are_max_min_fair_and_equal_in_a_group(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    capacity = dict(enumerate(data.draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=n, max_size=n))))
    uses = st.dictionaries(st.integers(0, n - 1), SHARES, min_size=1, max_size=2)
    flows = [Flow(u) for u in data.draw(st.lists(uses, min_size=1, max_size=6))]
    found, rates, group = lockstep_groups(flows, capacity)
    event("refused" if found < 0 else "shares" if found else "alone")
    if found < 0:
        return
    assert rates == pytest.approx(max_min_rates(flows, capacity), rel=1e-9)
    assert sorted(set(group) - {-1}) == list(range(found))
    for number in range(found):
        assert len({r for r, c in zip(rates, group, strict=True) if c == number}) == 1
    crowded = {r for r in capacity if sum(min(capacity[q] / s for q, s in f.uses.items()) * f.uses.get(r, 0.0)
                                          for f in flows) > capacity[r] * (1 + 1e-9)}  # fmt: skip
    assert [c >= 0 for c in group] == [bool(crowded & set(f.uses)) for f in flows]


def test_eight_messages_over_one_link_get_an_eighth_each() -> None:
    flows = [Flow({0: 1.0, 1 + i: 1.0}) for i in range(8)]
    found, rates, group = lockstep_groups(flows, dict.fromkeys(range(9), 4.0))
    assert (found, rates, group) == (1, [0.5] * 8, [0] * 8)


def test_what_would_get_different_rates_is_refused() -> None:
    # Two share link 0, and one of them also shares link 1 with three others.
    flows = [Flow({0: 1.0}), Flow({0: 1.0, 1: 1.0}), *(Flow({1: 1.0}) for _ in range(3))]
    assert lockstep_groups(flows, {0: 1.0, 1: 1.0})[0] == -1


def test_a_port_that_overheads_occupy_cannot_be_shared_in_step() -> None:
    flows = [Flow({0: 1.0}), Flow({0: 1.0})]
    assert lockstep_groups(flows, {0: 1.0})[0] == 1
    assert lockstep_groups(flows, {0: 1.0}, held=(True, True))[0] == -1


def test_a_connection_that_sends_twice_in_a_crowded_hop_is_refused() -> None:
    rows = (np.array([0, 1, 2]), np.zeros(2, np.int32), np.ones(2))
    none, pace, group = np.empty(0, bool), np.empty(3), np.empty(3, np.int32)
    connection, per_byte = np.array([0, 1, 0], np.int32), np.ones(2)
    assert find_lockstep_groups(connection, np.array([0, 3]), per_byte, rows, none, 1, pace, group) == -1
    assert find_lockstep_groups(connection, np.array([0, 1, 3]), per_byte, rows, none, 1, pace, group) == 1
    assert find_lockstep_groups(connection[:2], np.array([0, 1, 2]), per_byte, rows, none, 1, pace[:2], group[:2]) == 0
    assert find_lockstep_groups(connection[:2], np.array([0, 2]), per_byte, rows, none, 1, pace[:2], group[:2]) == 1
