"""Which receive gets which message, before times are known: as MPI matches them, whatever comes first."""

import random

import pytest

from commsim.emulation.inbox import CameMessage, Inbox
from commsim.emulation.rank_calls import ANY, PendingCall, Receive


def receive(number, tag=ANY, source=1):
    return PendingCall(0, number, Receive(source, tag, "world"), 0)


def message(number, tag=0):
    return CameMessage(number, tag, 0.0, None)


@pytest.fixture
def inbox():
    def nothing_comes(source):
        raise LookupError(source)

    return Inbox(nothing_comes)


def test_what_comes_first_does_not_matter():
    for seed in range(200):
        draws = random.Random(seed)
        tags, wanted = [[draws.randrange(3) for _ in range(8)] for _ in range(2)]
        found = []
        for _ in range(3):
            left = [message(k, tag) for k, tag in enumerate(tags)]
            inbox = Inbox(lambda _, left=left, to=found: to[-1].came(1, "world", left.pop(0)))
            found.append(inbox)
            receives = [receive(k, ANY if tag == 2 else tag) for k, tag in enumerate(wanted)]
            got = {}
            for one in receives:
                inbox.expect(one)
                while left and draws.random() < 0.5:
                    inbox.read(1)
            for one in draws.sample(receives, len(receives)):
                try:
                    got[one.number] = inbox.message_of(one).number
                except IndexError:  # there is none
                    got[one.number] = None
            found[-1] = got
        assert found[0] == found[1] == found[2]


def test_a_receive_from_any_source_makes_others_wait_for_times(inbox):
    assert inbox.knows(receive(1).call)
    inbox.expect(first := receive(1, source=ANY))
    assert not inbox.knows(receive(2).call)
    inbox.came(1, "world", message(7))
    assert inbox.message(first, 1, 7).number == 7
    assert inbox.knows(receive(2).call)


def test_the_message_of_a_cancelled_receive_goes_to_the_next_one_that_it_fits(inbox):
    receives = [receive(1), receive(2, 5), receive(3, 0)]
    for one in receives:
        inbox.expect(one)
    for number, tag in enumerate((5, 5, 0)):
        inbox.came(1, "world", message(number, tag))
    assert inbox.message_of(receives[2]).number == 2  # the others have theirs then, and are not complete
    inbox.cancel(receives[0])
    assert inbox.message_of(receives[1]).number == 0


def test_what_has_not_come_is_waited_for(inbox):
    inbox.expect(one := receive(1, 5))
    inbox.came(1, "world", message(0, 4))
    with pytest.raises(LookupError):
        inbox.message_of(one)
    inbox.cancel(one)
    with pytest.raises(LookupError):
        inbox.message(receive(2, source=ANY), 1, 3)
