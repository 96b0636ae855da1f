"""How many elements per second the value pass sums, on one core.

``pytest benchmarks/speed/test_switch_values_speed.py --benchmark-enable`` measures; nothing is asserted about speed.
The log is that of a switch without losses: workers in turn, window by window. Elements are those that workers
contribute; comparing each result with the exact sum, which reads all of them again, is part of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from switch_model.payload import Payload, drawn_payload, given_payload
from switch_model.replay import Replay, ValuePass
from switch_model.slot_kernel import ADD, OVERWRITE, READ
from switch_model.slot_sequence import LOG_ROW, RECEIVE
from switch_model.system import System
from switch_model.systems import SYSTEMS

N_WORKERS = 8
WINDOW = 512
LIMIT = 2e9  # elements/s that issue 4 asks for
# System, elements per packet, elements contributed by all workers, and whether tensors are drawn.
CASES = {
    "drawn_256": ("switchml_udp", 256, 2**28, True),
    "drawn_64": ("switchml_udp", 64, 2**28, True),
    "drawn_62_saturating": ("atp", 62, 2**27, True),
    "drawn_floats_256": ("panama", 256, 2**28, True),
    "real_tensors_256": ("switchml_udp", 256, 2**24, False),
}


def log_without_loss(n_workers: int, n_chunks: int, window: int) -> NDArray[Any]:
    """Operations when every window is contributed by one worker after the other, and then received by all."""
    rounds = []
    for first in range(0, n_chunks, window):
        chunk = np.arange(first, min(first + window, n_chunks))
        part = np.full((2 * n_workers, len(chunk)), -1, LOG_ROW)
        part["chunk"] = chunk
        part["worker"] = np.tile(np.arange(n_workers), 2)[:, None]
        part["register"] = chunk % (2 * window)
        part["action"][:n_workers] = ADD
        part["action"][0] = OVERWRITE
        part["action"][n_workers - 1] |= READ
        part["out_message"][n_workers - 1] = chunk
        part["action"][n_workers:] = RECEIVE
        part["in_message"][n_workers:] = chunk
        rounds.append(part.reshape(-1))
    return np.concatenate(rounds)


def prepare(case: str) -> tuple[NDArray[Any], Payload, System]:
    """Build a log, tensors and a system."""
    name, elements, total, drawn = CASES[case]
    system = SYSTEMS[name].build(elements_per_packet=elements)
    n = total // N_WORKERS
    if drawn:
        payload = drawn_payload([(N_WORKERS, (n,))], system)
    else:
        tensors = np.random.default_rng(0).integers(-(2**31), 2**31, (N_WORKERS, n), np.int32)
        payload = given_payload([[tensors]], system)
    return log_without_loss(N_WORKERS, -(-n // elements), WINDOW), payload, system


@pytest.mark.parametrize("case", CASES)
@pytest.mark.benchmark(group="value pass")
def test_replay(benchmark: Any, case: str) -> None:
    """Measure summing and comparing."""
    log, payload, system = prepare(case)
    n_chunks = -(-payload.n_elements[0][0] // system.elements)
    done: list[Replay] = []

    def replay() -> None:
        values = ValuePass(payload, system, 2 * WINDOW)
        values.carry_out(log, n_chunks)
        done.append(values.outcome())

    benchmark.pedantic(replay, rounds=3, warmup_rounds=1)
    rate = max(result.elements_added / result.cpu_s for result in done)
    benchmark.extra_info |= {"elements_per_cpu_s": rate, "wanted_elements_per_cpu_s": LIMIT}
    assert all(result.exact for result in done)
