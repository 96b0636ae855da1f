"""A worker of a static job, as plain as it can be: NumPy, one UDP socket, a window of slots, a timer for each.

Usage: window_worker.py JSON, with rank, n_workers, host, switch, job, first_slot, n_slots, elements, size, tensors and
rto. It prints `ready`, waits for a line, reduces its tensors, and prints what happened as JSON. It shares no code with
commsim.
"""

import contextlib
import json
import select
import socket
import sys
import time

import numpy as np

PORT = 0xBEE0


def tensor(rank, number, size):
    return np.random.default_rng([rank, number]).integers(-(2**31), 2**31, size, dtype=np.int32)


def frames_of(values, options, sequence):
    """All frames of a tensor, uint8[P, 10 + 4k]; the last is filled up with zeros."""
    k, s = options["elements"], options["n_slots"]
    n = -(-len(values) // k)
    frames = np.zeros((n, 10 + 4 * k), np.uint8)
    places = sequence + np.arange(n)
    frames[:, 0], frames[:, 1] = 0x11 if k == 64 else 0x13, options["job"]
    frames[:, 2:6] = (places % 2**32).astype(">u4").view(np.uint8).reshape(n, 4)
    index = (options["first_slot"] + places % s) | (places // s % 2) << 15
    frames[:, 6:8] = index.astype(">u2").view(np.uint8).reshape(n, 2)
    padded = np.zeros(n * k, np.int32)
    padded[: len(values)] = values
    frames[:, 10:] = padded.astype(">i4").view(np.uint8).reshape(n, 4 * k)
    return frames


class Worker:
    def __init__(self, options):
        self.o, self.sequence, self.repeated, self.strange = options, 0, 0, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind((options["host"], 4000))
        self.socket.connect((options["switch"], PORT))
        self.socket.setblocking(False)
        self.poll = select.poll()
        self.poll.register(self.socket, select.POLLIN)

    def all_reduce(self, values):
        s, rto = self.o["n_slots"], self.o["rto"]
        frames = frames_of(values, self.o, self.sequence)
        n, done = len(frames), 0
        out = np.zeros_like(frames)
        waiting, sent_at = {}, {}  # slot of the window -> packet, and when it was sent last
        for packet in range(min(s, n)):
            self.send(frames, packet, waiting, sent_at)
        buffer, looked = bytearray(65536), time.monotonic()
        while done < n:
            try:
                size = self.socket.recv_into(buffer)
            except (BlockingIOError, ConnectionRefusedError):
                self.poll.poll(max(1, 1000 * rto / 4))
                size = 0
            if size:
                packet = (int.from_bytes(buffer[2:6], "big") - self.sequence) % 2**32
                slot = (self.sequence + packet) % s
                ours = size == frames.shape[1] and waiting.get(slot) == packet
                if not ours or buffer[6:8] != frames[packet, 6:8].tobytes():
                    self.strange += 1
                else:
                    out[packet] = np.frombuffer(buffer, np.uint8, size)
                    done += 1
                    del waiting[slot]
                    if packet + s < n:
                        self.send(frames, packet + s, waiting, sent_at)
            now = time.monotonic()
            if now - looked > rto / 4:
                looked = now
                for slot, packet in list(waiting.items()):
                    if now - sent_at[slot] > rto:
                        self.repeated += 1
                        self.send(frames, packet, waiting, sent_at)
        self.sequence += n
        return np.ascontiguousarray(out[:, 10:]).view(">i4").astype(np.int32).reshape(-1)[: len(values)]

    def send(self, frames, packet, waiting, sent_at):
        slot = (self.sequence + packet) % self.o["n_slots"]
        waiting[slot], sent_at[slot] = packet, time.monotonic()
        with contextlib.suppress(BlockingIOError, ConnectionRefusedError):  # lost; the timer sees to it
            self.socket.send(frames[packet].data)


def main():
    o = json.loads(sys.argv[1])
    worker = Worker(o)
    exact, seconds = True, []
    print("ready", flush=True)
    for number in range(o["tensors"]):
        own = tensor(o["rank"], number, o["size"])
        sys.stdin.readline()  # all begin together
        begin = time.monotonic()
        result = worker.all_reduce(own)
        seconds.append(time.monotonic() - begin)
        wide = sum(tensor(rank, number, o["size"]).astype(np.int64) for rank in range(o["n_workers"]))
        exact &= bool(np.array_equal(result, wide.astype(np.int32)))
        print("done", flush=True)
    sys.stdin.readline()  # whoever is late may still need us: nobody answers for a closed socket
    worker.socket.close()
    print(json.dumps({"exact": exact, "seconds": seconds, "repeated": worker.repeated, "strange": worker.strange}))


if __name__ == "__main__":
    main()
