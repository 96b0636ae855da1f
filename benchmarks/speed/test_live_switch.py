"""How many packets per second the live switch takes in and sends, on loopback, and what limits it.

``pytest benchmarks/speed/test_live_switch.py --benchmark-enable`` measures; nothing is asserted about speed. Three
things are measured apart: the rule and the additions alone (a batch of frames in memory), the datagrams alone (one
process sends to itself), and the whole: a switch and its workers as processes. Machines are shared, so beside packets
per second of the clock stand packets per second of the switch's own processor time. A packet in and the packet that it
causes out are two; `packets_in` counts the first.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from switch_model.live import ask_status
from switch_model.live.data_plane import DataPlane
from switch_model.live.datagrams import ARRIVED, MODES, REPLY, address_key, open_datagrams, to_addresses
from switch_model.live.frames import frame_bytes, new_rows, type_and_size

N_WORKERS, N_SLOTS, ROUNDS = 8, 128, 100
LIMIT_S = 120


def commsim_switch(*argv: object) -> subprocess.Popen[str]:
    """Start a command of the live switch."""
    command = [sys.executable, "-m", "commsim", "switch", *map(str, argv)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("elements", [64, 256])
@pytest.mark.benchmark(group="live switch: rule and additions")
def test_rule_and_additions(benchmark: Any, elements: int) -> None:
    """Frames per second when they are in memory already."""
    plane, words = DataPlane(N_SLOTS, elements), new_rows(N_WORKERS * N_SLOTS, elements)
    peers = [("127.0.0.1", 5000 + rank) for rank in range(N_WORKERS)]
    plane.open(0, peers, 0, N_SLOTS)
    arrived = np.zeros(len(words), ARRIVED)
    arrived["row"], arrived["n_bytes"] = np.arange(len(words)), frame_bytes(elements)
    arrived["source"] = np.repeat([address_key(*peer) for peer in peers], N_SLOTS)
    words[:, 1], slots = type_and_size(elements) << 16, np.tile(np.arange(N_SLOTS, dtype=np.uint32), N_WORKERS)
    number = iter(range(1 << 30))

    def one_round() -> None:
        packet = next(number)
        words[:, 2] = (slots + packet * N_SLOTS).astype(np.uint32).byteswap()
        index = slots | (packet % 2) << 15
        words[:, 3] = index >> 8 | (index & 0xFF) << 8
        plane.handle(words, arrived)

    benchmark.pedantic(one_round, rounds=5, iterations=ROUNDS, warmup_rounds=1)
    benchmark.extra_info["frames_per_s"] = len(words) / benchmark.stats.stats.median if benchmark.stats else None
    counts = plane.counts()
    assert counts["packets_in"] == counts["first"] + counts["add"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.benchmark(group="live switch: datagrams")
def test_datagrams(benchmark: Any, mode: str) -> None:
    """Frames of 64 elements per second that one process sends to itself and receives."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        datagrams, to = open_datagrams(sock, 64, mode), to_addresses([sock.getsockname()])
        words, replies = new_rows(N_SLOTS, 64), np.zeros(N_SLOTS, REPLY)
        replies["row"] = np.arange(N_SLOTS)

        def there_and_back() -> None:
            datagrams.send(words, replies, to)
            n = 0
            while n < N_SLOTS:
                n += len(datagrams.receive())

        benchmark.pedantic(there_and_back, rounds=5, iterations=ROUNDS, warmup_rounds=1)
    benchmark.extra_info["frames_per_s"] = N_SLOTS / benchmark.stats.stats.median if benchmark.stats else None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("elements", [64, 256])
@pytest.mark.parametrize("n_workers", [2, 4])
@pytest.mark.benchmark(group="live switch: the whole")
def test_the_whole(benchmark: Any, tmp_path: Path, n_workers: int, elements: int, mode: str) -> None:
    """A switch and workers that reduce 8 MiB of int32 three times, with 512 packets out."""
    switch = commsim_switch("serve", "--port", 0, "--elements-per-packet", elements, "--datagrams", mode)
    try:
        assert switch.stdout is not None
        port = int(switch.stdout.readline().split("port ")[1].split()[0])
        measured: list[dict[str, float]] = []
        benchmark.pedantic(lambda: measured.append(_measure(port, n_workers, mode, tmp_path)), rounds=1)
        benchmark.extra_info |= measured[0]
        print("".join(f"\n{name:>40}  {value:.4g}" for name, value in measured[0].items()))
    finally:
        switch.terminate()
        switch.communicate(timeout=LIMIT_S)


def _measure(port: int, n_workers: int, mode: str, folder: Path) -> dict[str, float]:
    before = ask_status("127.0.0.1", port)
    flags = [
        "--port",
        port,
        "--workers",
        n_workers,
        "--size",
        "8MiB",
        "--iterations",
        3,
        "--slots",
        512,
        "--datagrams",
        mode,
    ]
    workers = [commsim_switch("all-reduce", "--rank", rank, *flags, "--json", folder / f"{rank}.json")
               for rank in range(n_workers)]  # fmt: skip
    for worker in workers:
        worker.communicate(timeout=LIMIT_S)
        assert worker.returncode == 0
    after = ask_status("127.0.0.1", port)
    rows = json.loads((folder / "0.json").read_text())["results"]
    took = sum(row["time_s"] for row in rows)
    n = {name: after["counters"][name] - before["counters"][name] for name in after["counters"]}
    cpu = after["cpu_s"] - before["cpu_s"]
    return {"packets_in_per_s": n["packets_in"] / took, "packets_out_per_s": n["packets_out"] / took,
            "packets_in_per_cpu_s": n["packets_in"] / cpu, "cpu_share": cpu / took, "duplicates": n["duplicate"],
            "elements_per_s": sum(row["elements"] for row in rows) / took}  # fmt: skip
