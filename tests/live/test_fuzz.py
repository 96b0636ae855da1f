"""A hundred thousand wrong datagrams while workers reduce: no crash, no wrong sum, and every one is counted."""

import socket
import struct
import time
from typing import Any

import fuzzing
import numpy as np
import pytest
from live_processes import SwitchProcess, WorkerProcess

from switch_model.live import SwitchGroup
from switch_model.live.frames import frame_bytes
from switch_model.live.session import Session
from switch_model.live.sums import drawn_tensor, worst_error

N = 30_000
SEED = 10 + fuzzing.SEED


def reduce_while_attacked(rank: int, n_workers: int, port: int, until_in: int) -> Any:
    """Reduce until the switch has seen enough; rank 0 also sends frames with bad fields from its own, right port."""
    rng = np.random.default_rng(rank)
    with SwitchGroup("attacked", rank, n_workers, port=port) as group:
        wrong = 0
        attacks = bad_frames(rng, group, 200) if rank == 0 else []
        for number in range(10_000):
            total = group.all_reduce(drawn_tensor(number, rank, 9000, "int32"))
            wrong += int(worst_error(total, number, n_workers, 64))
            for attack in attacks:
                group._socket.send(attack)
            stop = np.array([rank == 0 and packets_in(port) >= until_in], np.int32)
            if group.all_reduce(stop)[0]:
                return wrong, len(attacks) * (number + 1)
    return "the switch saw too little"


def packets_in(port: int) -> int:
    session = Session("127.0.0.1", port)
    session.say({"do": "status"})
    counters = session.answer("counters", 10)["counters"]
    session.close()
    return int(counters["packets_in"])


def bad_frames(rng: np.random.Generator, group: SwitchGroup, n: int) -> list[bytes]:
    """Frames of the right length and source, each with one field that cannot be right now."""
    lease, frames = group.lease, []
    for kind in rng.integers(0, 5, n):
        values = rng.bytes(4 * 64)
        first, job, slot, version = 0x11, lease.job_number, lease.first_slot, int(rng.integers(2))
        tsi = (group._sequence + int(rng.integers(2**30, 2**31))) % 2**32  # far from what comes next
        if kind == 0:
            first = int(rng.choice([b for b in range(256) if b != 0x11]))
        elif kind == 1:
            job = int(rng.choice([b for b in range(256) if b != job]))
        elif kind == 2:
            slot = int(rng.integers(lease.first_slot + lease.n_slots, 1 << 14))
        elif kind == 3:
            values = values[: int(rng.integers(0, 4 * 64))]
        index = version << 15 | slot
        frames.append(struct.pack(">BBIHbb", first, job, tsi, index, *rng.integers(-128, 128, 2)) + values)
    return frames


def attack(port: int, worker_frames: int) -> dict[str, int]:
    """Send random datagrams, and mutated frames, from a port that belongs to nobody."""
    rng, sent = np.random.default_rng(SEED), {"long": 0, "frame": 0}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as foreign:
        foreign.connect(("127.0.0.1", port))
        for number in range(worker_frames):
            if number % 2:
                content = rng.bytes(int(rng.integers(0, 1500)))
            else:
                valid = bytearray(struct.pack(">BBIHbb", 0x11, 0, number, number % 128, 0, 0) + bytes(256))
                for at in rng.integers(0, len(valid), int(rng.integers(1, 6))):
                    valid[at] = rng.integers(256)
                content = bytes(valid)
            foreign.send(content)
            sent["frame" if len(content) == frame_bytes(64) else "long"] += 1
            if number % 256 == 0:
                time.sleep(0.001)  # so that the workers get a word in
    return sent


@pytest.mark.slow
def test_wrong_datagrams_are_counted_and_dropped_while_sums_stay_right() -> None:
    with SwitchProcess("--worker-timeout", "30s") as switch:
        workers = [WorkerProcess(reduce_while_attacked, rank, 2, switch.port, N) for rank in range(2)]
        time.sleep(0.5)
        sent = attack(switch.port, N)
        while packets_in(switch.port) < N:  # what the socket's buffer had no room for was never seen
            more = attack(switch.port, 2000)
            sent = {name: sent[name] + more[name] for name in sent}
        results = [worker.result() for worker in workers]
        counts = switch.counts()
        assert switch.process.poll() is None
    assert [wrong for wrong, _ in results] == [0, 0], results
    bad = counts["dropped_wrong_length"] + counts["dropped_unknown_source"]
    assert 0.2 * N < bad <= sum(sent.values()) + results[0][1]
    for cause in ("wrong_length", "unknown_source", "wrong_type", "wrong_job", "no_such_slot", "out_of_sequence"):
        assert counts[f"dropped_{cause}"] > 0, cause
    incoming = [name for name in counts if name.startswith("dropped_") and name not in OUTGOING]
    handled = sum(counts[name] for name in ("first", "add", "duplicate", *incoming))
    assert counts["packets_in"] == handled >= N


OUTGOING = ("dropped_injected_out", "dropped_not_sent")


@pytest.mark.slow
def test_the_control_door_survives_what_is_no_message() -> None:
    rng = np.random.default_rng(SEED)
    with SwitchProcess("--worker-timeout", "1s") as switch:
        lines = [b"\xff\x00{[", b"{" * 5000, b"null\n", b'{"do":"join"}\n', b'{"do":"tensor"}\n', b"\n" * 99, b""]
        for content in (*lines, *(rng.bytes(int(rng.integers(1, 3000))) + b"\n" for _ in range(200))):
            with socket.create_connection(("127.0.0.1", switch.port), 10) as peer:
                peer.sendall(content)
        silent = socket.create_connection(("127.0.0.1", switch.port), 10)
        with silent:
            assert silent.recv(4096)
            assert silent.recv(4096) == b""  # ended after a second without a word
        assert switch.status()["jobs"] == []
