"""How fast compressors are here, in elements per second of one core: encode, and decode.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ. Beside it in
``extra_info``: Gbit/s of float32 gradient, as Espresso (EuroSys 2023) gives them for 64 M elements on a CPU: random-k
23.2, DGC 16.0, EF-SignSGD 30.1, 1-bit 29.2.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from commsim.sparse.compressors import compressor_of
from commsim.sparse.compressors.message import CompressedMessage, CompressedRank

ELEMENTS = 2**22
SPECS = [
    "top_k:density=0.01", "random_k:density=0.01", "threshold:above=2.5", "dgc:density=0.01", "one_bit", "sign",
    "qsgd:bits=2", "qsgd:bits=8", "power_sgd:rank=4",
]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.benchmark(timer=time.process_time, group="compress 4 M elements with error feedback, CPU seconds")
def test_compressing(benchmark: Any, spec: str) -> None:
    """Measure what a rank does with each gradient: add what was left, encode, decode, remember."""
    gradient = np.random.default_rng(0).standard_normal(ELEMENTS, np.float32)
    worker = CompressedRank(compressor_of(spec))
    message = benchmark.pedantic(worker.send, (gradient,), rounds=5, warmup_rounds=1)
    _note(benchmark, message)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.benchmark(timer=time.process_time, group="decode 4 M elements, CPU seconds")
def test_decoding(benchmark: Any, spec: str) -> None:
    """Measure what a rank does with each message that it gathers."""
    compressor = compressor_of(spec)
    message = compressor.encode(np.random.default_rng(0).standard_normal(ELEMENTS, np.float32))
    decoded = benchmark.pedantic(compressor.decode, (message,), rounds=5, warmup_rounds=1)
    _note(benchmark, message)
    assert decoded.shape == (ELEMENTS,)


def _note(benchmark: Any, message: CompressedMessage) -> None:
    benchmark.extra_info |= {"message_bytes": message.n_bytes, "compression": 4 * ELEMENTS / message.n_bytes}
    if benchmark.stats:  # there are none where measuring is off
        rate = ELEMENTS / benchmark.stats.stats.median
        benchmark.extra_info |= {"elements_per_s": rate, "gradient_Gbps": 32 * rate / 1e9}
        print(f"{rate / 1e6:.1f} M elements/s, {32 * rate / 1e9:.2f} Gbit/s of gradient")
