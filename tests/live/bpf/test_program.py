"""The program in the kernel, run on packets of ours, against the user-space switch and against the rule itself."""

import random
import struct

import numpy as np
import pytest
from slow_pool import Pool
from udp_frames import PORT, Frame, packet, unpack

from switch_model.bpf.attachment import attach, detach
from switch_model.bpf.data_plane import KernelPlane
from switch_model.bpf.ports import chosen_ports
from switch_model.bpf.program import build
from switch_model.live.data_plane import DataPlane
from switch_model.live.datagrams import ARRIVED, address_key
from switch_model.live.frames import LEAD, new_rows
from switch_model.systems.switchml import switchml_udp

pytestmark = [pytest.mark.needs_kernel("bpf")]

SWITCH = ("127.10.0.254", PORT)
N_SLOTS, POOL = 4, 12
UNSPEC, SHOT = -1, 2
NUMBERS = random.Random(4)


@pytest.fixture(scope="module", params=[64, 256])
def loaded(request, tmp_path_factory, cable):
    """A program that no packet comes to: we run it, and its replies go to the loopback device."""
    target = build(switchml_udp(request.param, pool_size=POOL), tmp_path_factory.mktemp("bpf"))
    attachment = attach(target, chosen_ports(cable[:1], request.param))
    yield attachment.program, request.param
    detach(attachment)


