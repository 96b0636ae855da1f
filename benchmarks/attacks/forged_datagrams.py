"""Attack a live switch and its workers with forged datagrams, and count wrong sums; packets per second with a secret.

``python -m benchmarks.attacks.forged_datagrams [--forged N]`` needs root. It reads all packets of two workers on
loopback, and sends them again from a raw socket, in the sender's name, with other values, exponents, numbers, tags and
lengths, in both directions. Without a secret sums become wrong; with one, each must be right.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from switch_model.live import ask_status

SECRET = "0123456789abcdef" * 2
N_SLOTS = 128  # of a job, unless asked for
_HEAD = 28  # bytes of IPv4 and UDP
LIMIT_S = 300


class Forger(threading.Thread):
    """Sends mutated copies of what it overhears, until told to end.

    Parameters
    ----------
    port : int
        Of the switch.
    seed : int
        Of the mutations.

    Attributes
    ----------
    sent : int
        Forged datagrams so far.
    """

    def __init__(self, port: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.sent, self.over, self._port = 0, threading.Event(), port
        self._rng = np.random.default_rng(seed)
        self._ear = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self._ear.bind(("lo", 0x0800))
        self._ear.settimeout(0.1)
        self._mouth = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def run(self) -> None:
        """Listen and forge."""
        while not self.over.is_set():
            try:
                packet = self._ear.recv(1 << 16)
            except TimeoutError:
                continue
            ports = struct.unpack(">HH", packet[20:24]) if packet[9] == 17 else ()
            if self._port in ports and len(packet) > _HEAD + 10 and packet[4:6] != b"\xbe\xef":
                for _ in range(4):
                    self._forge(packet)
        self._ear.close()
        self._mouth.close()

    def _forge(self, packet: bytes) -> None:
        frame = bytearray(packet[_HEAD : _HEAD + 1500])
        kind = int(self._rng.integers(5))
        if kind == 0:  # other values, with the tag of the right ones
            frame[10:266] = self._rng.bytes(256)
        elif kind == 1:  # one bit
            frame[int(self._rng.integers(len(frame)))] ^= 1 << int(self._rng.integers(8))
        elif kind == 2:  # without or with another tag
            frame[266:] = self._rng.bytes(int(self._rng.integers(2)) * 16)
        elif kind == 3:  # a later packet on the other version of the slot
            ahead = N_SLOTS if self._rng.integers(2) else int(self._rng.integers(1, 600))
            frame[2:6] = ((int.from_bytes(frame[2:6], "big") + ahead) % 2**32).to_bytes(4, "big")
            frame[6] ^= 0x80
        # kind 4: the same once more
        length = len(frame) + 8
        head = bytearray(packet[:_HEAD])
        head[2:4], head[4:6] = (length + 20).to_bytes(2, "big"), b"\xbe\xef"  # our mark
        head[24:26], head[26:28] = length.to_bytes(2, "big"), b"\0\0"
        self._mouth.sendto(bytes(head) + bytes(frame), (socket.inet_ntoa(packet[16:20]), 0))
        self.sent += 1


def attacked(forged: int, secret: bool, seed: int = 1) -> dict[str, Any]:
    """Let two workers reduce while they are attacked; return what became of the sums.

    Parameters
    ----------
    forged : int
        Datagrams that the forger sends at least.
    secret : bool
        Whether switch and workers have one.
    seed : int
        Of the forger.
    """
    with tempfile.TemporaryDirectory() as name:
        # Segments would be overheard joined, as one packet of many frames.
        flags = [*_secret_flags(Path(name), secret), "--datagrams", "messages"]
        told = {"wrong": 0, "sums": 0, "failed": 0}
        switch, port = _serve(flags)
        forger = Forger(port, seed)
        forger.start()
        try:
            end = time.monotonic() + LIMIT_S
            while forger.sent < forged and time.monotonic() < end:
                rows, failed = _reduce(port, Path(name), [*flags, "--size", "256KiB", "--iterations", "50", "--check"])
                told["sums"] += len(rows)
                told["wrong"] += sum(row["right"] is False for row in rows)
                told["failed"] += failed
        finally:
            forger.over.set()
            forger.join()
            counters = ask_status("127.0.0.1", port, secret=SECRET if secret else "")["counters"]
            switch.terminate()
            switch.communicate()
    return {"secret": secret, "forged": forger.sent, **told,
            "refused_by_switch": {k: n for k, n in counters.items() if k.startswith("dropped") and n}}  # fmt: skip


def rate(secret: bool, mode: str, elements: int) -> dict[str, float]:
    """Packets and elements per second of a calm job of two workers; the median of 5 sums of 16 MiB."""
    with tempfile.TemporaryDirectory() as name:
        flags = _secret_flags(Path(name), secret)
        switch, port = _serve([*flags, "--elements-per-packet", str(elements), "--datagrams", mode])
        try:
            before = ask_status("127.0.0.1", port, secret=SECRET if secret else "")
            more = ["--size", "16MiB", "--iterations", "6", "--slots", "512", "--datagrams", mode]
            rows, _ = _reduce(port, Path(name), [*flags, *more])
            after = ask_status("127.0.0.1", port, secret=SECRET if secret else "")
        finally:
            switch.terminate()
            switch.communicate()
    took = float(np.median([row["time_s"] for row in rows if row["tensor"]]))
    n_in = (after["counters"]["packets_in"] - before["counters"]["packets_in"]) / 6
    return {"elements": elements, "secret": secret, "packets_in_per_s": n_in / took,
            "packets_in_per_cpu_s": 6 * n_in / (after["cpu_s"] - before["cpu_s"]),
            "elements_per_s": rows[0]["elements"] / took}  # fmt: skip


def _secret_flags(folder: Path, secret: bool) -> list[str]:
    (folder / "secret").write_text(SECRET)
    return ["--secret-file", str(folder / "secret")] if secret else []


def _serve(flags: list[str]) -> tuple[subprocess.Popen[str], int]:
    switch = _switch("serve", "--port", "0", *flags)
    assert switch.stdout is not None
    return switch, int(switch.stdout.readline().split("port ")[1].split()[0])


def _reduce(port: int, folder: Path, flags: list[str]) -> tuple[list[Any], int]:
    files = [folder / f"{rank}.json" for rank in range(2)]
    flags = ["--workers", "2", "--port", str(port), "--stall-timeout", "20s", *flags]
    run = [_switch("all-reduce", "--rank", str(rank), *flags, "--json", str(file))
           for rank, file in enumerate(files)]  # fmt: skip
    for one in run:
        one.communicate(timeout=LIMIT_S)
    failed = sum(one.returncode not in (0, 1) for one in run)
    return [row for file in files if file.exists() for row in json.loads(file.read_text())["results"]], failed


def _switch(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "commsim", "switch", *argv], stdout=subprocess.PIPE, text=True)


def main() -> None:
    """Print all as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forged", type=int, default=100_000)
    parser.add_argument("--rates", action="store_true")
    given = parser.parse_args()
    if given.rates:
        told: list[Any] = [rate(secret, "segments", k) for k in (64, 256) for secret in (False, True)]
    else:
        told = [attacked(min(given.forged, 5000), False), attacked(given.forged, True)]
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
