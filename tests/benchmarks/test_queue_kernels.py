"""Queues that are compared with the flow engine's heap keep the same order as it does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scale import queue_kernels
from commsim.engine.queue_kernel import heap_fix

QUEUES = {
    "heap": heap_fix,
    "4-ary": queue_kernels.four_ary_fix,
    "tournament": queue_kernels.tournament_fix,
    "wheel": queue_kernels.wheel_fix,
}


@pytest.mark.parametrize("queue", QUEUES)
@given(seed=st.integers(0, 2**32), n_things=st.integers(2, 30))
def test_the_first_is_always_one_with_the_smallest_key(queue: str, seed: int, n_things: int) -> None:
    random, fix, now, n = np.random.default_rng(seed), QUEUES[queue], 0.0, 0
    heap, key = np.zeros(n_things, np.int32), np.full(n_things, np.inf)
    place = np.full(n_things, -1, np.int32)
    if queue == "tournament":
        queue_kernels.plant(heap, key, n_things)
    if queue == "wheel":
        heap, key = np.full(1 + queue_kernels.N_BUCKETS + 2 * n_things, -1, np.int32), np.append(key, [0.01, 0.0])
    expected: dict[int, float] = {}
    for _ in range(100):
        if expected and random.random() < 0.5:
            s = min(expected, key=expected.__getitem__)
            now = expected.pop(s)
            n = fix(heap, n, key, place, s, -1.0)
        else:  # near, far beyond the wheel, or at the same time as others
            s = int(random.integers(n_things))
            expected[s] = now + float(random.choice([random.random(), 0.5, 100 * random.random()]))
            n = fix(heap, n, key, place, s, expected[s])
        assert n == len(expected)
        assert not expected or expected[int(heap[0])] == min(expected.values())