class Twins:
    """The same job on the kernel's switch and on the user-space one."""

    def __init__(self, loaded, n_workers, job=3, first_slot=5, **losses):
        program, self.k = loaded
        self.peers = [(f"127.10.0.{1 + w}", 4000 + w) for w in range(n_workers)]
        self.job, self.first_slot = job, first_slot
        self.kernel = KernelPlane(program, POOL, self.k, *SWITCH, **losses)
        self.begin = self.kernel.counts()
        self.user = DataPlane(POOL, self.k)
        for plane in (self.kernel, self.user):
            plane.open(job, self.peers, first_slot, N_SLOTS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kernel.close(self.job)
        self.kernel.__exit__(None, None, None)

    def to_kernel(self, payload, peer, switch=SWITCH):
        return self.kernel.program.run(packet(payload, peer, switch, udp_checksum=0xBEEF))

    def to_user(self, payload, peer):
        """Return the replies as (payload, rank)."""
        words = new_rows(1, self.k)
        row = words.view(np.uint8)[0]
        arrived = np.zeros(1, ARRIVED)
        arrived[0] = (address_key(*peer), 0 if len(payload) == len(row) - LEAD else -1, len(payload), False)
        if arrived[0]["row"] == 0:
            row[LEAD:] = np.frombuffer(payload, np.uint8)
        replies = self.user.handle(words, arrived)
        self.user.sent(len(replies), len(replies))
        return [(row[LEAD:].tobytes(), self.user.addresses[to]["port"] - 4000) for to in replies["to"]]

    def counted(self):
        return {name: n - self.begin[name] for name, n in self.kernel.counts().items()}

    def same(self, payload, peer):
        """Give a packet to both; return what went out, which must be the same."""
        replies = self.to_user(payload, peer)
        verdict, left = self.to_kernel(payload, peer)
        assert verdict == SHOT
        assert self.counted() == self.user.counts()
        assert self.kernel.busy(self.job) == self.user.busy(self.job)
        if replies:
            sums, last = replies[-1]
            assert left[42:] == sums
            assert left == packet(sums, SWITCH, self.peers[last], macs=(b"\4" * 6, b"\2" * 6), ttl=64)
        return replies

    def frame(self, worker, place, **other):
        """The packet that a worker sends at this place of the sequence."""
        values = random.Random(f"{worker} {place}").choices(range(-(2**31), 2**31), k=self.k)
        slot, version = self.first_slot + place % N_SLOTS, place // N_SLOTS % 2
        facts = {"job": self.job, "tsi": place, "slot": slot, "version": version,
                 "exponents": ((worker * 7 + place) % 256 - 128, -worker), "values": tuple(values)}  # fmt: skip
        return Frame(**{**facts, **other})


def wrapped(*rows):
    sums = np.array(rows, np.int64).sum(0)
    return tuple(((sums + 2**31) % 2**32 - 2**31).tolist())


@pytest.mark.parametrize("n_workers", [1, 2, 5, 32])
def test_a_round_gives_the_wrapped_sum_and_the_largest_exponents(loaded, n_workers):
    with Twins(loaded, n_workers) as twins:
        frames = [twins.frame(w, 0) for w in range(n_workers)]
        replies = [twins.same(frame.pack(), twins.peers[w]) for w, frame in enumerate(frames)]
        assert all(r == [] for r in replies[:-1])
        assert [rank for _, rank in replies[-1]] == list(range(n_workers))
        result = unpack(replies[-1][0][0])
        assert result.values == wrapped(*(f.values for f in frames))
        assert result.exponents == (max(f.exponents[0] for f in frames), 0)


def test_it_decides_as_the_user_space_switch_on_any_sequence_of_packets(loaded):
    """Workers at random, in order, late, twice, from the future and from elsewhere."""
    seed = NUMBERS.randrange(2**32)
    chance = random.Random(seed)
    with Twins(loaded, 3) as twins:
        at = [[0] * N_SLOTS for _ in range(3)]  # the round of each worker's slot
        for _ in range(1500):
            worker, slot = chance.randrange(3), chance.randrange(N_SLOTS)
            lowest = min(rounds[slot] for rounds in at)
            if at[worker][slot] > lowest and chance.random() < 0.5:
                continue
            place = slot + N_SLOTS * at[worker][slot]
            what = chance.random()
            frame, peer = twins.frame(worker, place), twins.peers[worker]
            if what < 0.6:
                if at[worker][slot] == lowest:
                    at[worker][slot] += 1
            elif what < 0.9:
                frame = twins.frame(worker, max(0, place + N_SLOTS * chance.choice([-3, -2, -1, 0, 1, 2])))
            elif what < 0.95:
                frame = twins.frame(worker, place, **{chance.choice(["job", "tsi", "slot"]): chance.randrange(256)})
            else:
                peer = chance.choice([("127.10.0.99", 4000), (peer[0], 1), ("127.10.0.1", 4001)])
            twins.same(frame.pack(), peer)
        counts = twins.counted()
        assert min(counts[name] for name in ("first", "add", "duplicate", "complete", "answered", "dropped_wrong_job",
                                             "dropped_out_of_sequence", "dropped_no_such_slot")) > 10, seed  # fmt: skip


def test_it_answers_a_late_worker_alone_and_with_what_the_pool_model_says(loaded):
    k = loaded[1]
    pool = Pool(switchml_udp(k, pool_size=N_SLOTS), 2)
    story = [(0, 0), (0, 0), (1, 0), (1, 0), (0, 4), (1, 0), (0, 4), (1, 4), (0, 4), (1, 8), (0, 8), (1, 8)]
    with Twins(loaded, 2, first_slot=0) as twins:
        for worker, place in story:
            frame = twins.frame(worker, place)
            replies = twins.same(frame.pack(), twins.peers[worker])
            expected = pool.contribution(frame.slot, frame.version, worker, np.array(frame.values, np.int32),
                                         frame.exponents[0])  # fmt: skip
            assert [(rank, unpack(sums).values, unpack(sums).exponents[0]) for sums, rank in replies] == [
                (p.destination, tuple(p.values.tolist()), p.exponent) for p in expected
            ]


def test_a_sequence_that_restarts_is_refused_not_added(loaded):
    with Twins(loaded, 2) as twins:
        for place in range(3 * N_SLOTS):
            for worker in range(2):
                twins.same(twins.frame(worker, place).pack(), twins.peers[worker])
        assert twins.same(twins.frame(0, 0).pack(), twins.peers[0]) == []
        assert twins.counted()["dropped_out_of_sequence"] == 1


@pytest.mark.parametrize("cut", [-4, -1, 4])
def test_lengths_that_are_wrong_are_counted(loaded, cut):
    with Twins(loaded, 2) as twins:
        data = twins.frame(0, 0).pack()
        data = data[:cut] if cut < 0 else data + bytes(cut)
        twins.same(data, twins.peers[0])
        assert twins.counted()["dropped_wrong_length"] == 1


@pytest.mark.parametrize(("at", "bytes_"), [(16, b"\0\x20"), (38, b"\0\x08"), (20, b"\x20\0")])
def test_lengths_that_contradict_the_packet_and_fragments_are_counted(loaded, at, bytes_):
    with Twins(loaded, 1) as twins:
        whole = packet(twins.frame(0, 0).pack(), twins.peers[0], SWITCH)
        assert twins.kernel.program.run(whole[:at] + bytes_ + whole[at + 2 :])[0] == SHOT
        assert twins.counted()["dropped_wrong_length"] == 1
        assert twins.counted()["first"] == 0


def test_headers_of_results_are_right_for_any_address(loaded):
    """Among them those for which the sum carries twice."""
    with Twins(loaded, 1) as twins:
        twins.kernel.close(3)
        header = packet(bytes(10 + 4 * twins.k), SWITCH, ("127.10.0.0", 4000), ttl=64)[14:34]
        rest = sum(struct.unpack("<5H2x4H", header))  # as words of this machine, which is where carries happen
        swapped = [(rest + (n >> 8 | (n & 255) << 8), n) for n in range(1 << 16)]
        twice = [n for total, n in swapped if (total & 0xFFFF) + (total >> 16) > 0xFFFF]
        assert twice
        numbers = [*range(0, 1 << 16, 997), *twice]
        for number in numbers:
            peer = (f"127.10.{number >> 8}.{number & 255}", 4000)
            twins.kernel.open(3, [peer], twins.first_slot, N_SLOTS)
            data = twins.frame(0, 0).pack()
            _, left = twins.to_kernel(data, peer)
            assert left == packet(data, SWITCH, peer, macs=(b"\4" * 6, b"\2" * 6), ttl=64), number
            twins.kernel.close(3)
        twins.kernel.open(3, twins.peers, twins.first_slot, N_SLOTS)


@pytest.mark.parametrize("kind", [0x10, 0x21, 0x12, 0x00, 0xFF])
def test_types_that_are_wrong_are_counted(loaded, kind):
    with Twins(loaded, 2) as twins:
        twins.same(twins.frame(0, 0).pack(kind), twins.peers[0])
        assert twins.counted()["dropped_wrong_type"] == 1


def test_what_is_not_for_the_switch_is_left_alone(loaded):
    with Twins(loaded, 2) as twins:
        data = twins.frame(0, 0).pack()
        for switch in [("127.10.0.253", PORT), (SWITCH[0], PORT + 1)]:
            verdict, left = twins.to_kernel(data, twins.peers[0], switch)
            assert verdict == UNSPEC
            assert left == packet(data, twins.peers[0], switch, udp_checksum=0xBEEF)
        whole = packet(data, twins.peers[0], SWITCH)
        for at, byte in [(12, 0x86), (14, 0x46), (14, 0x65), (20, 0x20 | 0x01), (23, 6)]:
            other = whole[:at] + bytes([byte]) + whole[at + 1 :]
            assert twins.kernel.program.run(other) == (UNSPEC, other), f"byte {at}"
        assert twins.counted()["packets_in"] == 0


def test_random_bytes_change_no_slot(loaded):
    chance = random.Random(11)
    with Twins(loaded, 2) as twins:
        for _ in range(700):
            size = chance.choice([0, 1, 9, 10, 10 + 4 * twins.k, 10 + 4 * twins.k, 2000])
            twins.same(chance.randbytes(size), chance.choice(twins.peers))
        assert twins.kernel.busy(3) == []
        assert twins.counted()["first"] == 0


def test_two_jobs_do_not_touch_each_other(loaded):
    with Twins(loaded, 2, job=3, first_slot=0) as twins:
        others = [("127.10.1.1", 4000), ("127.10.1.2", 4000)]
        twins.kernel.open(200, others, N_SLOTS, N_SLOTS)
        twins.kernel.program.run(packet(twins.frame(0, 0).pack(), twins.peers[0], SWITCH))
        foreign = twins.frame(0, 0, job=200, slot=N_SLOTS).pack()
        twins.kernel.program.run(packet(foreign, others[0], SWITCH))
        stolen = twins.frame(0, 0, job=200, slot=0).pack()  # another job's slot
        twins.kernel.program.run(packet(stolen, others[0], SWITCH))
        assert twins.counted()["dropped_no_such_slot"] == 1
        assert [row["slot"] for row in twins.kernel.busy(3)] == [0]
        assert [row["slot"] for row in twins.kernel.busy(200)] == [N_SLOTS]
        twins.kernel.close(200)
        twins.kernel.program.run(packet(foreign, others[0], SWITCH))
        assert twins.counted()["dropped_unknown_source"] == 1


def test_losses_on_purpose_are_as_frequent_as_asked_for(loaded):
    with Twins(loaded, 1, drop_in=0.25, drop_out=0.5) as twins:
        data = twins.frame(0, 0).pack()
        for _ in range(4000):
            twins.to_kernel(data, twins.peers[0])
        counts = twins.counted()
        answers = counts["complete"] + counts["answered"]
        assert counts["packets_in"] == 4000 == counts["dropped_injected_in"] + answers
        assert counts["dropped_injected_in"] == pytest.approx(1000, abs=150)  # 5 standard deviations are 137
        assert counts["dropped_injected_out"] + counts["packets_out"] == answers
        assert counts["dropped_injected_out"] == pytest.approx(answers / 2, abs=150)
