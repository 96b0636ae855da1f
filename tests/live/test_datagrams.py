"""Datagrams in batches over loopback, in every way that this system has."""

import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from commsim.core.errors import InputError
from switch_model.live.datagrams import MODES, REPLY, Datagrams, address_key, open_datagrams, to_addresses
from switch_model.live.frames import LEAD, frame_bytes, new_rows
from switch_model.live.linux_calls import CONTROL, MESSAGE, PIECE, available

WAYS = [mode for mode in MODES if mode == "single" or available()]


def bound() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    return sock


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    with bound() as one, bound() as other:
        yield one, other


def received(datagrams: Datagrams, n: int) -> list[tuple[int, bytes]]:
    """All that has come, as (source, frame); what is not as long as a frame is empty."""
    got: list[tuple[int, bytes]] = []
    for _ in range(1000):
        arrived = datagrams.receive()
        rows = datagrams.words.view(np.uint8)[:, LEAD:]
        got += [(int(a["source"]), rows[a["row"]].tobytes() if a["row"] >= 0 else b"") for a in arrived]
        if len(got) >= n:
            break
    return got


def replies(*pairs: tuple[int, int]) -> np.ndarray[Any, Any]:
    return np.array(list(pairs), REPLY)


@pytest.mark.parametrize("elements", [64, 256])
@pytest.mark.parametrize("back", WAYS)
@pytest.mark.parametrize("there", WAYS)
def test_frames_arrive_whole_and_in_order_whatever_way_each_side_has(
    sockets: tuple[socket.socket, socket.socket], there: str, back: str, elements: int
) -> None:
    one, other = sockets
    sender, receiver = open_datagrams(one, elements, there), open_datagrams(other, elements, back)
    words = new_rows(150, elements)
    words[:] = np.random.default_rng(0).integers(0, 2**32, words.shape, np.uint32)
    to = to_addresses([one.getsockname(), other.getsockname()])
    order = np.random.default_rng(1).permutation(150)
    assert sender.send(words, replies(*((int(row), 1) for row in order)), to) == 150
    got = received(receiver, 150)
    source = address_key(*one.getsockname())
    assert got == [(source, words.view(np.uint8)[row, LEAD:].tobytes()) for row in order]


@pytest.mark.parametrize("mode", WAYS)
def test_a_frame_may_go_to_several_and_each_gets_its_own_in_order(
    sockets: tuple[socket.socket, socket.socket], mode: str
) -> None:
    with bound() as third:
        peers = [*sockets, third]
        inboxes = [open_datagrams(peer, 64, mode) for peer in peers]
        words = new_rows(4, 64)
        words[:, 4:] = np.arange(4)[:, None]
        plan = replies((0, 2), (1, 0), (2, 2), (3, 1), (0, 0), (0, 2))
        assert inboxes[0].send(words, plan, to_addresses([p.getsockname() for p in peers])) == 6
        for number, inbox in enumerate(inboxes):
            wanted = [row for row, to in plan.tolist() if to == number]
            assert [np.frombuffer(f, np.uint32, 1, 10)[0] for _, f in received(inbox, len(wanted))] == wanted


@pytest.mark.parametrize("mode", WAYS)
def test_what_is_not_as_long_as_a_frame_arrives_without_a_row(
    sockets: tuple[socket.socket, socket.socket], mode: str
) -> None:
    one, other = sockets
    inbox, right = open_datagrams(other, 64, mode), frame_bytes(64)
    lengths = [0, 1, right - 1, right, right + 1, 2 * right, 65507]
    for length in lengths:
        one.sendto(b"a" * length, other.getsockname())
    got = received(inbox, len(lengths))
    assert [frame for _, frame in got] == [b"a" * right if length == right else b"" for length in lengths]
    assert {source for source, _ in got} == {address_key(*one.getsockname())}


@pytest.mark.skipif("segments" not in WAYS, reason="this system does not join datagrams")
@pytest.mark.parametrize("size", [1, 265, 267, 1000])
def test_joined_datagrams_of_a_wrong_length_are_counted_one_by_one(
    sockets: tuple[socket.socket, socket.socket], size: int
) -> None:
    one, other = sockets
    inbox = open_datagrams(other, 64, "segments")
    one.setsockopt(socket.IPPROTO_UDP, 103, size)  # UDP_SEGMENT
    one.sendto(b"b" * (4 * size + 1), other.getsockname())
    assert len(received(inbox, 5)) == 5
    one.setsockopt(socket.IPPROTO_UDP, 103, 266)
    one.sendto(b"c" * (3 * 266 + 5), other.getsockname())
    assert [frame for _, frame in received(inbox, 4)] == [b"c" * 266] * 3 + [b""]


@pytest.mark.parametrize("mode", WAYS)
def test_nobody_listening_is_a_loss_and_no_error(sockets: tuple[socket.socket, socket.socket], mode: str) -> None:
    one, _ = sockets
    datagrams = open_datagrams(one, 64, mode)
    with bound() as gone:
        nowhere = gone.getsockname()
    one.connect(nowhere)
    for _ in range(3):
        datagrams.send(new_rows(2, 64), replies((0, 0), (1, 0)), to_addresses([nowhere]))
        assert not len(datagrams.receive())


def test_an_unknown_way_is_refused(sockets: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(InputError, match="segments, messages, single, got 'pigeons'"):
        open_datagrams(sockets[0], 64, "pigeons")


def test_records_are_as_large_as_the_system_s_own() -> None:
    assert (MESSAGE.itemsize, PIECE.itemsize, CONTROL.itemsize) == (64, 16, 24)
