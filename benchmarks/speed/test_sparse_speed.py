"""How long bitmaps of real gradients and the bytes of sparse messages take.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ. The issue's
limits stand beside the numbers in ``extra_info``: bitmaps of a tensor of 1 GB at most 1 s; 64 workers, 100 MB at 1 %
at most 1 s of CPU with the flow engine, of which this is the sparse part.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.program import Program
from commsim.core.schedule import Schedule
from commsim.sparse.encodings import blocks, coo
from commsim.sparse.generate import drawn_occupancy
from commsim.sparse.occupancy import occupancy_of
from commsim.sparse.propagate import transfer_contents

TENSOR_BYTES, ELEMENTS = 10**9, 26_214_400


@pytest.mark.parametrize("block", [1, 2, 16, 256, 1024])
@pytest.mark.benchmark(timer=time.process_time, group="bitmaps of 1 GB, CPU seconds")
def test_bitmaps_of_a_gigabyte(benchmark: Any, block: int) -> None:
    """Measure one rank's bitmap of 250 million floats at 1 %."""
    gradient = np.zeros(TENSOR_BYTES // 4, np.float32)
    gradient[:] = 0.0  # touched, or the kernel would be charged for the system's first look at each page
    gradient[np.random.default_rng(0).integers(0, len(gradient), len(gradient) // 100)] = 1.0
    occupancy = benchmark.pedantic(occupancy_of, ([gradient], block), rounds=3, warmup_rounds=1)
    benchmark.extra_info |= {"density": float(occupancy.density[0]), "limit_s": 1.0}
    assert occupancy.n_blocks == -(-len(gradient) // block)


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("n_chunks", [64, 1600])
@pytest.mark.benchmark(timer=time.process_time, group="bytes of messages, 64 ranks, 100 MB, 1 %, CPU seconds")
def test_bytes_of_blocks_through_aggregators(benchmark: Any, n_chunks: int, hashed: bool) -> None:
    """Measure the messages of 64 workers and 8 aggregators, in blocks of 256 elements."""
    schedule = through_aggregators(64, 8, n_chunks)
    occupancy = drawn_occupancy(64, ELEMENTS, density=0.01, block=256)
    n_bytes = benchmark.pedantic(
        lambda: blocks(transfer_contents(schedule, occupancy, hashed=hashed)), rounds=5, warmup_rounds=1
    )
    benchmark.extra_info |= {"transfers": len(n_bytes), "payload_MB": n_bytes.sum() / 1e6, "limit_s": 1.0}
    assert n_bytes.sum() > 0


@pytest.mark.parametrize("name", ["recursive_doubling_all_reduce", "ring_all_reduce", "halving_doubling_all_reduce"])
@pytest.mark.benchmark(timer=time.process_time, group="bytes of messages, 64 ranks, 26 M elements, CPU seconds")
def test_bytes_of_elements(benchmark: Any, name: str) -> None:
    """Measure the messages of 64 workers that send single elements: 1.7 thousand million bits."""
    schedule = COLLECTIVES[name].build(64)
    occupancy = drawn_occupancy(64, ELEMENTS, density=0.01)
    n_bytes = benchmark.pedantic(lambda: coo(transfer_contents(schedule, occupancy)), rounds=3, warmup_rounds=1)
    benchmark.extra_info |= {"transfers": len(n_bytes), "payload_MB": n_bytes.sum() / 1e6}
    assert n_bytes.sum() > 0


def through_aggregators(n_ranks: int, n_aggregators: int, n_chunks: int) -> Schedule:
    """All-reduce through aggregators, chunk c by aggregator c modulo their number."""
    p = Program(n_ranks, n_chunks, n_helpers=n_aggregators)
    rank, chunk = (x.ravel() for x in np.meshgrid(np.arange(n_ranks), np.arange(n_chunks)))
    aggregator = n_ranks + chunk % n_aggregators
    p.reduce(chunk, src=rank, dst=aggregator)
    p.copy(chunk, src=aggregator, dst=rank)
    return p.build()
