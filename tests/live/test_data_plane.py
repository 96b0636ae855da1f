"""The live switch without sockets: the same answers as the slow pool, and what it refuses, counted by cause."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_pool import Pool

from commsim.core.errors import InputError
from switch_model.live.data_plane import DataPlane
from switch_model.live.datagrams import ARRIVED, address_key
from switch_model.live.frames import LEAD, frame_bytes, new_rows
from switch_model.system import System

SLOTS, FIRST, JOB = 3, 2, 200
PEERS = [("127.0.0.1", 7000), ("127.0.0.1", 4), ("10.1.2.3", 7000)]


def frame(packet: int, values: object, exponent: int = 0, *, job: int = JOB, slots: int = SLOTS) -> bytes:
    """A frame written without our kernels; slots and versions as the sequence wants them."""
    place = packet % (2 * slots)
    index = FIRST + place % slots | (place // slots) << 15
    header = bytes([0x11, job]) + (packet % 2**32).to_bytes(4, "big") + index.to_bytes(2, "big")
    return header + exponent.to_bytes(1, "big", signed=True) + b"\0" + np.asarray(values, ">i4").tobytes()


def delivered(plane: DataPlane, *frames: tuple[tuple[str, int], bytes]) -> list[tuple[int, bytes]]:
    """Let frames arrive; return who gets what."""
    words, arrived = new_rows(len(frames), plane.elements), np.zeros(len(frames), ARRIVED)
    for i, (peer, content) in enumerate(frames):
        right = len(content) == frame_bytes(plane.elements)
        if right:
            words.view(np.uint8)[i, LEAD:] = np.frombuffer(content, np.uint8)
        arrived[i] = (address_key(*peer), i if right else -1, len(content), False)
    replies = plane.handle(words, arrived)
    return [(int(to), words.view(np.uint8)[row, LEAD:].tobytes()) for row, to in replies]


@pytest.fixture
def plane() -> DataPlane:
    plane = DataPlane(8, 64)
    plane.open(JOB, PEERS, FIRST, SLOTS)
    return plane


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=120), st.integers(0, 2**32))
def test_it_answers_as_the_slow_pool_does(order: list[tuple[int, bool]], seed: int) -> None:
    """Workers send their next packet, or their last one again; a worker moves on when it has had the result."""
    rng = np.random.default_rng(seed)
    plane, pool = DataPlane(8, 64), Pool(System("slow", 64, pool_size=SLOTS, window=SLOTS), 3)
    plane.open(JOB, PEERS, FIRST, SLOTS)
    values = rng.integers(-(2**31), 2**31, (3, 200, 64), np.int32)
    exponents = rng.integers(-128, 128, (3, 200))
    sent, had = [0, 0, 0], [set[int](), set[int](), set[int]()]
    for rank, again in order:
        packet = max(sent[rank] - 1, 0) if again else sent[rank]
        if packet >= SLOTS and packet - SLOTS not in had[rank]:
            continue
        sent[rank] = max(sent[rank], packet + 1)
        exponent = int(exponents[rank, packet])
        got = delivered(plane, (PEERS[rank], frame(packet, values[rank, packet], exponent)))
        place = packet % (2 * SLOTS)
        wanted = pool.contribution(place % SLOTS, place // SLOTS, rank, values[rank, packet], exponent)
        assert got == [(p.destination, frame(packet, p.values, p.exponent)) for p in wanted]
        for to, _ in got:
            had[to].add(packet)


def test_a_batch_is_handled_in_order_and_its_last_frame_releases_the_sum(plane: DataPlane) -> None:
    ones = np.ones(64, np.int32)
    got = delivered(plane, *((peer, frame(0, ones * (i + 1), i)) for i, peer in enumerate(PEERS)))
    assert got == [(to, frame(0, 6 * ones, 2)) for to in range(3)]
    assert plane.counts()["complete"] == 1


def test_a_late_copy_of_an_old_packet_is_not_taken_for_a_new_one(plane: DataPlane) -> None:
    """Without the sequence check it would be: its bit has been cleared when the other version was used."""
    ones = np.ones(64, np.int32)
    for packet in (0, SLOTS):
        assert len(delivered(plane, *((peer, frame(packet, ones)) for peer in PEERS))) == 3
    assert delivered(plane, (PEERS[0], frame(0, ones))) == []
    assert plane.counts()["dropped_out_of_sequence"] == 1
    got = delivered(plane, *((peer, frame(2 * SLOTS, 5 * ones)) for peer in PEERS))
    assert got[0][1] == frame(2 * SLOTS, 15 * ones)


def test_a_restart_at_slot_0_is_noticed(plane: DataPlane) -> None:
    ones = np.ones(64, np.int32)
    delivered(plane, *((peer, frame(0, ones)) for peer in PEERS))
    delivered(plane, *((peer, frame(SLOTS, ones)) for peer in PEERS))
    assert delivered(plane, *((peer, frame(0, 9 * ones)) for peer in PEERS)) == []
    assert plane.counts()["dropped_out_of_sequence"] == 3


GOOD = frame(0, np.ones(64, np.int32))


@pytest.mark.parametrize(
    ("cause", "peer", "content"),
    [
        ("wrong_length", PEERS[0], GOOD[:-1]),
        ("wrong_length", PEERS[0], b""),
        ("wrong_length", ("9.9.9.9", 1), GOOD + b"\0"),
        ("unknown_source", ("127.0.0.1", 7001), GOOD),
        ("unknown_source", ("127.0.0.2", 7000), GOOD),
        ("wrong_type", PEERS[0], b"\x21" + GOOD[1:]),
        ("wrong_type", PEERS[0], b"\x13" + GOOD[1:]),
        ("wrong_job", PEERS[0], frame(0, np.ones(64), job=JOB + 1)),
        ("no_such_slot", PEERS[0], GOOD[:6] + bytes([0, FIRST - 1]) + GOOD[8:]),
        ("no_such_slot", PEERS[0], GOOD[:6] + bytes([0x80, FIRST + SLOTS]) + GOOD[8:]),
        ("no_such_slot", PEERS[0], GOOD[:6] + bytes([0x40, FIRST]) + GOOD[8:]),
        ("no_such_slot", PEERS[0], GOOD[:6] + b"\xff\xff" + GOOD[8:]),
        ("out_of_sequence", PEERS[0], GOOD[:6] + bytes([0x80, FIRST]) + GOOD[8:]),
        ("out_of_sequence", PEERS[0], frame(2 * SLOTS, np.ones(64))),
        ("out_of_sequence", PEERS[0], frame(SLOTS, np.ones(64))),
        ("out_of_sequence", PEERS[0], frame(-2 * SLOTS, np.ones(64))),
    ],
)
def test_what_does_not_belong_is_dropped_and_counted_by_cause(
    plane: DataPlane, cause: str, peer: tuple[str, int], content: bytes
) -> None:
    assert delivered(plane, (peer, content)) == []
    counts = plane.counts()
    assert {name for name, n in counts.items() if n} == {"packets_in", f"dropped_{cause}"}
    assert plane.busy(JOB) == []


def test_a_job_cannot_touch_the_slots_of_another(plane: DataPlane) -> None:
    stranger = ("127.0.0.1", 9000)
    plane.open(1, [stranger], FIRST + SLOTS, 2)
    assert delivered(plane, (stranger, frame(0, np.ones(64), job=1))) == []
    assert plane.counts()["dropped_no_such_slot"] == 1


def test_slots_that_wait_are_listed_with_the_ranks_that_they_wait_for(plane: DataPlane) -> None:
    delivered(plane, (PEERS[1], frame(1, np.ones(64))))
    assert plane.busy(JOB) == [{"slot": FIRST + 1, "version": 0, "waits_for": [0, 2]}]


def test_slots_are_clean_when_another_job_gets_them(plane: DataPlane) -> None:
    delivered(plane, (PEERS[0], frame(0, 77 * np.ones(64))))
    plane.close(JOB)
    assert delivered(plane, (PEERS[1], frame(0, np.ones(64)))) == []
    assert plane.counts()["dropped_unknown_source"] == 1
    plane.open(JOB, PEERS[:1], FIRST, SLOTS)
    assert delivered(plane, (PEERS[0], frame(0, np.ones(64)))) == [(0, frame(0, np.ones(64)))]


def test_losses_on_purpose_have_the_chance_that_was_asked_for_and_are_counted() -> None:
    plane = DataPlane(8, 64, drop_in=0.3, drop_out=0.2, seed=5)
    plane.open(JOB, PEERS[:1], FIRST, SLOTS)
    left = sum(len(delivered(plane, (PEERS[0], GOOD))) for _ in range(4000))
    counts = plane.counts()
    assert abs(counts["dropped_injected_in"] / 4000 - 0.3) < 0.04
    answered = counts["complete"] + counts["answered"]
    assert left + counts["dropped_injected_out"] == answered == 4000 - counts["dropped_injected_in"]
    assert abs(counts["dropped_injected_out"] / answered - 0.2) < 0.04


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: DataPlane(0, 64), "1 to 16384 slots, got 0"),
        (lambda: DataPlane(1 << 15, 64), "1 to 16384 slots, got 32768"),
        (lambda: DataPlane(8, 128), "64 or 256 elements, got 128"),
        (lambda: DataPlane(8, 64, drop_in=1.0), r"less than 1, got 1\.0"),
        (lambda: DataPlane(8, 64, drop_out=float("nan")), "less than 1, got nan"),
        (lambda: DataPlane(8, 64).open(0, [PEERS[0], PEERS[0]], 0, 4), "same address and port"),
    ],
)
def test_what_makes_no_sense_is_refused(build: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        build()
