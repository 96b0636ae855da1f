"""The kernel that looks for transfers out of order, against every pair looked at in phase."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.engine.predecessors_kernel import find_too_early


@given(seed=st.integers(0, 2**32), spread=st.sampled_from([0.0, 1.0]))
def test_what_is_too_early_is_found_if_and_only_if_there_is_something(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    start = np.arange(n) + rng.uniform(0, spread, n) * 2
    sent = start + rng.uniform(0, 0.5, n)
    done = sent + rng.uniform(0, 0.5, n)
    edges = sorted({(int(i), 2 * int(j) + int(k)) for i, j, k in rng.integers(0, (n, n, 2), (n, 3)) if i < j})
    first = np.searchsorted([i for i, _ in edges], np.arange(n + 1)).astype(np.int64)
    code = np.array([c for _, c in edges], np.int32)
    connection = np.sort(rng.integers(0, 3, n)).astype(np.int32)
    queue = np.arange(n, dtype=np.int32)
    wrong = {(i, c // 2, True) for i, c in edges if start[c // 2] < (done if c % 2 else sent)[i] - 0.01}
    wrong |= {
        (i - 1, i, False) for i in range(1, n) if connection[i] == connection[i - 1] and start[i] < sent[i - 1] - 0.01
    }
    found = find_too_early((start, sent, done), (first, code), queue, connection, 0.01)
    assert found in wrong or (not wrong and found == (-1, -1, False))
