"""Patterns: who sends to whom, and how many messages of a host are under way."""

import numpy as np
import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.traffic.patterns import PATTERNS, HostMessages, all_to_all, messages_of

STAR = "star:n_hosts=6"
PEERS = {"incast": "senders", "outcast": "receivers"}


@pytest.mark.parametrize("name", PATTERNS)
def test_nobody_sends_to_itself_and_all_send_the_same(name):
    sent = messages_of(f"{name}:{PEERS[name]}=5" if name in PEERS else name, 9, 1000, seed=4)
    assert (sent.src != sent.dst).all()
    assert (sent.nbytes == 1000).all()
    assert max(sent.src.max(), sent.dst.max()) < 9


def test_an_unknown_parameter_of_a_pattern_names_those_that_there_are():
    with pytest.raises(InputError, match="incast has no parameter 'sender'; did you mean senders"):
        messages_of("incast:sender=4", 9, 1000, seed=1)
    with pytest.raises(InputError, match="window must be 1 or more, got 0"):
        all_to_all(4, 1000, window=0)


@pytest.mark.parametrize("engine", ["packet", "flow"])
@pytest.mark.parametrize("window", [1, 3])
def test_at_most_a_window_of_messages_of_a_host_is_under_way(engine, window):
    asked = cs.scenario_of(None, STAR, traffic=f"all_to_all:window={window}", engine=engine, overhead="0us")
    carried = cs.solve(asked, ["200kB"]).details
    sent, begin = carried.messages, carried.messages.start
    end = begin + carried.received
    for host in range(6):
        mine = sent.src == host
        # at the middle between each two events of the host
        events = np.unique(np.concatenate((begin[mine], end[mine])))
        middle = (events[1:] + events[:-1]) / 2
        under_way = ((begin[mine] <= middle[:, None]) & (middle[:, None] < end[mine])).sum(axis=1)
        assert under_way.max() == window
    assert len(sent.src) == 30
    assert (begin + carried.received).max() >= carried.bound


def test_a_window_of_one_on_a_star_is_a_round_of_messages_after_the_other():
    carried = cs.solve(
        cs.scenario_of(None, STAR, traffic="all_to_all:window=1", engine="flow", overhead="0us"), ["100kB"]
    ).details
    # nobody begins with the receiver of another, so that each of the 5 rounds is 8 us at 100 Gb/s, and 1 us of the way
    assert (carried.messages.start + carried.received).max() == pytest.approx(5 * 9e-6)
    np.testing.assert_allclose(carried.slowdown, 1.0)


def test_messages_of_ones_own_go_between_the_hosts_of_the_network():
    sent = HostMessages(np.array([0, 5]), np.array([5, 0]), np.array([1000, 10**6]), np.array([0.0, 1e-6]))
    found = cs.solve(cs.scenario_of(None, STAR, traffic=sent, engine="packet", overhead="0us"), [0.0])
    assert found.results[0].n_ranks == 2
    assert found.details.messages.nbytes.tolist() == [1000, 10**6]
    with pytest.raises(InputError, match=r"hosts 0..3 of star"):
        cs.solve(cs.scenario_of(None, "star:n_hosts=4", traffic=sent, engine="packet", overhead="0us"), [0.0])
