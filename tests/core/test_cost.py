"""Tests of eager and rendezvous messages."""

import numpy as np
import pytest

from commsim.core.cost import MessageProtocol, read_protocol
from commsim.core.errors import InputError


def test_messages_above_the_eager_size_wait_for_an_announcement_and_a_request():
    added = MessageProtocol(eager=4097.0).added(np.array([4096.0, 8192.0]), np.full(2, 1e-6), np.full(2, 2e-6))
    assert added.tolist() == [0.0, pytest.approx(4e-6)]


def test_the_faster_of_a_copy_and_an_announcement_is_taken():
    added = MessageProtocol(copy=5e9).added(np.array([5e3, 5e6]), np.full(2, 1e-6), np.full(2, 1e-6))
    assert added.tolist() == pytest.approx([1e-6, 3e-6])


@pytest.mark.parametrize(
    "one", [MessageProtocol(eager=4097.0), MessageProtocol(copy=5.8e9), MessageProtocol(4096.0, 1.5e9)]
)
def test_what_is_written_is_read(one):
    assert read_protocol(str(one)) == one
    assert read_protocol("") is None


@pytest.mark.parametrize(("text", "told"), [("speed=3", "eager=SIZE and copy=RATE"), ("eager=0B", "above 0")])
def test_wrong_texts_are_refused(text, told):
    with pytest.raises(InputError, match=told):
        read_protocol(text)
