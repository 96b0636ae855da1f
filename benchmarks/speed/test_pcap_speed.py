"""How many packets per second are written to a capture, and read and understood again, on one core.

``pytest benchmarks/speed/test_pcap_speed.py --benchmark-enable`` measures CPU time, the kernel's for the file included;
nothing is asserted about speed. Whole packets carry their values, and RDMA's the invariant CRC; the others are cut
after their headers, as a simulation writes them that is asked for no payload.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from switch_model.packets import packet_event as p
from switch_model.packets.pcap_reader import read_pcap
from switch_model.packets.pcap_writer import write_pcap
from switch_model.packets.reconstruct import reconstruct

N_WORKERS, N_SLOTS = 8, 512
N_PACKETS = 2**18
LIMIT = 200_000  # packets/s that issue 4 asks for
# Protocol, elements per packet, packets per message.
CASES = {"switchml_udp": (p.SWITCHML_UDP, 256, 1), "switchml_rdma": (p.SWITCHML_RDMA, 256, 4), "atp": (p.ATP, 62, 1)}


def packets(protocol: int, elements: int, per: int) -> NDArray[Any]:
    """Packets of a run without losses: all contributions of a message, then its results."""
    message, kind, worker, position = np.unravel_index(
        np.arange(N_PACKETS), (N_PACKETS // (2 * N_WORKERS * per), 2, N_WORKERS, per)
    )
    out = np.zeros(N_PACKETS, p.PACKET_EVENT)
    chunk = message * per + position
    out["time_ps"], out["chunk"], out["kind"] = np.arange(N_PACKETS) * 88_000, chunk, kind
    out["slot"], out["version"] = chunk % N_SLOTS, chunk // N_SLOTS % 2 if protocol != p.ATP else 0
    out["worker"], out["position"], out["message_packets"], out["n_workers"] = worker, position, per, N_WORKERS
    out["workers"] = np.where((kind == p.RESULT) & (protocol == p.ATP), (1 << N_WORKERS) - 1, 0)
    out["protocol"], out["elements"] = protocol, elements
    ends = p.node_address(worker), np.full(N_PACKETS, p.node_address(N_WORKERS))
    out["src"], out["dst"] = np.where(kind == p.RESULT, ends[::-1], ends)
    return out


def rate(benchmark: Any, work: Any) -> None:
    """Run some times, and note the fastest in packets per second of CPU time."""
    taken: list[float] = []

    def timed() -> None:
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)

    benchmark.pedantic(timed, rounds=3, warmup_rounds=1)
    benchmark.extra_info |= {"packets_per_cpu_s": N_PACKETS / min(taken), "wanted_packets_per_cpu_s": LIMIT}


@pytest.mark.parametrize("whole", [False, True], ids=["headers", "whole"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.benchmark(group="write")
def test_write(benchmark: Any, tmp_path: Path, case: str, whole: bool) -> None:
    """Measure writing."""
    events = packets(*CASES[case])
    drawn = np.random.default_rng(0).integers(-(2**31), 2**31, (2**15, CASES[case][1]), np.int32)
    values = (lambda part: drawn[: len(part)]) if whole else None
    rate(benchmark, lambda: write_pcap(tmp_path / "x.pcap", events, values))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.benchmark(group="read")
def test_read(benchmark: Any, tmp_path: Path, case: str) -> None:
    """Measure reading headers."""
    write_pcap(tmp_path / "x.pcap", packets(*CASES[case]))
    rate(benchmark, lambda: read_pcap(tmp_path / "x.pcap"))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.benchmark(group="reconstruct")
def test_reconstruct(benchmark: Any, tmp_path: Path, case: str) -> None:
    """Measure finding out what happened; every chunk was delivered."""
    write_pcap(tmp_path / "x.pcap", packets(*CASES[case]))
    events = read_pcap(tmp_path / "x.pcap").events
    (report,) = reconstruct(events).jobs
    assert report.chunks_delivered == N_PACKETS // (2 * N_WORKERS)
    assert report.wrong_results == report.retransmissions == 0
    rate(benchmark, lambda: reconstruct(events))
