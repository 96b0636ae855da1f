"""Secrets of jobs: lines and datagrams that another has written, changed or recorded are not taken."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from lossy_link import LossyLink

from commsim.core.errors import BackendError, InputError
from switch_model.live import LiveSwitch, Secrets, SwitchGroup, SwitchOptions, ask_status
from switch_model.live.authentication import LineSeal, job_key
from switch_model.live.frame_fields_kernel import whole_tsi
from switch_model.live.session import Session

SECRET, HELLO, ANSWER = "correct horse battery", b'{"nonce":"1"}\n', b'{"nonce":"2"}\n'


def seals(secret: str = SECRET, answer: bytes = ANSWER) -> tuple[LineSeal, LineSeal]:
    return LineSeal(SECRET, HELLO, ANSWER, is_switch=True), LineSeal(secret, HELLO, answer, is_switch=False)


def test_a_line_is_opened_by_the_peer_once_in_order_and_unchanged() -> None:
    switch, worker = seals()
    first, second = worker.sealed(b"join\n").strip(), worker.sealed(b"leave\n").strip()
    with pytest.raises(InputError, match="wrong tag"):
        switch.opened(second)
    assert switch.opened(first) == b"join"
    for line in (first, second.replace(b"leave", b"learn"), b"", b"leave", switch.sealed(b"leave").strip()):
        with pytest.raises(InputError, match="wrong tag"):
            switch.opened(line)
    assert switch.opened(second) == b"leave"


def test_another_secret_or_the_recorded_answer_to_another_nonce_open_nothing() -> None:
    for switch, worker in (seals("another secret, long"), seals(answer=b'{"nonce":"3"}')):
        with pytest.raises(InputError, match="wrong tag"):
            switch.opened(worker.sealed(b"join"))


def test_secrets_are_of_jobs_or_of_all_and_never_short_or_shown() -> None:
    secrets = Secrets(SECRET, {"mine": "x" * 16})
    assert (secrets.of("mine"), secrets.of("theirs")) == ("x" * 16, SECRET)
    assert SECRET not in repr(secrets)
    for bad in ({"common": "short"}, {}, {"common": SECRET, "of_job": {"a": ""}}):
        with pytest.raises(InputError, match="at least 16 characters"):
            Secrets(**bad)  # type: ignore[arg-type]
    assert job_key(SECRET, "1") != job_key(SECRET, "2") != job_key("x" * 16, "2")


@pytest.mark.parametrize("near", [0, -3, 5, 2**32 - 2, 2**32 + 7, 2**40 + 2**31])
def test_a_packet_number_is_completed_to_the_nearest(near: int) -> None:
    for ahead in (0, 1, -1, 2**31 - 1, -(2**31)):
        assert whole_tsi((near + ahead) % 2**32, near) == near + ahead


def test_sums_of_tagged_datagrams_are_exact_on_a_bad_link_and_past_the_end_of_packet_numbers() -> None:
    rng = np.random.default_rng(3)
    link = LossyLink(3, 4, rng, 0.2, 0.2, key=b"k" * 32, begin=2**32 - 2**32 % 8 - 8)
    for _ in range(3):
        tensors = [rng.integers(-(2**31), 2**31, 700, np.int32) for _ in range(3)]
        wanted = np.sum([t.view(np.uint32) for t in tensors], axis=0, dtype=np.uint32).view(np.int32)
        assert all((got == wanted).all() for got in link.all_reduce(tensors))
    assert link.sequence > 2**32
    assert link.plane.counts()["dropped_wrong_tag"] == 0


def test_no_bit_of_a_datagram_can_be_changed_and_none_is_taken_again_later() -> None:
    link = LossyLink(2, 1, np.random.default_rng(0), 0, 0, key=b"k" * 32)
    recorded: list[tuple[int, np.ndarray]] = []
    deliver = link._deliver_up
    link._deliver_up = lambda: (recorded.extend(link.up), deliver())  # type: ignore[assignment,method-assign]
    link.all_reduce([np.ones(64, np.int32)] * 2)
    before, wrong = link.plane.counts(), 0
    for rank, frame in recorded[-2:]:  # the slot answers copies of these
        for bit in range(8 * 6, 8 * frame.nbytes):
            words, arrived = link._batch([(rank, frame)], link.keys)
            words.view(np.uint8)[0, bit // 8] ^= 1 << bit % 8
            link.plane.handle(words, arrived)
            wrong += 1

    def forged() -> int:
        return link.plane.counts()["dropped_wrong_tag"] - before["dropped_wrong_tag"]

    assert forged() == wrong > 4000
    for rank, frame in recorded[-2:]:  # of one worker, in the name of the other
        link.plane.handle(*link._batch([(1 - rank, frame)], link.keys))
    assert forged() == wrong + 2
    link.plane._rounds["tsi"] += 2**32  # the same 32 bits travel again: only the tag can tell
    for rank, frame in recorded[-2:]:
        link.plane.handle(*link._batch([(rank, frame)], link.keys))
    assert forged() == wrong + 4


@pytest.fixture
def switch() -> Iterator[LiveSwitch]:
    yield from serving(Secrets(SECRET))


@pytest.fixture
def open_switch() -> Iterator[LiveSwitch]:
    yield from serving(None)


def serving(secrets: Secrets | None) -> Iterator[LiveSwitch]:
    over = threading.Event()
    with LiveSwitch(SwitchOptions(port=0, secrets=secrets)) as switch:
        thread = threading.Thread(target=lambda: [switch.step(0.02) for _ in iter(over.is_set, True)])
        thread.start()
        yield switch
        over.set()
        thread.join()


@pytest.mark.parametrize("mode", ["segments", "messages", "single"])
def test_workers_with_the_secret_reduce_and_all_others_are_refused(switch: LiveSwitch, mode: str) -> None:
    port = switch.address[1]

    def reduce(rank: int) -> int:
        with SwitchGroup("a", rank, 2, port=port, secret=SECRET, mode=mode) as group:
            return int(group.all_reduce(np.full(5000, rank + 1, np.int32)).sum())

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(reduce, range(2))) == [15000, 15000]
    assert ask_status("127.0.0.1", port, secret=SECRET)["counters"]["dropped_wrong_tag"] == 0
    with pytest.raises(BackendError, match="only workers with its secret: --secret-file"):
        SwitchGroup("a", 0, 1, port=port)
    with pytest.raises(BackendError, match="do not have the same secret"):
        SwitchGroup("a", 0, 1, port=port, secret="another secret, long")
    with socket.create_connection(("127.0.0.1", port)) as peer:
        assert b"nonce" in peer.recv(4096)
        peer.sendall(b'{"do":"status"}\n')
        assert b"only workers that have the job's secret" in peer.recv(4096)


def test_a_worker_with_a_secret_does_not_talk_to_a_switch_without(open_switch: LiveSwitch) -> None:
    with pytest.raises(BackendError, match="has no secret, so that it cannot prove that it is the right one"):
        SwitchGroup("a", 0, 1, port=open_switch.address[1], secret=SECRET)


def test_a_job_is_joined_with_its_own_secret_only() -> None:
    for switch in serving(Secrets(of_job={"a": SECRET, "b": "the secret of b ..."})):
        port = switch.address[1]
        with pytest.raises(BackendError, match="do not have the same secret"):
            SwitchGroup("b", 0, 1, port=port, secret=SECRET)
        with pytest.raises(BackendError, match=r"its answer, without a tag: .*job 'c' has no secret on this switch"):
            SwitchGroup("c", 0, 1, port=port, secret=SECRET)
        SwitchGroup("a", 0, 1, port=port, secret=SECRET).close()
        session = Session("127.0.0.1", port, secret=SECRET, job="a")
        session.say({"do": "join", "job": "b", "n_workers": 1, "rank": 0, "udp_port": 9})
        with pytest.raises(BackendError, match="has the secret of job 'a', not of another one"):
            session.answer("joined", 5)
        session.close()


@pytest.mark.parametrize("secret", ["", SECRET])
def test_datagrams_that_are_no_result_do_not_keep_a_worker_waiting(secret: str) -> None:
    """A spoofer in the switch's name; before, any datagram put the stall timeout off."""
    over = threading.Event()

    def spoof(switch: LiveSwitch) -> None:
        rng = np.random.default_rng(1)
        while not over.wait(0.01):
            for address in switch.plane.addresses:
                content = bytes([0x11, rng.integers(256)]) + rng.bytes(264 + 16 * bool(secret))
                switch._data_socket.sendto(content, ("127.0.0.1", int(address["port"])))

    for switch in serving(Secrets(secret) if secret else None):
        options = {"port": switch.address[1], "stall_timeout": 0.4, "secret": secret}
        with ThreadPoolExecutor(2) as pool:
            absent = pool.submit(SwitchGroup, "a", 1, 2, **options)
            group = SwitchGroup("a", 0, 2, **options)
            spoofer = threading.Thread(target=spoof, args=[switch])
            spoofer.start()
            with pytest.raises(BackendError, match=r"no result came for 0\.4 s"):
                group.all_reduce(np.ones(1000, np.int32))
            over.set()
            spoofer.join()
            assert group.traffic.strange > 10
            absent.result().close()
